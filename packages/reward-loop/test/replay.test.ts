/** A run that is recorded, and the same run again out of its log: no judge is called, and all outcomes are what they were. */

import { randomUUID } from "node:crypto";
import { appendFile, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { DataProto } from "@rayling/data-proto";
import {
  AsyncRewardAgent,
  readRewardLog,
  RewardLog,
  RewardLoopManager,
} from "@rayling/reward-loop";
import type { RewardLoopOptions, RewardRecord, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { RecordedOutcomes } from "../src/record/replayed-outcomes.ts";
import { startJudge } from "./judge.ts";
import { fixture, sampleOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-replay-"));
  onTestFinished(() => rm(folder, { recursive: true }));
});

const part = (name: string): string => fixture(`parts.ts:${name}`);
const create = (options: RewardLoopOptions): Promise<RewardLoopManager> =>
  RewardLoopManager.create({ workers: 1, executors: 1, ...options });

/** By index, parts before wholes, without when that was. */
async function recordsOf(path: string): Promise<Omit<RewardRecord, "at">[]> {
  const records = await Array.fromAsync(readRewardLog(path));
  return records
    .map((record) => without("at", record))
    .toSorted((a, b) => a.index - b.index || keyOf(a.component).localeCompare(keyOf(b.component)));
}

function without<Value extends object, Key extends keyof Value>(
  key: Key,
  value: Value,
): Omit<Value, Key> {
  const { [key]: _, ...others } = value;
  return others;
}

const keyOf = (component: string | null): string => component ?? "~";

test("a training run of groups is replayed without its judge: equal rewards, equal records", async () => {
  const [first, second] = [join(folder, "first.jsonl"), join(folder, "second.jsonl")];
  await using judge = await startJudge({
    seed: 5,
    latency: { uniform: [1, 10] },
    // Some samples fail for good, and are as invalid in the second run.
    faults: { error: 0.2 },
    timesPerText: 100,
  });
  const reward = {
    path: fileURLToPath(new URL("../../../test/fixtures/judged.ts", import.meta.url)),
    name: "judged",
    rewardKwargs: { judgeUrl: judge.baseUrl },
  };

  const train = async (options: RewardLoopOptions): Promise<unknown[]> => {
    await using agent = await AsyncRewardAgent.create({ workers: 1, executors: 1, ...options });
    const columns: unknown[] = [];
    for (let step = 0; step < 3; step++) {
      const texts = Array.from(
        { length: 24 },
        (_, row) => `Step ${step}, row ${row}. A: ${row % 3}`,
      );
      agent.computeRewardPipeline(
        DataProto.fromDict({
          nonTensors: {
            response: texts,
            // A name that no other run gives it.
            uid: texts.map((_, row) => Math.floor(row / 4)).map((group) => uuids[group] as string),
            data_source: texts.map(() => "replay"),
            reward_model: texts.map(() => ({ ground_truth: "1" })),
          },
        }),
        4,
      );
      const { rewards, indices } = await agent.get(24);
      columns.push([indices, rewards.toData()]);
      uuids = uuids.map(() => randomUUID());
    }
    return columns;
  };
  let uuids = Array.from({ length: 6 }, () => randomUUID() as string);

  const columns = await train({ reward, record: first });
  const asked = (await judge.stats()).requests;
  expect(asked).toBe(72);
  expect(await train({ reward, replay: first, record: second })).toEqual(columns);
  expect((await judge.stats()).requests).toBe(asked);
  const records = (await recordsOf(first)).map((record) => without("group", record));
  expect(records).toHaveLength(72);
  expect(records.filter(({ valid }) => !valid).length).toBeGreaterThan(0);
  expect((await recordsOf(second)).map((record) => without("group", record))).toEqual(records);
});

describe("a log", () => {
  const texts = ["known 1", "open", "vague", "down", "open"] as const;
  const rewards = {
    correct: { cascade: { rule: { reward: part("rule") }, judge: { reward: part("judge") } } },
    length: { reward: part("words"), weight: 0.5 },
  };

  const scored = async (options: RewardLoopOptions): Promise<SampleOutcome[]> => {
    await using loop = await create(options);
    const outcomes: SampleOutcome[] = [];
    for (const text of texts) outcomes.push(await loop.computeScore(sampleOf(text)));
    return outcomes;
  };

  /** One of the texts by their words, which was written once. */
  let ofWords: Promise<string> | undefined;
  const logOfWords = async (): Promise<string> => {
    ofWords ??= (async () => {
      const path = join(tmpdir(), `rayling-replay-words-${process.pid}.jsonl`);
      await scored({ reward: part("words"), record: path });
      return path;
    })();
    const log = join(folder, "log.jsonl");
    await copyFile(await ofWords, log);
    return log;
  };
  afterAll(async () => rm((await ofWords) ?? "", { force: true }));

  test("replays several rewards and cascades with all of their parts, and needs no function for it", async () => {
    const [first, second] = [join(folder, "first.jsonl"), join(folder, "second.jsonl")];
    const outcomes = await scored({ rewards, record: first });
    const before = (await ray.listNamedActors()).length;
    const again = await scored({ replay: first, record: second });
    expect(again).toEqual(outcomes.map(rounded));
    expect(await recordsOf(second)).toEqual(await recordsOf(first));
    await using loop = await create({ replay: first });
    expect(loop.workerNames).toEqual([]);
    expect((await ray.listNamedActors()).length).toBe(before);
    expect(await loop.reload()).toBe(loop.version);
    const seen: number[] = [];
    for await (const { index, outcome } of loop.scoreStream(texts.map(sampleOf))) {
      expect(outcome).toEqual(rounded(outcomes[index] as SampleOutcome));
      seen.push(index);
    }
    expect(seen).toHaveLength(texts.length);
    expect(loop.answeredBy).toEqual({ "correct/rule": 1, "correct/judge": 2 });
  });

  test("what it does not have is invalid, or asked of the functions", async () => {
    const log = await logOfWords();
    await using strict = await create({ reward: part("words"), replay: log });
    expect(await strict.computeScore(sampleOf("never seen"))).toMatchObject({
      valid: false,
      error: { code: "NOT_IN_LOG" },
      attempts: 0,
    });
    await using asking = await create({
      reward: part("words"),
      replay: { log, missing: "ask" },
    });
    expect(await asking.computeScore(sampleOf("never seen"))).toMatchObject({ rewardScore: 2 });
    expect(await asking.computeScore(sampleOf("known 1"))).toMatchObject({ rewardScore: 2 });
  });

  test("groups are put right by the module, whose function is not called", async () => {
    const log = await logOfWords();
    await using loop = await create({ reward: part("ForGroups"), replay: log });
    expect(loop.traits.postProcesses).toBe(true);
    expect(await loop.computeScore(sampleOf("known 1"))).toMatchObject({ rewardScore: 2 });
    expect(await loop.postProcessScores([2])).toEqual({ valid: true, scores: [2] });
  });

  test("numbers on behind what it has, and a second try keeps the number of the first", async () => {
    const log = await logOfWords();
    await scored({ reward: part("words"), record: log });
    expect((await recordsOf(log)).map(({ index }) => index)).toEqual([
      0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
    ]);
    await using loop = await create({
      reward: fixture("flaky.ts"),
      record: log,
      onFailure: { again: true },
    });
    await loop.computeRmScore(
      DataProto.fromDict({
        nonTensors: {
          response: ["once 1 503", "always 99 503"],
          data_source: ["test", "test"],
          reward_model: [{ ground_truth: "" }, { ground_truth: "" }],
        },
      }),
    );
    const tried = (await recordsOf(log)).slice(10);
    expect(tried.map(({ index, lane, valid }) => [index, lane, valid])).toEqual([
      [10, "training", false],
      [10, "recovery", true],
      [11, "training", false],
      [11, "recovery", false],
    ]);
  });

  test("gives samples that say the same in the order of their numbers, each line that counts once, and from the first again", async () => {
    const path = join(folder, "log.jsonl");
    const outcome = (rewardScore: number): SampleOutcome => ({
      valid: true,
      rewardScore,
      rewardExtraInfo: {},
      latencyMs: 1,
      attempts: 1,
      waitedMs: 0,
    });
    const error = { code: "SCORE_THREW", name: "Error", message: "down" } as const;
    const failed: SampleOutcome = { valid: false, error, latencyMs: 1, attempts: 1, waitedMs: 0 };
    {
      await using log = await RewardLog.open(path);
      const write = (index: number, one: SampleOutcome): Promise<unknown> =>
        log.write(sampleOf("same"), one, { index, lane: "training", version: "v" });
      await write(7, outcome(7));
      await write(2, failed);
      await write(4, outcome(4));
      await write(2, outcome(2));
      await write(2, failed);
      await write(9, failed);
    }
    await appendFile(path, '{"index": 10, "sam');
    const recorded = await RecordedOutcomes.read(path);
    const given = Array.from({ length: 6 }, () => recorded.next(sampleOf("same")));
    expect(given.map((one) => (one?.valid === true ? one.rewardScore : one?.error.code))).toEqual([
      2,
      4,
      7,
      "SCORE_THREW",
      2,
      4,
    ]);
    expect(recorded.next(sampleOf("other"))).toBeUndefined();
  });

  test.each([
    [{ replay: "/no/such/log" }, "/no/such/log"],
    [{ replay: { log: "x", missing: "skip" } }, 'replay.missing must be "fail" or "ask"'],
    [{ replay: {} }, "replay.log must be a text that is not empty"],
    [{ replay: { file: "x" } }, "replay.file must be one of log, missing"],
    [{ replay: "x", record: "./x" }, "record must be another file than that of replay"],
    [{ record: "/no/such/folder/x" }, "/no/such/folder/x"],
  ])("%j is refused", async (options, message) => {
    await expect(create(options as unknown as RewardLoopOptions)).rejects.toThrow(message);
    expect(await ray.listNamedActors()).toEqual([]);
  });
});

/** As a record has it. */
function rounded(outcome: SampleOutcome): SampleOutcome {
  const round = (ms: number): number => Math.round(ms * 1000) / 1000;
  const { components } = outcome;
  return {
    ...outcome,
    latencyMs: round(outcome.latencyMs),
    waitedMs: round(outcome.waitedMs),
    ...(components === undefined
      ? {}
      : {
          components: Object.fromEntries(
            Object.entries(components).map(([name, one]) => [name, rounded(one)]),
          ),
        }),
  };
}
