/**
 * Answers to one prompt in a stream: when a group is whole, what is done to it as one, and every
 * way for it to end.
 */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { outcomesIn, readRewardLog, RewardLoopManager } from "@rayling/reward-loop";
import type {
  RewardLoopOptions,
  SampleOutcome,
  ScoredSample,
  ScoreStreamOptions,
  StreamGroups,
} from "@rayling/reward-loop";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { closeLoops, fixture, loopOf, sampleOf } from "./loop.ts";
import { sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
  rmSync(modules, { recursive: true });
});

/** Of the file: what loops load and write, so that cases may share one. */
const modules = mkdtempSync(join(tmpdir(), "rayling-stream-groups-"));
const calls = join(modules, "calls");
/** Notes each call, and fails on `down`. */
const single = join(modules, "reward.mjs");
writeFileSync(
  single,
  `import { appendFileSync } from "node:fs";
  export async function computeScore({ solutionStr }) {
    appendFileSync(${JSON.stringify(calls)}, solutionStr + "\\n");
    if (solutionStr === "down") throw new Error("down");
    return Number(solutionStr);
  }`,
);

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "rayling-stream-groups-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  await rm(calls, { force: true });
});

/** Ranks the answers of a group, and notes which groups it got. */
const ranks = { path: fixture("groups.ts"), name: "computeScores", rewardKwargs: { calls } };
const open = (options: RewardLoopOptions = {}): Promise<RewardLoopManager> =>
  RewardLoopManager.create({ workers: 1, executors: 1, reward: ranks, ...options });
const openSingle = (options: RewardLoopOptions): Promise<RewardLoopManager> =>
  open({ reward: single, ...options });

/** For cases that leave the loop as it was. */
const shared = (options: RewardLoopOptions = {}): Promise<RewardLoopManager> =>
  loopOf({ reward: ranks, ...options });
const ofMeans = (): Promise<RewardLoopManager> =>
  shared({ reward: single, onFailure: { fallback: "groupMean" } });

/** Calls that were noted, while others may come. */
async function noted(): Promise<string[]> {
  const text = await readFile(calls, "utf8").catch(() => "");
  return text.split("\n").filter(Boolean);
}

/** Calls that were noted since it was asked last. Nothing runs meanwhile: a note would be lost. */
async function called(): Promise<string[]> {
  const found = await noted();
  await rm(calls, { force: true });
  return found;
}

/** "a 3" is the answer 3 to a; "3" is of no group. */
function samplesOf(...texts: readonly string[]): RewardSample[] {
  return texts.map((text) => {
    const [response = "", group] = text.split(" ").toReversed();
    return { ...sampleOf(response), ...(group === undefined ? {} : { context: { group } }) };
  });
}

type Input = readonly RewardSample[] | AsyncIterable<RewardSample>;

async function streamed(
  loop: RewardLoopManager,
  samples: Input,
  groups: StreamGroups,
  options: ScoreStreamOptions = {},
): Promise<ScoredSample[]> {
  const scored: ScoredSample[] = [];
  for await (const one of loop.scoreStream(samples, { groups, ...options })) {
    expect(scored[one.index], `sample ${one.index} has one outcome`).toBeUndefined();
    scored[one.index] = one;
  }
  return scored;
}

const scoresOf = (scored: readonly ScoredSample[]): unknown[] =>
  scored.map(({ outcome }) => scoreOf(outcome));

const scoreOf = (outcome: SampleOutcome): number | string =>
  outcome.valid ? outcome.rewardScore : outcome.error.code;

