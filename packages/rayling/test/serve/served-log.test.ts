/**
 * A log that could not be written is opened again for one sample alone, and its keys have the
 * outcomes that were answered.
 */

import { appendFile, mkdir, readFile, rename, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "@rayling/reward-loop";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { recordPauseMs, ServedLog } from "../../src/serve/served-log.ts";
import { ServedScores } from "../../src/serve/served-scores.ts";
import type { Claim } from "../../src/serve/served-scores.ts";
import { folder } from "../command.ts";
import { fullDisk } from "../../../../test/fixtures/full-disk.ts";

const sample: RewardSample = { dataSource: "test", response: "4", groundTruth: "4" };
const outcome: SampleOutcome = {
  valid: true,
  rewardScore: 1,
  rewardExtraInfo: {},
  latencyMs: 1,
  waitedMs: 0,
  attempts: 1,
};

test("after a pause, by one sample at a time, until its line is written", async () => {
  const path = join(await folder(), "rewards.jsonl");
  let nowMs = 0;
  const log = await ServedLog.open(path, undefined, () => nowMs);
  let index = 0;
  const write = async (): Promise<unknown> =>
    log.write(sample, outcome, { index: index++, version: "v", key: `k${index}` });
  await write();
  await log.admit();
  await rename(path, `${path}.1`);
  await expect(write()).rejects.toThrow("rewards.jsonl");
  expect(log.hasFailed).toBe(true);
  await expect(log.admit()).rejects.toThrow("rewards.jsonl");
  expect(await log.isWorthATry()).toBe(false);
  // Where a folder has its name it cannot be opened.
  nowMs += recordPauseMs;
  await mkdir(path);
  expect(await log.isWorthATry()).toBe(false);
  await rmdir(path);
  await expect(log.admit()).rejects.toThrow("rewards.jsonl");
  nowMs += recordPauseMs;
  expect(await log.isWorthATry()).toBe(true);
  await log.admit();
  // Another sample has to wait for what becomes of this one.
  await expect(log.admit()).rejects.toThrow("rewards.jsonl");
  log.tried();
  await log.admit();
  await write();
  log.tried();
  expect(log.hasFailed).toBe(false);
  await log.admit();
  await write();
  await log.close();
  const keysOf = async (file: string): Promise<unknown[]> =>
    (await readFile(file, "utf8"))
      .trimEnd()
      .split("\n")
      .map((line) => (JSON.parse(line) as { readonly key: string }).key);
  // What was written when the file had gone is there, and was not answered.
  expect(await keysOf(`${path}.1`)).toEqual(["k1", "k2"]);
  expect(await keysOf(path)).toEqual(["k3", "k4"]);
});

test("keys that other functions answered are refused, and keep their answers where that is asked for", async () => {
  const path = join(await folder(), "rewards.jsonl");
  const loopOf = (version: string) => ({
    version,
    computeScore: async () => ({ ...outcome, version }),
  });
  const asked = async (scores: ServedScores, key: string): Promise<unknown> => {
    const [claim] = scores.claims([sample], [key]);
    return JSON.parse((await scores.score(claim as Claim)).text);
  };
  const first = await ServedScores.open(loopOf("v1"), path);
  for (const key of ["a", "b"]) await asked(first, key);
  await first.close();
  const before = await readFile(path, "utf8");
  await expect(ServedScores.open(loopOf("v2"), path)).rejects.toMatchObject({
    code: "STALE_KEYS",
    path,
    stale: 2,
    message: expect.stringContaining(`2 of the 2 keys in ${path}`) as unknown,
  });
  expect(await readFile(path, "utf8")).toBe(before);
  const second = await ServedScores.open(loopOf("v2"), path, { keepsStale: true });
  expect(await asked(second, "a")).toMatchObject({ version: "v1" });
  expect(await asked(second, "c")).toMatchObject({ version: "v2" });
  expect([second.keys, second.staleKeys]).toEqual([3, 2]);
  await second.close();
  // A judge and a cheaper one are the functions of one server.
  const both = await ServedScores.open(loopOf("v1"), path, { versions: ["v1", "v2"] });
  expect(both.staleKeys).toBe(0);
  await both.close();
});

describe("lines of a write that was refused", () => {
  const keys = ["k0", "k1", "k2"];

  /** A judge that gives each call another score, as one with a temperature does. */
  async function judged(path: string) {
    let calls = 0;
    const computeScore = async (): Promise<SampleOutcome> =>
      Promise.resolve({ ...outcome, rewardScore: ++calls });
    const scores = await ServedScores.open({ computeScore, version: "v" }, path);
    /** Their scores, and undefined for those that are refused. */
    const ask = async (): Promise<unknown[]> => {
      const claims = scores.claims(
        keys.map(() => sample),
        keys,
      );
      const asked = await Promise.allSettled(claims.map((claim) => scores.score(claim)));
      return asked.map((one) =>
        one.status === "rejected"
          ? undefined
          : (JSON.parse(one.value.text) as { readonly score: number }).score,
      );
    };
    return { ask, close: () => scores.close(), calls: () => calls };
  }

  /** Asks for all until each is answered. */
  async function answersOf(ask: () => Promise<unknown[]>): Promise<unknown[]> {
    for (;;) {
      vi.advanceTimersByTime(recordPauseMs);
      const answers = await ask();
      if (!answers.includes(undefined)) return answers;
    }
  }

  beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
  afterEach(() => void vi.useRealTimers());

  test("on a full disk the whole ones are answered, and none is there that is not", async () => {
    const path = join(await folder(), "rewards.jsonl");
    const server = await judged(path);
    const [one] = await server.ask();
    await server.close();
    const bytes = (await readFile(path)).length;
    expect(one).toBe(1);

    const other = join(await folder(), "rewards.jsonl");
    const filled = await judged(other);
    const warnings: string[] = [];
    const onWarning = ({ message }: Error): void => void warnings.push(message);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    const full = await fullDisk(Math.ceil(bytes / 2));
    expect(await filled.ask()).toEqual([1, undefined, undefined]);
    full[Symbol.dispose]();
    const answers = await answersOf(filled.ask);
    await filled.close().catch(() => undefined);
    expect(warnings).toEqual([
      expect.stringMatching(/^samples are refused \(503, record_failed\) .*: .*ENOSPC/),
    ]);
    expect(warnings[0]).toContain(`${other}: `);
    const lines = (await readFile(other, "utf8")).trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { readonly key: string }).key)).toEqual(keys);
    const next = await judged(other);
    expect([await next.ask(), next.calls()]).toEqual([answers, 0]);
    await next.close();
  });

  test("where another program wrote the file, the last line of a key is its answer", async () => {
    const path = join(await folder(), "rewards.jsonl");
    const server = await judged(path);
    await appendFile(path, "{}\n");
    expect(await server.ask()).toEqual([undefined, undefined, undefined]);
    await writeFile(path, (await readFile(path, "utf8")).replace("{}\n", ""));
    const answers = await answersOf(server.ask);
    await server.close();
    const next = await judged(path);
    expect([await next.ask(), next.calls()]).toEqual([answers, 0]);
    await next.close();
  });
});
