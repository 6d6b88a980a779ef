/** Not paying twice, and not more than is to be spent. */

import { mkdir, mkdtemp, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { setImmediate } from "node:timers/promises";
import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Budget } from "../src/spend/cost-budget.ts";
import { ScoreCache } from "../src/spend/score-cache.ts";
import { sized } from "../../../test/fixtures/suite.ts";
import { closeLoops, fixture, loopOf, sampleOf } from "./loop.ts";
import { VirtualClock } from "./virtual-clock.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(async () => {
  await closeLoops();
  await ray.shutdown();
});

let cache = "";
beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-cache-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  cache = join(folder, "scores.sqlite");
});

const priced = fixture("priced.ts");
const paidByToken = {
  reward: priced,
  spend: { prices: { perMillionInputTokens: 1e4, perMillionOutputTokens: 1e5 } },
};

async function scored(
  options: RewardLoopOptions,
  texts: readonly string[],
): Promise<SampleOutcome[]> {
  await using loop = await RewardLoopManager.create({ workers: 1, executors: 1, ...options });
  return await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))));
}

const called = (outcomes: readonly SampleOutcome[]): number[] =>
  outcomes.map(({ attempts }) => attempts);

describe("a row that is none", () => {
  const rows = [sampleOf("1"), { ...sampleOf(""), response: null as never }, sampleOf("3")];

  type Option = "cache" | "joinSame" | "record";
  const each: readonly (readonly Option[])[] = [["cache"], ["joinSame"], ["record"]];
  test.each(sized({ gate: [each.flat()], full: each }).map((some) => [some] as const))(
    "is the outcome of that row, with %j, too",
    async (names) => {
      const values = { cache, joinSame: true, record: `${cache}.jsonl` };
      await using loop = await RewardLoopManager.create({
        workers: 1,
        executors: 1,
        reward: priced,
        ...Object.fromEntries(names.map((name) => [name, values[name]])),
      });
      const outcomes: SampleOutcome[] = [];
      for await (const { index, outcome } of loop.scoreStream(rows)) outcomes[index] = outcome;
      expect(outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code))).toEqual([
        1,
        "INVALID_SAMPLE",
        3,
      ]);
    },
  );
});

describe("tokens of an answer that is no score", () => {
  const { spend } = paidByToken;

  test.each(["words", "throws", "null"])("are paid for (%s)", async (text) => {
    const loop = await loopOf(paidByToken);
    const outcome = await loop.computeScore(sampleOf(text));
    expect(outcome).toMatchObject({ valid: false, cost: 2 });
  });

  test("count towards the cap, and each try counts", async () => {
    const options: RewardLoopOptions = {
      reward: priced,
      spend: { ...spend, cap: 5 },
      retry: { attempts: 2, classes: ["user-code", "data"], baseMs: 1 },
      workers: 1,
      executors: 1,
    };
    await using loop = await RewardLoopManager.create(options);
    const first = await loop.computeScore(sampleOf("words"));
    expect(first).toMatchObject({ valid: false, attempts: 2, cost: 4 });
    expect(await loop.computeScore(sampleOf("1"))).toMatchObject({ valid: true, cost: 2 });
    expect(loop.spent).toBe(6);
    expect(await loop.computeScore(sampleOf("2"))).toMatchObject({
      error: { code: "SPEND_CAP" },
    });
  });
});

/** Ours, so far. */
function warningsOfThisTest(): () => string[] {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  return () =>
    warnings.filter(({ name }) => name === "RaylingWarning").map(({ message }) => message);
}