describe("a group is whole", () => {
  test("with so many samples, wherever they stand, and at the end with fewer", async () => {
    const loop = await shared();
    const samples = samplesOf("a 3", "b 1", "a 1", "c 7", "b 2", "d 4", "5");
    expect(scoresOf(await streamed(loop, samples, { size: 2 }))).toEqual([1, 0, 0, 0, 1, 0, 0]);
    // One without a name waits for nobody; c and d are whole with the input.
    expect(await called()).toEqual(["3 1", "1 2", "5", "7", "4"]);
  });

  test("with as many samples as are said of it, and more begin another one", async () => {
    const loop = await shared();
    const samples = samplesOf("a 3", "b 1", "a 1", "a 2", "b 2", "a 8", "a 9");
    const size = ({ context }: RewardSample): number => (context?.group === "a" ? 3 : 2);
    expect(scoresOf(await streamed(loop, samples, { size }))).toEqual([1, 0, 0, 0.5, 1, 0, 1]);
    expect(await called()).toEqual(["3 1 2", "1 2", "8 9"]);
  });

  test("with the first sample of another one", async () => {
    const loop = await shared();
    const samples = samplesOf("a 3", "a 1", "b 2", "a 5", "9", "a 6", "a 4");
    const groups = { size: "consecutive" } as const;
    expect(scoresOf(await streamed(loop, samples, groups))).toEqual([1, 0, 0, 0, 0, 1, 0]);
    expect(await called()).toEqual(["3 1", "2", "5", "9", "6 4"]);
  });

  test("with the input", async () => {
    const loop = await shared();
    const samples = samplesOf("a 3", "b 2", "a 1", "b 1", "a 2");
    expect(scoresOf(await streamed(loop, samples, { size: "input" }))).toEqual([1, 1, 0, 0, 0.5]);
    expect(await called()).toEqual(["3 1 2", "2 1"]);
  });

  test("and where more samples wait for others than may, the stream says so", async () => {
    const loop = await shared();
    const samples = samplesOf("a 1", "b 1", "c 1", "d 1", "a 2", "b 2", "c 2", "d 2");
    await expect(streamed(loop, samples, { size: 2, mostHeld: 3 })).rejects.toMatchObject({
      code: "REWARD_GROUP",
      open: 4,
      mostHeld: 3,
    });
    expect(await streamed(loop, samples, { size: 2, mostHeld: 4 })).toHaveLength(8);
  });
});

test("a function that has no size for a group is refused with the group's name, and one for none is not asked", async () => {
  const loop = await shared();
  const sizes: Readonly<Record<string, number | undefined>> = { a: 2, c: 0, d: 1.5 };
  const ofSize = (...texts: readonly string[]): Promise<ScoredSample[]> =>
    streamed(loop, samplesOf(...texts), {
      size: ({ context }) => sizes[context?.group ?? expect.unreachable("it has none")] as number,
    });
  expect(scoresOf(await ofSize("a 3", "7", "a 1"))).toEqual([1, 0, 0]);
  for (const group of ["b", "c", "d"]) {
    await expect(ofSize("a 3", `${group} 1`)).rejects.toMatchObject({
      code: "REWARD_LOOP_OPTION",
      option: "groups.size",
      expected: `a whole number of at least 1 for the group "${group}"`,
      value: String(sizes[group]),
    });
  }
});

describe("the input is read", () => {
  test("no further than there is room, and a group", async () => {
    await using loop = await open({ concurrency: 2 });
    let [read, done, most] = [0, 0, 0];
    async function* input(): AsyncGenerator<RewardSample> {
      for (let group = 0; group < 40; group++) {
        for (const sample of samplesOf(`${group} 1`, `${group} 2`, `${group} 3`)) {
          read += 1;
          most = Math.max(most, read - done);
          yield sample;
        }
      }
    }
    for await (const _ of loop.scoreStream(input(), { groups: { size: 3 } })) done += 1;
    expect(done).toBe(120);
    // Two groups at work, one ready, one of which a sample is read, and two that have finished.
    expect(most).toBeLessThanOrEqual(5 * 3 + 1);
  });

  test("and samples of a function that takes one begin before their group is whole", async () => {
    const loop = await ofMeans();
    const begun = Promise.withResolvers<void>();
    async function* input(): AsyncGenerator<RewardSample> {
      yield* samplesOf("a 3");
      await begun.promise;
      yield* samplesOf("a down");
    }
    const onOutcome = async (): Promise<void> => begun.resolve();
    const scored = await streamed(loop, input(), { size: 2 }, { onOutcome });
    expect(scoresOf(scored)).toEqual([3, 3]);
  });
});

