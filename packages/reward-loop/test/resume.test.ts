/** A loop that goes on with its own reward log: what has a score is not scored again, what failed is, and every sample has one place. */

import { appendFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { DataProto, readParquet } from "@rayling/data-proto";
import {
  exportRewardLog,
  outcomesIn,
  readRewardLog,
  RewardLoopManager,
  rewardReport,
} from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { fixture, sampleOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

let folder = "";
let log = "";
let reward = "";
let calls = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-resume-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  log = join(folder, "rewards.jsonl");
  calls = join(folder, "calls");
  reward = await moduleOf("");
});

/** Notes each call in a file; throws on texts that begin with "down" until the file `up` is there. */
async function moduleOf(version: string): Promise<string> {
  const path = join(folder, `reward${version}.mjs`);
  await writeFile(
    path,
    `import { appendFileSync, existsSync } from "node:fs";
    // ${version}
    export function computeScore({ solutionStr }) {
      appendFileSync(${JSON.stringify(calls)}, solutionStr + "\\n");
      if (solutionStr.startsWith("down") && !existsSync(${JSON.stringify(join(folder, "up"))})) {
        throw new Error("down");
      }
      return { score: solutionStr.length, version: "${version}" };
    }`,
  );
  return path;
}

async function called(): Promise<string[]> {
  const text = await readFile(calls, "utf8").catch(() => "");
  await rm(calls, { force: true });
  return text
    .split("\n")
    .filter((line) => line !== "")
    .toSorted((a, b) => a.localeCompare(b));
}

async function scored(
  texts: readonly (string | RewardSample)[],
  options: RewardLoopOptions = {},
): Promise<SampleOutcome[]> {
  const own = { workers: 1, executors: 1, reward, record: log, resume: true };
  await using loop = await RewardLoopManager.create({ ...own, ...options });
  const outcomes: SampleOutcome[] = [];
  for (const one of texts) {
    outcomes.push(await loop.computeScore(typeof one === "string" ? sampleOf(one) : one));
  }
  return outcomes;
}

const scoresOf = (outcomes: readonly SampleOutcome[]): unknown[] =>
  outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code));

const first = ["a", "bb", "down 1", "same", "same"];

