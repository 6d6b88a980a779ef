/** What the judge server of these tests counts as calls at once: those whose clients are there, however late it hears of the others. */

import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { JudgeServer } from "../servers/judge-server.ts";

async function judgeOfOne(): Promise<{
  readonly judge: JudgeServer;
  readonly open: () => Promise<Socket>;
}> {
  // Every text hangs when it is asked first.
  const judge = await JudgeServer.start({ limits: { concurrency: 1 }, faults: { hang: 1 } });
  onTestFinished(() => judge.close());
  const [host = "", port = ""] = judge.address.split(":");
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), host);
    onTestFinished(() => void socket.destroy());
    await once(socket, "connect");
    return socket;
  };
  return { judge, open };
}

function ask(socket: Socket, solution: string): void {
  const content = JSON.stringify({ solution, groundTruth: "1" });
  const body = JSON.stringify({ messages: [{ content }] });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}`;
  socket.write(`${head}\r\n\r\n${body}`);
}

const status = async (socket: Socket): Promise<string> => {
  const [text] = (await once(socket, "data")) as [Buffer];
  return text.toString().slice(9, 12);
};

test("a client that has gone before the next one asked takes no place, though the server hears of both at once", async () => {
  const { judge, open } = await judgeOfOne();
  let [last, next] = [await open(), await open()];
  ask(last, "0");
  await expect.poll(() => judge.stats().requests).toBe(1);
  for (let index = 1; index <= 20; index++) {
    // In one turn: the server has no chance to hear of the one before the other.
    last.destroy();
    ask(next, String(index));
    await expect.poll(() => judge.stats().requests).toBe(index + 1);
    [last, next] = [next, await open()];
  }
  await expect.poll(() => judge.stats().failed.hang).toBe(21);
  expect(judge.stats()).toMatchObject({ violations: {}, mostInFlight: 1 });
});

test("one that is there does", async () => {
  const { judge, open } = await judgeOfOne();
  const [there, other] = [await open(), await open()];
  ask(there, "1");
  await expect.poll(() => judge.stats().requests).toBe(1);
  ask(other, "2");
  expect(await status(other)).toBe("429");
  expect(judge.stats()).toMatchObject({ violations: { concurrency: 1 }, mostInFlight: 1 });
});