describe("is put right as a whole", () => {
  test("by the mean of those that have a score", async () => {
    const loop = await ofMeans();
    const told: ScoredSample[] = [];
    const scored = await streamed(
      loop,
      samplesOf("a 1", "b down", "a down", "b down", "a 4"),
      { size: "input" },
      { onOutcome: async (one) => void told.push(one) },
    );
    expect(scoresOf(scored)).toEqual([1, "SCORE_THREW", 2.5, "SCORE_THREW", 4]);
    expect(scored[2]).toMatchObject({
      outcome: { rewardExtraInfo: { fallback: true, error: "SCORE_THREW" } },
      given: { valid: false },
    });
    // Each as it was scored, and then what became of one.
    expect(told).toHaveLength(6);
    expect(told.at(-1)).toMatchObject({ index: 2, outcome: { rewardScore: 2.5 } });
    expect(told.filter(({ given }) => given !== undefined)).toHaveLength(1);
  });

  test.each([
    ["MeanFree", ["a 1", "a 3", "b 5"], [-1, 1, 0]],
    ["FillsByMean", ["a 1", "a throw", "a -9", "a 17"], [1, 3, 3, 17]],
    ["DropsBest", ["a 1", "a 10"], [1, "INVALID_SCORE"]],
    ["InPlace", ["a 1", "a 0"], [1, 10]],
    ["InPlace", ["a 2", "a 0"], [2, 20]],
    ["InPlace", ["a 3", "a 30"], ["INVALID_SCORE", "INVALID_SCORE"]],
    ["InPlace", ["a 4", "a 40"], ["INVALID_SCORE", "INVALID_SCORE"]],
    ["InPlace", ["a 5", "a 50"], ["INVALID_SCORE", "INVALID_SCORE"]],
    ["BadGroups", ["a 2", "a 5", "b 4", "b 6"], ["SCORE_THREW", "SCORE_THREW", -1, 1]],
  ])("by the user's postProcessScores (%s)", async (name, texts, scores) => {
    const loop = await shared({ reward: `${fixture("agents.ts")}:${name}` });
    const scored = await streamed(loop, samplesOf(...texts), { size: "consecutive" });
    expect(scoresOf(scored)).toEqual(scores);
    for (const { outcome, given } of scored) {
      if (given !== undefined) expect(scoreOf(outcome)).not.toBe(scoreOf(given));
    }
  });

  test.each([
    ["throws", "BadGroups", ["a 2", "a 5", "b 4", "b 6"], [0.5, 0.5, -1, 1], "SCORE_THREW"],
    ["gives too few", "BadGroups", ["a 1", "a 5"], [0.5, 0.5], "INVALID_SCORE"],
    ["never ends", "BadGroups", ["a 3", "a 5"], [0.5, 0.5], "SCORE_TIMEOUT"],
    ["takes one away", "DropsBest", ["a 1", "a 10"], [1, 0.5], "INVALID_SCORE"],
  ])("with a fallback where postProcessScores %s", async (_, name, texts, scores, code) => {
    const reward = `${fixture("agents.ts")}:${name}`;
    const onFailure = { fallback: 0.5 };
    const loop = await shared({ reward, onFailure, timeoutMs: 1_000 });
    const scored = await streamed(loop, samplesOf(...texts), { size: "consecutive" });
    expect(scoresOf(scored)).toEqual(scores);
    const filled = scored.filter(({ outcome }) => scoreOf(outcome) === 0.5);
    for (const { outcome } of filled) {
      expect(outcome).toMatchObject({ rewardExtraInfo: { fallback: true, error: code } });
    }
  });
});

describe("ends", () => {
  // groups.test.ts has all three of a batch.
  test.each(sized({ gate: ["exit"], full: ["block", "wait", "exit"] }))(
    "by its deadline, alone (%s)",
    async (word) => {
      await using loop = await open({ executors: 2, timeoutMs: 1_000 });
      const samples = samplesOf("bad 1", "good 1", `bad ${word}`, "good 2");
      const code = word === "exit" ? "EXECUTOR_DIED" : "SCORE_TIMEOUT";
      expect(scoresOf(await streamed(loop, samples, { size: 2 }))).toEqual([code, 0, code, 1]);
    },
  );

  test("by a signal: what is held is dropped, and the loop can be used again", async () => {
    const loop = await shared();
    const { signal, abort } = controller();
    async function* input(): AsyncGenerator<RewardSample> {
      yield* samplesOf("b 1", "a 1", "a 2");
      for (;;) yield* samplesOf("c 0");
    }
    const run = async (): Promise<void> => {
      for await (const _ of loop.scoreStream(input(), { groups: { size: 2 }, signal })) abort();
    };
    await expect(run()).rejects.toThrow("enough");
    expect((await called()).includes("1")).toBe(false);
    expect(scoresOf(await streamed(loop, samplesOf("a 1", "a 2"), { size: 2 }))).toEqual([0, 1]);
  });

  test("by draining: what is held is not scored, what is scored stays as it is", async () => {
    const { signal, abort } = controller();
    const begun = Promise.withResolvers<void>();
    async function* input(): AsyncGenerator<RewardSample> {
      yield* samplesOf("a 1", "b 3", "a 3");
      await begun.promise;
      abort();
      yield* samplesOf("b 5");
    }
    const onOutcome = async ({ sample }: ScoredSample): Promise<void> => {
      if (sample.response === "3") begun.resolve();
    };
    const options = { drain: signal, onOutcome };
    const together = await shared();
    const scored = await streamed(together, input(), { size: 2 }, options);
    expect(scored.flatMap(({ index, outcome }) => [[index, scoreOf(outcome)]])).toEqual([
      [0, 0],
      [2, 1],
    ]);
    expect(await called()).toEqual(["1 3"]);
  });

  test("by draining: of a function that takes one, what is scored is not put right", async () => {
    const { signal, abort } = controller();
    const onOutcome = async (): Promise<void> => abort();
    async function* input(): AsyncGenerator<RewardSample> {
      yield* samplesOf("a down");
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      yield* samplesOf("a 5");
    }
    const loop = await ofMeans();
    const scored = await streamed(loop, input(), { size: 2 }, { drain: signal, onOutcome });
    expect(scoresOf(scored)).toEqual(["SCORE_THREW"]);
    expect(await called()).toEqual(["down"]);
  });

  test("by the end of the loop", async () => {
    const loop = await open({ timeoutMs: undefined });
    const waiting = streamed(loop, samplesOf("a wait", "a 1"), { size: 2 });
    const failed = expect(waiting).rejects.toMatchObject({ code: "REWARD_LOOP_CLOSED" });
    await expect.poll(noted).toEqual(["wait 1"]);
    await loop.close();
    await failed;
  });
});

