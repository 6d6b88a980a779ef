/** `rayling score` that is killed with its judge at work: what the judge has answered is not paid for again. */

import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { fileOf, folder, inProcess, start } from "./command.ts";
import { sized } from "../../../test/fixtures/suite.ts";

const samples = 60;
const inFlight = 6;

/** Answers so many calls at once, and holds all others until it is opened. */
async function startGate(): Promise<{
  url: string;
  answers: (more: number) => void;
  asked: Map<string, number>;
  held: () => number;
}> {
  const asked = new Map<string, number>();
  const waiting = new Set<ServerResponse>();
  let left = 0;
  const answer = (): void => {
    for (const response of waiting) {
      if (left === 0) return;
      left -= 1;
      waiting.delete(response);
      response.end("1");
    }
  };
  const server = createServer(async (request, response) => {
    const text = (await request.toArray()).join("");
    asked.set(text, (asked.get(text) ?? 0) + 1);
    waiting.add(response);
    response.on("close", () => waiting.delete(response));
    answer();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answers: (more) => {
      left += more;
      answer();
    },
    asked,
    held: () => waiting.size,
  };
}

const limits: readonly [string, readonly string[]][] = [
  ["a limit of its endpoint", ["--max-in-flight", String(inFlight), "--concurrency", "16"]],
  ["its slots", ["--concurrency", String(inFlight)]],
];
/** Lines are written before a call's place is given away in the same way. */
test.each(sized({ gate: limits.slice(0, 1), full: limits }))(
  "kill -9 costs the calls that were under way, by %s, and no others",
  async (_, limit) => {
    const directory = await folder();
    const [out, reward] = [join(directory, "rewards.jsonl"), join(directory, "reward.mjs")];
    await writeFile(
      reward,
      `export async function computeScore({ solutionStr, url }) {
      const response = await fetch(url, { method: "POST", body: solutionStr });
      return Number(await response.text());
    }`,
    );
    const input = await fileOf(
      Array.from({ length: samples }, (__, n) => ({ response: `answer ${n}`, ground_truth: "1" })),
    );
    const gate = await startGate();
    const flags = ["score", input, "--reward", reward, "--reward-kwarg", `url=${gate.url}`];
    flags.push("--out", out, "--workers", "1", "--resume", ...limit);
    const total = (): number => [...gate.asked.values()].reduce((sum, times) => sum + times, 0);

    const kills = sized({ gate: 1, full: 2 });
    for (let kill = 1; kill <= kills; kill++) {
      const { child, ended } = start(...flags);
      gate.answers(20);
      // All that could be answered is, and the next ones are under way.
      await expect.poll(gate.held, { timeout: 60_000, interval: 5 }).toBe(inFlight);
      const lines = async (): Promise<number> =>
        (await readFile(out, "utf8").catch(() => "")).split("\n").length - 1;
      await expect.poll(lines, { timeout: 60_000, interval: 5 }).toBe(20 * kill);
      child.kill("SIGKILL");
      await ended;
      await expect.poll(gate.held).toBe(0);
    }
    gate.answers(Number.POSITIVE_INFINITY);
    const { code, stdout } = await inProcess(...flags);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`^samples +${samples}, ${20 * kills} of before$`, "m"));
    expect(gate.asked.size).toBe(samples);
    expect(total()).toBe(samples + kills * inFlight);
  },
);
