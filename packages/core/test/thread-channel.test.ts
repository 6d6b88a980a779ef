import { once } from "node:events";
import { MessageChannel, Worker } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { sized } from "../../../test/fixtures/suite.ts";
import type { Batch } from "../src/protocol/message.ts";
import type { DeathCause } from "../src/shared/errors.ts";
import type { Channel } from "../src/transport/channel.ts";
import { threadChannel } from "../src/transport/thread.ts";

const lost: DeathCause = { kind: "exited", exitCode: 1, message: "the thread ended" };

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.terminate()));
});

/** The channel to a new thread that sends everything back. */
async function echoThread(): Promise<Channel> {
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL("./fixtures/echo-thread.ts", import.meta.url), {
    workerData: { port: port2 },
    transferList: [port2],
  });
  workers.push(worker);
  await once(worker, "online");
  const exited = once(worker, "exit").then(() => lost);
  return threadChannel(port1, () => exited, exited);
}

/** A generator of whole numbers below a bound; the same seed gives the same ones. */
function randomOf(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}

function batchOf(number: number, size: number, buffers: readonly SharedArrayBuffer[]): Batch {
  const bytes = new Uint8Array(4 + size).fill(number & 0xff);
  new DataView(bytes.buffer).setUint32(0, number);
  return { bytes, buffers };
}

/** Sends so many batches of random sizes, some of them with buffers, and looks at what returns. */
function sendAndCompare(channel: Channel, total: number, seed: number): Promise<void> {
  const random = randomOf(seed);
  const window = 1 + random(seed % 2 === 0 ? 3 : 40);
  const memory = new SharedArrayBuffer(8);
  const sent: Batch[] = [];
  let arrived = 0;
  const sendNext = (): void => {
    const size = random(50) === 0 ? random(5000) : random(100);
    const batch = batchOf(sent.length, size, random(20) === 0 ? [memory] : []);
    sent.push(batch);
    channel.send(batch);
  };
  return new Promise((resolve, reject) => {
    const check = ({ bytes, buffers }: Batch): void => {
      const expected = sent[arrived];
      const isSame = expected !== undefined && Buffer.compare(bytes, expected.bytes) === 0;
      if (!isSame || buffers.length !== expected.buffers.length)
        reject(new Error(`batch ${arrived} is not the one that was sent`));
      arrived += 1;
      if (arrived === total) resolve();
      while (sent.length < Math.min(total, arrived + window)) sendNext();
    };
    channel.onMessage((batch) => {
      check(batch);
      if (random(10) === 0) for (const polled of channel.poll?.() ?? []) check(polled);
    });
    sendNext();
  });
}

describe("a channel between threads", () => {
  test.each(sized({ gate: [1, 2], full: [1, 2, 3, 4, 5, 6] }))(
    "keeps the order of what goes by ring and by port, seed %i",
    async (seed) => {
      const channel = await echoThread();
      await sendAndCompare(channel, 20_000, seed);
      channel.close(lost);
    },
  );

  test.each(sized({ gate: [1, 2], full: [1, 2, 3, 4] }))(
    "delivers what a thread sent before it ended, seed %i",
    async (seed) => {
      const channel = await echoThread();
      await sendAndCompare(channel, 500, seed);
      const last = new Promise<number>((resolve) => {
        channel.onMessage(({ bytes }) => resolve(bytes.byteLength));
      });
      channel.send({ bytes: new Uint8Array(), buffers: [] });
      expect(await last).toBe(0);
      expect(await channel.closed).toEqual(lost);
      expect(() => channel.send({ bytes: new Uint8Array(), buffers: [] })).toThrow("closed");
    },
  );

  test("keeps each batch of the port behind the many of the ring that were sent before it", async () => {
    const { port1, port2 } = new MessageChannel();
    const left = threadChannel(port1, async () => lost);
    const right = threadChannel(port2, async () => lost);
    const isBig = (number: number): boolean => number % 150 > 146;
    const arrived: number[] = [];
    const done = Promise.withResolvers<void>();
    left.onMessage(() => undefined);
    right.onMessage(({ bytes }) => {
      arrived.push(new DataView(bytes.buffer, bytes.byteOffset).getUint32(0));
      if (arrived.length === 900) done.resolve();
    });
    // A side offers its ring when it has sent a few batches, and the other has it a turn later.
    for (let number = 0; number < 40; number++) right.send(batchOf(number, 4, []));
    await new Promise((resolve) => void setTimeout(resolve));
    await new Promise((resolve) => void setImmediate(resolve));
    for (let number = 0; number < 900; number++)
      left.send(batchOf(number, isBig(number) ? 5000 : 0, []));
    await done.promise;
    expect(arrived).toEqual(Array.from({ length: 900 }, (_, number) => number));
    left.close(lost);
  });
});