describe("a run that goes on", () => {
  const record = (): string => join(folder, "rewards.jsonl");

  test("asks for all of a group of which one has no line, and for no other", async () => {
    const samples = samplesOf("a 1", "b 3", "a 2", "b 4");
    await (async () => {
      await using loop = await open({ record: record() });
      await streamed(loop, samples, { size: 2 });
    })();
    expect(await called()).toEqual(["1 2", "3 4"]);
    // Killed in the middle of the last group's lines.
    const lines = (await readFile(record(), "utf8")).split("\n");
    await writeFile(record(), `${lines.slice(0, 3).join("\n")}\n${lines[3]?.slice(0, 40)}`);
    await using loop = await open({ record: record(), resume: true });
    expect(scoresOf(await streamed(loop, samples, { size: 2 }))).toEqual([0, 0, 1, 1]);
    expect(await called()).toEqual(["3 4"]);
    await loop.close();
    const counted = [...(await outcomesIn(record())).values()];
    expect(counted.toSorted((a, b) => a.index - b.index)).toMatchObject([
      { score: 0, group: "a" },
      { score: 1, group: "a" },
      { score: 0, group: "b" },
      { score: 1, group: "b" },
    ]);
    // Scores of one call stand together.
    const all = await Array.fromAsync(readRewardLog(record()));
    expect(all.slice(-2)).toMatchObject([{ group: "b" }, { group: "b" }]);
  });

  test("and of a function that takes one for what has no score: the others count in the mean", async () => {
    const samples = samplesOf("a 1", "a down", "a 4");
    const options = { record: record(), onFailure: { fallback: "groupMean" } } as const;
    await (async () => {
      await using loop = await openSingle(options);
      expect(scoresOf(await streamed(loop, samples, { size: 3 }))).toEqual([1, 2.5, 4]);
    })();
    expect((await called()).toSorted()).toEqual(["1", "4", "down"]);
    await using loop = await openSingle({ ...options, resume: true });
    expect(scoresOf(await streamed(loop, samples, { size: 3 }))).toEqual([1, 2.5, 4]);
    expect(await called()).toEqual(["down"]);
  });

  test("takes the outcomes that it is given, and those of a new call where one is missing", async () => {
    const loop = await shared();
    const before = { valid: true, rewardExtraInfo: {}, attempts: 1, latencyMs: 1, waitedMs: 0 };
    const outcome = { ...before, rewardScore: 9 } as SampleOutcome;
    const known = ({ response, context }: RewardSample): SampleOutcome | undefined =>
      response === "1" || context?.group === "b" ? outcome : undefined;
    const told: number[] = [];
    const onOutcome = async ({ index }: ScoredSample): Promise<void> => void told.push(index);
    const samples = samplesOf("a 1", "a 2", "b 3", "b 4", "c 1", "c few");
    const scored = await streamed(loop, samples, { size: 2, known }, { onOutcome });
    // Where the new call gives no score that of before stays.
    expect(scoresOf(scored)).toEqual([0, 1, 9, 9, 9, "INVALID_SCORE"]);
    expect(await called()).toEqual(["1 2", "1 few"]);
    expect(told.toSorted((a, b) => a - b)).toEqual([0, 1, 5]);
  });
});

function controller(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const one = new AbortController();
  return { signal: one.signal, abort: () => one.abort(new Error("enough")) };
}