test("goes on: scores stay, failures are asked again in their place, new samples come behind", async () => {
  expect(scoresOf(await scored(first))).toEqual([1, 2, "SCORE_THREW", 4, 4]);
  expect(await called()).toEqual(["a", "bb", "down 1", "same", "same"]);
  await writeFile(join(folder, "up"), "");
  // In another order, once more than before, and with a new one.
  const again = await scored(["new one", "same", "same", "same", "bb", "down 1", "a"]);
  expect(scoresOf(again)).toEqual([7, 4, 4, 4, 2, 6, 1]);
  expect(await called()).toEqual(["down 1", "new one", "same"]);
  // Nothing was called for those that the log has.
  const cached = again.map((one) => one.cached === true);
  expect(cached).toEqual([false, true, true, false, true, false, true]);
  const records = await outcomesIn(log);
  expect([...records.keys()].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  expect(records.get(2)).toMatchObject({ valid: true, score: 6 });
  expect((await Array.fromAsync(readRewardLog(log))).length).toBe(8);

  const report = await rewardReport(log);
  expect(report).toMatchObject({ samples: 7, valid: 7, invalid: 0, superseded: 1 });
  const table = join(folder, "rewards.parquet");
  expect(await exportRewardLog(log, table)).toBe(7);
  const rows = (await Array.fromAsync(readParquet(table))).map(({ value }) => value);
  expect(rows.map(({ score }) => score)).toEqual([1, 2, 4, 4, 7, 4, 6]);
  expect(await exportRewardLog(log, table, { lines: "all" })).toBe(8);

  // What failed first is never given back where it has a score by now.
  expect(scoresOf(await scored(first, { record: undefined, resume: false, replay: log }))).toEqual([
    1, 2, 6, 4, 4,
  ]);
});

test("a batch and a stream go on alike, also behind a line that was cut off", async () => {
  const texts = Array.from({ length: 30 }, (_, n) => `text ${n}`);
  await scored(texts.slice(0, 20));
  await appendFile(log, '{"index": 20, "sam');
  await called();
  const options = { workers: 2, executors: 1, reward, record: log, resume: true };
  {
    await using loop = await RewardLoopManager.create({ ...options, workers: 1 });
    const rewards = await loop.computeRmScore(
      DataProto.fromDict({
        nonTensors: {
          response: texts.slice(0, 25),
          data_source: texts.slice(0, 25).map(() => "test"),
          reward_model: texts.slice(0, 25).map(() => ({ ground_truth: "" })),
        },
      }),
    );
    expect(rewards.length).toBe(25);
  }
  expect(await called()).toEqual(texts.slice(20, 25).toSorted((a, b) => a.localeCompare(b)));
  {
    await using loop = await RewardLoopManager.create(options);
    const seen = await Array.fromAsync(loop.scoreStream(texts.map(sampleOf)));
    expect(seen.every(({ outcome }) => outcome.valid)).toBe(true);
    expect(seen).toHaveLength(30);
  }
  expect((await called()).length).toBe(5);
  expect((await Array.fromAsync(readRewardLog(log))).map(({ index }) => index)).toEqual(
    expect.arrayContaining([...Array(30).keys()]),
  );
  expect(await rewardReport(log)).toMatchObject({ samples: 30, superseded: 0 });
});

test("several rewards come back with all of their parts", async () => {
  const part = (name: string): string => fixture(`parts.ts:${name}`);
  const rewards = {
    correct: { cascade: { rule: { reward: part("rule") }, judge: { reward: part("judge") } } },
    length: { reward: part("words"), weight: 0.5 },
  };
  const options = { reward: undefined, rewards };
  const outcomes = await scored(["known 1", "open"], options);
  const lines = (await Array.fromAsync(readRewardLog(log))).length;
  const again = await scored(["known 1", "open"], options);
  expect(scoresOf(again)).toEqual(scoresOf(outcomes));
  expect(again.map((one) => Object.keys(one.components ?? {}))).toEqual(
    outcomes.map((one) => Object.keys(one.components ?? {})),
  );
  expect((await Array.fromAsync(readRewardLog(log))).length).toBe(lines);
});

describe("scores of another version of the function", () => {
  test("are refused, scored again in their places, or kept", async () => {
    await scored(["a", "bb"]);
    await called();
    const other = await moduleOf("2");
    const refused = scored(["a"], { reward: other });
    await expect(refused).rejects.toMatchObject({ code: "REWARD_LOG_STALE", path: log, stale: 2 });
    expect(await ray.listNamedActors()).toEqual([]);
    const kept = await scored(["a", "c"], { reward: other, resume: { stale: "keep" } });
    expect(kept.map((one) => one.valid && one.rewardExtraInfo["version"])).toEqual(["", "2"]);
    expect(await called()).toEqual(["c"]);
    await scored(["a", "bb", "c"], { reward: other, resume: { stale: "rescore" } });
    expect(await called()).toEqual(["a", "bb"]);
    expect(await rewardReport(log)).toMatchObject({ samples: 3, superseded: 2 });
  });

  test.each([
    [{ resume: "yes" }, "resume must be true, false or an object"],
    [{ resume: { stale: "skip" } }, 'resume.stale must be "refuse", "rescore" or "keep"'],
    [{ resume: { old: 1 } }, "resume.old"],
    [{ resume: true, record: undefined }, "resume must be left out without record"],
    [{ resume: true, replay: "x" }, "resume must be left out with replay"],
  ])("%j is refused", async (options, message) => {
    await expect(scored([], options as RewardLoopOptions)).rejects.toThrow(message);
  });
});

test("what the log has cost is spent", async () => {
  const spend = { prices: { perCall: 1 }, cap: 3 };
  await scored(["a", "bb"], { spend });
  expect(scoresOf(await scored(["a", "bb", "c", "dd"], { spend }))).toEqual([1, 2, 1, "SPEND_CAP"]);
});
