/** A log that could not be written is opened again for one sample alone. */

import { mkdir, readFile, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome } from "@rayling/reward-loop";
import { expect, test } from "vitest";
import { recordPauseMs, ServedLog } from "../../src/serve/served-log.ts";
import { folder } from "../command.ts";

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