describe("a cache", () => {
  test("knows what was scored before, by that function with those settings, and nothing that failed", async () => {
    const options = { reward: { path: priced, rewardKwargs: { factor: 2 } }, cache };
    const first = await scored(options, ["1", "2", "bad", "2"]);
    expect(first.map((one) => (one.valid ? one.rewardScore : null))).toEqual([2, 4, null, 4]);
    expect(called(first)).toEqual([1, 1, 1, 0]);
    const second = await scored(options, ["1", "2", "bad", "3"]);
    expect(called(second)).toEqual([0, 0, 1, 1]);
    expect(second[0]).toEqual({
      valid: true,
      rewardScore: 2,
      rewardExtraInfo: { score: 2, usage: { prompt_tokens: 100, completion_tokens: 10 } },
      attempts: 0,
      latencyMs: 0,
      waitedMs: 0,
      cached: true,
      cost: 0,
      version: first[0]?.version,
    });
    expect(first[0]?.version).toMatch(/^[\w-]{16}$/);
    const other = { reward: { path: priced, rewardKwargs: { factor: 3 } }, cache };
    expect(called(await scored(other, ["1", "2"]))).toEqual([1, 1]);
  });

  test("lies where relative paths start", async () => {
    const options = { reward: { path: priced }, baseDirectory: dirname(cache) };
    expect(called(await scored({ ...options, cache: "own.sqlite" }, ["1"]))).toEqual([1]);
    const there = join(dirname(cache), "own.sqlite");
    expect(called(await scored({ ...options, cache: there }, ["1"]))).toEqual([0]);
  });

  test("in memory is the loop's alone", async () => {
    const options = { reward: priced, cache: ":memory:", baseDirectory: dirname(cache) };
    expect(called(await scored(options, ["1", "1"]))).toEqual([1, 0]);
    expect(called(await scored(options, ["1"]))).toEqual([1]);
    expect(await readdir(dirname(cache))).toEqual([]);
  });

  test.each(["", 5])("of %j is refused", async (path) => {
    await expect(scored({ reward: priced, cache: path as string }, [])).rejects.toThrow("cache");
  });

  test("that cannot be used any more says so once, with its path and how many scores it does not keep, and costs none", async () => {
    const told = warningsOfThisTest();
    const options = { workers: 1, executors: 1, reward: { path: priced }, cache };
    await using loop = await RewardLoopManager.create(options);
    const first = await loop.computeScore(sampleOf("1"));
    expect(called([first, await loop.computeScore(sampleOf("1"))])).toEqual([1, 0]);
    const other = new DatabaseSync(cache);
    other.exec("DROP TABLE scores");
    other.close();
    const later = [await loop.computeScore(sampleOf("1")), await loop.computeScore(sampleOf("2"))];
    expect(later.map(({ valid }) => valid)).toEqual([true, true]);
    expect(called(later)).toEqual([1, 1]);
    await loop.close();
    await setImmediate();
    const name = `the cache of scores ${JSON.stringify(cache)}`;
    expect(told()).toEqual([
      expect.stringMatching(/ does not give all of its scores, .* no such table/) as string,
      expect.stringMatching(/ cannot be written: .* no such table/) as string,
      expect.stringMatching(/ does not keep 2 of the scores of this run.* no such table/) as string,
    ]);
    expect(told().filter((text) => text.startsWith(name))).toHaveLength(3);
  });

  test("whose rows are damaged gives no score that nobody gave", async () => {
    const told = warningsOfThisTest();
    const options = { workers: 1, executors: 1, reward: { path: priced }, cache };
    const damage = (result: string): void => {
      const other = new DatabaseSync(cache);
      other.prepare("UPDATE scores SET result = ?").run(result);
      other.close();
    };
    {
      await using loop = await RewardLoopManager.create(options);
      for (const _ of [1, 2]) {
        const outcome = await loop.computeScore(sampleOf("1"));
        expect(outcome).toMatchObject({ valid: true, attempts: 1 });
        damage("null");
      }
    }
    expect(told()).toHaveLength(1);
    for (const damaged of ['{"rewardExtraInfo":{}}', '{"rewardScore":1', "5"]) {
      const own = await ScoreCache.open(cache);
      own.keep("v", "one", { rewardScore: 1, rewardExtraInfo: {} });
      expect(own.find("v", "one")).toMatchObject({ rewardScore: 1 });
      damage(damaged);
      expect(() => own.find("v", "one")).toThrow();
      await own.close();
    }
  });

  test("knows results with fields that say nothing, without them", async () => {
    const own = await ScoreCache.open(cache);
    const usage = undefined;
    own.keep("v", "one", { rewardScore: 1, rewardExtraInfo: { usage, a: [{ b: usage, c: 2 }] } });
    expect(own.find("v", "one")).toEqual({
      rewardScore: 1,
      rewardExtraInfo: { a: [{ c: 2 }] },
    });
    expect(Object.keys(own.find("v", "one")?.rewardExtraInfo ?? {})).toEqual(["a"]);
    await own.close();
    const told = warningsOfThisTest();
    const options = { reward: { path: priced }, cache };
    expect(called(await scored(options, ["no usage 1", "no usage 1", "no usage 2"]))).toEqual([
      1, 0, 1,
    ]);
    expect(called(await scored(options, ["no usage 1", "no usage 2"]))).toEqual([0, 0]);
    expect(told()).toEqual([]);
  });

  test("is no place for what JSON would change, and says so once", async () => {
    const told = warningsOfThisTest();
    const own = await ScoreCache.open(cache);
    own.keep("v", "plain", { rewardScore: 1, rewardExtraInfo: { a: [null, "x", { b: true }] } });
    own.keep("v", "odd", { rewardScore: 1, rewardExtraInfo: { when: new Date(0) } });
    own.keep("v", "nan", { rewardScore: 1, rewardExtraInfo: { n: Number.NaN } });
    own.keep("v", "big", { rewardScore: 1, rewardExtraInfo: { n: 1n } });
    own.keep("v", "zero", { rewardScore: -0, rewardExtraInfo: { list: [-0, 0] } });
    own.keep("v", "gap", { rewardScore: 1, rewardExtraInfo: { list: [1, undefined] } });
    expect(own.find("v", "plain")?.rewardExtraInfo).toEqual({ a: [null, "x", { b: true }] });
    // One that looks like what stands for a number is none.
    own.keep("v", "alike", { rewardScore: 1, rewardExtraInfo: { n: { $number: "NaN" } } });
    expect(["odd", "gap", "alike", "none"].map((key) => own.find("v", key))).toEqual(
      Array(4).fill(undefined),
    );
    // Numbers come back as they were.
    expect(own.find("v", "nan")?.rewardExtraInfo).toEqual({ n: Number.NaN });
    expect(own.find("v", "big")?.rewardExtraInfo).toEqual({ n: 1n });
    // toEqual tells -0 from 0.
    expect(own.find("v", "zero")).toEqual({ rewardScore: -0, rewardExtraInfo: { list: [-0, 0] } });
    expect(own.find("w", "plain")).toBeUndefined();
    await own.close();
    await setImmediate();
    expect(told()).toEqual([expect.stringContaining('results whose "when"') as string]);
  });

  /** Another program that has the lock until it is called. */
  function locked(): () => void {
    const other = new DatabaseSync(cache);
    other.exec("BEGIN IMMEDIATE");
    return () => other.close();
  }

  const result = (rewardScore: number) => ({ rewardScore, rewardExtraInfo: { rewardScore } });

  test("whose file another program has locked keeps scores until it is free", async () => {
    const told = warningsOfThisTest();
    const clock = new VirtualClock();
    const own = await ScoreCache.open(cache, { clock });
    // A second process, for which nothing is to be written when it opens the file.
    let unlock = locked();
    const second = await ScoreCache.open(cache);
    for (let index = 0; index < 2_000; index++) own.keep("v", String(index), result(index));
    await clock.advanceTo(60_000);
    expect(own.find("v", "1999")).toEqual(result(1999));
    expect(second.find("v", "1999")).toBeUndefined();
    unlock();
    await clock.advanceTo(70_000);
    const keys = ["0", "1000", "1999"];
    expect(keys.map((key) => second.find("v", key))).toEqual([0, 1000, 1999].map(result));
    // What is locked when it is closed is waited for.
    unlock = locked();
    own.keep("v", "last", result(5));
    const closing = own.close();
    unlock();
    await closing;
    expect(second.find("v", "last")).toEqual(result(5));
    await second.close();
    expect(told()).toEqual([]);
  });

  test("that stays locked says how many scores it does not keep, and closes", async () => {
    const told = warningsOfThisTest();
    const own = await ScoreCache.open(cache, { closeMs: 0, mostCharacters: 150 });
    const unlock = locked();
    for (let index = 0; index < 5; index++) own.keep("v", String(index), result(index));
    // The last ones did not find room.
    expect(own.find("v", "0")).toEqual(result(0));
    expect(own.find("v", "4")).toBeUndefined();
    await own.close();
    unlock();
    await setImmediate();
    expect(told()).toEqual([expect.stringContaining("does not keep 5 of the scores") as string]);
  });

  test("whose file is removed or replaced says how many scores went with it, and goes on in the new one", async () => {
    const told = warningsOfThisTest();
    const clock = new VirtualClock();
    const own = await ScoreCache.open(cache, { clock });
    for (const key of ["a", "b"]) own.keep("v", key, result(1));
    await rm(cache);
    own.keep("v", "c", result(1));
    await clock.advanceTo(10_000);
    own.keep("v", "d", result(4));
    expect(own.find("v", "a")).toBeUndefined();
    const second = await ScoreCache.open(cache);
    expect(second.find("v", "d")).toEqual(result(4));
    await second.close();
    // It has gone, and no other one can be there: scoring goes on without, and says so.
    await rm(cache);
    await mkdir(cache);
    await clock.advanceTo(20_000);
    expect(() => own.keep("v", "e", result(5))).toThrow("scores.sqlite");
    expect(own.find("v", "d")).toBeUndefined();
    await rmdir(cache);
    await clock.advanceTo(30_000);
    own.keep("v", "f", result(6));
    await rename(cache, `${cache}.1`);
    await writeFile(cache, "");
    await own.close();
    await setImmediate();
    expect(told()).toEqual([
      expect.stringContaining("was removed while it was in use: 3 of the scores") as string,
      expect.stringContaining("took the place of the cache of scores") as string,
      expect.stringContaining("in use: 1 of the scores of this run are not in it") as string,
      // The one for which no file could be opened.
      expect.stringContaining("does not keep 1 of the scores of this run") as string,
    ]);
    expect(await readFile(cache, "utf8")).toBe("");
  });

  test("that is none, or of another layout, is refused and left as it is", async () => {
    await writeFile(
      cache,
      "this is a text and no database, and long enough to be seen as one".repeat(99),
    );
    await expect(scored({ reward: priced, cache }, [])).rejects.toMatchObject({
      name: "RewardCacheError",
      path: cache,
    });
    await rm(cache);
    const other = new DatabaseSync(cache);
    other.exec("PRAGMA user_version = 77");
    other.close();
    await expect(scored({ reward: priced, cache }, [])).rejects.toThrow(
      "it has the layout 77, not 1",
    );
  });
});

test("samples that say the same and come together are asked for once", async () => {
  const texts = ["1", "1", "bad", "bad", "2"];
  const joined = await scored({ reward: priced, joinSame: true }, texts);
  expect(called(joined)).toEqual([1, 0, 1, 0, 1]);
  expect(joined.map(({ valid }) => valid)).toEqual([true, true, false, false, true]);
  // Each has extra info of its own.
  const [first, second] = joined.map((one) => (one.valid ? one.rewardExtraInfo : {}));
  expect(second).toEqual(first);
  Object.assign(first ?? {}, { mine: 1 });
  expect(second).not.toHaveProperty("mine");
  const loop = await loopOf(paidByToken);
  const apart = await Promise.all(texts.map((text) => loop.computeScore(sampleOf(text))));
  expect(called(apart)).toEqual([1, 1, 1, 1, 1]);
});

describe("spending", () => {
  test("is what scores say they used, at their prices", () => {
    const budget = new Budget({
      prices: { perMillionInputTokens: 2, perMillionOutputTokens: 10, perCall: 0.001 },
      cap: 0.01,
    });
    const usage = { prompt_tokens: 1000, completion_tokens: 100 };
    const outcome = { latencyMs: 1, waitedMs: 0, attempts: 2 };
    expect(
      budget.pay({ valid: true, rewardScore: 1, rewardExtraInfo: { usage }, ...outcome }),
    ).toBeCloseTo(0.005, 12);
    const error = { code: "SCORE_THREW", name: "Error", message: "" } as const;
    expect(budget.pay({ valid: false, error, ...outcome })).toBeCloseTo(0.002, 12);
    expect(budget.isEmpty).toBe(false);
    budget.pay({ valid: true, rewardScore: 1, rewardExtraInfo: {}, ...outcome, attempts: 3 });
    expect(budget.spent).toBeCloseTo(0.01, 12);
    expect(budget.isEmpty).toBe(true);
  });

  test("ends at its cap: what comes after is not called, and says so", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      reward: priced,
      spend: { prices: { perCall: 1 }, cap: 3 },
    });
    const outcomes: SampleOutcome[] = [];
    for (const text of ["1", "2", "3", "4", "5"])
      outcomes.push(await loop.computeScore(sampleOf(text)));
    expect(outcomes.map((one) => (one.valid ? one.cost : one.error.code))).toEqual([
      1,
      1,
      1,
      "SPEND_CAP",
      "SPEND_CAP",
    ]);
    expect(loop.spent).toBe(3);
  });

  test("holds for a batch that is submitted at once: what waits when it is reached is not called", async () => {
    await using loop = await RewardLoopManager.create({
      workers: 1,
      executors: 1,
      concurrency: 4,
      reward: priced,
      spend: { prices: { perCall: 1 }, cap: 10 },
    });
    const outcomes = await Promise.all(
      Array.from({ length: 200 }, (_, index) => loop.computeScore(sampleOf(String(index)))),
    );
    const paid = outcomes.filter((one) => one.valid).length;
    // Those that were under way with the tenth are finished.
    expect(paid).toBeGreaterThanOrEqual(10);
    expect(paid).toBeLessThan(10 + 4);
    expect(loop.spent).toBe(paid);
    expect(outcomes.filter((one) => !one.valid && one.error.code === "SPEND_CAP")).toHaveLength(
      200 - paid,
    );
  });

  test("goes on where the run before it ended, by its log", async () => {
    const record = join(cache, "../rewards.jsonl");
    const spent: number[] = [];
    const codes = async (texts: readonly string[]): Promise<unknown[]> => {
      await using loop = await RewardLoopManager.create({
        workers: 1,
        executors: 1,
        reward: priced,
        record,
        spentBefore: record,
        spend: { prices: { perCall: 1 }, cap: 3 },
      });
      spent.push(loop.spent);
      const said: unknown[] = [];
      for (const text of texts) {
        const outcome = await loop.computeScore(sampleOf(text));
        said.push(outcome.valid ? outcome.cost : outcome.error.code);
      }
      expect(loop.spending).toMatchObject([{ spent: loop.spent, cap: 3 }]);
      return said;
    };
    // A score that failed was paid for, too.
    expect(await codes(["1", "bad"])).toEqual([1, "SCORE_THREW"]);
    expect(await codes(["2", "3"])).toEqual([1, "SPEND_CAP"]);
    expect(await codes(["3"])).toEqual(["SPEND_CAP"]);
    expect(spent).toEqual([0, 2, 3]);
    await writeFile(record, "{}\n");
    await expect(codes([])).rejects.toMatchObject({ name: "RewardLogError", path: record });
  });

  test.each([
    [{ prices: { perToken: 1 } }, "spend.prices.perToken must be one of"],
    [{ prices: { perCall: -1 } }, "spend.prices.perCall must be a number of at least 0"],
    [{ price: {} }, "spend.price must be one of prices, cap"],
    [{ prices: {}, cap: -1 }, "spend.cap must be"],
  ])("%j is refused", async (spend, message) => {
    await expect(scored({ spend } as never, [])).rejects.toThrow(message);
  });
});
