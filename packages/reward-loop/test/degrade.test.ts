/** What becomes of samples when all that may be spent is spent: nothing, or a cheaper judge. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as ray from "@rayling/core";
import { RewardLoopManager, rewardVersionsOf } from "@rayling/reward-loop";
import type { RewardLoopOptions, SampleOutcome } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isFull } from "../../../test/fixtures/suite.ts";
import { fixture, sampleOf } from "./loop.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const part = (name: string): string => fixture(`parts.ts:${name}`);
const cheaper = { path: fixture("parts.ts"), name: "judge", rewardKwargs: { worth: 0.25 } };

async function oneByOne(
  loop: RewardLoopManager,
  texts: readonly string[],
): Promise<SampleOutcome[]> {
  const outcomes: SampleOutcome[] = [];
  for (const text of texts) outcomes.push(await loop.computeScore(sampleOf(text)));
  return outcomes;
}

const create = (options: RewardLoopOptions): Promise<RewardLoopManager> =>
  RewardLoopManager.create({ workers: 1, executors: 1, ...options });

const saidBy = (outcomes: readonly SampleOutcome[]): unknown[] =>
  outcomes.map((one) =>
    one.valid ? [one.rewardScore, one.rewardExtraInfo["answeredBy"], one.cost] : one.error.code,
  );

function warnings(): string[] {
  const seen: string[] = [];
  const listener = ({ message }: Error): void => void seen.push(message);
  process.on("warning", listener);
  onTestFinished(() => void process.off("warning", listener));
  return seen;
}

test("a cheaper judge takes over at the cap, and every score says whose it is", async () => {
  const warned = warnings();
  await using loop = await create({
    reward: part("judge"),
    joinSame: true,
    spend: { prices: { perCall: 1 }, cap: 4, warnAt: 0.5, whenReached: { reward: cheaper } },
  });
  const before = loop.version;
  const outcomes = await oneByOne(loop, ["a", "b", "c", "unjudged", "e", "f", "unjudged"]);
  expect(saidBy(outcomes)).toEqual([
    [0.5, "main", 1],
    [0.5, "main", 1],
    [0.5, "main", 1],
    "SCORE_THREW",
    [0.25, "cheaper", 0],
    [0.25, "cheaper", 0],
    "SCORE_THREW",
  ]);
  expect(loop.answeredBy).toEqual({ main: 3, cheaper: 2 });
  expect(loop.version).not.toBe(before);
  const versions = outcomes.map(({ version }) => version);
  expect(new Set(versions.slice(0, 4))).toEqual(new Set([before]));
  expect(new Set(versions.slice(4))).toEqual(new Set([loop.version]));
  expect(loop.spending).toEqual([{ name: "", spent: 4, cap: 4, state: "reached" }]);
  await expect
    .poll(() => warned)
    .toEqual([
      "2.000 of 4 is spent on scores",
      "all that may be spent on scores is spent: 4.000 of 4",
    ]);
});

test("the cheaper one has its own prices and cap, and costs of both are told together", async () => {
  await using loop = await create({
    reward: part("judge"),
    spend: {
      prices: { perCall: 1 },
      cap: 2,
      whenReached: { reward: cheaper, spend: { prices: { perCall: 0.5 }, cap: 1 } },
    },
  });
  expect(saidBy(await oneByOne(loop, ["a", "b", "c", "d", "e"]))).toEqual([
    [0.5, "main", 1],
    [0.5, "main", 1],
    [0.25, "cheaper", 0.5],
    [0.25, "cheaper", 0.5],
    "SPEND_CAP",
  ]);
  expect(loop.spent).toBe(3);
  expect(loop.spending).toMatchObject([
    { name: "", spent: 3, cap: 2, state: "reached" },
    { name: "cheaper", spent: 1, cap: 1, state: "reached" },
  ]);
});

test("one of several rewards may have it, within a cap of all", async () => {
  await using loop = await create({
    spend: { prices: {}, cap: 4 },
    rewards: {
      length: { reward: part("words") },
      style: {
        reward: part("judge"),
        weight: 4,
        spend: {
          prices: { perCall: 1 },
          cap: 2,
          whenReached: { reward: cheaper, spend: { prices: { perCall: 1 } } },
        },
      },
    },
  });
  const outcomes = await oneByOne(loop, ["a", "b", "c", "d", "e"]);
  expect(outcomes.map((one) => (one.valid ? one.rewardScore : one.error.code))).toEqual([
    3,
    3,
    2,
    2,
    "SPEND_CAP",
  ]);
  expect(loop.answeredBy).toEqual({ "style/main": 2, "style/cheaper": 2 });
  expect(loop.spent).toBe(4);
});

test("caps of parts, and of who takes over, go on where the run before ended", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rayling-degrade-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const record = join(folder, "rewards.jsonl");
  const run = async (texts: readonly string[]): Promise<unknown> => {
    await using loop = await create({
      record,
      spentBefore: record,
      spend: { prices: {}, cap: 9 },
      rewards: {
        style: {
          reward: part("judge"),
          spend: {
            prices: { perCall: 2 },
            cap: 4,
            whenReached: { reward: cheaper, spend: { prices: { perCall: 1 }, cap: 2 } },
          },
        },
      },
    });
    const before = loop.spending.map(({ name, spent }) => [name, spent]);
    await oneByOne(loop, texts);
    return { before: Object.fromEntries(before), answeredBy: loop.answeredBy, spent: loop.spent };
  };
  expect(await run(["a", "b", "c"])).toEqual({
    before: { "": 0, style: 0, "style/cheaper": 0 },
    answeredBy: { "style/main": 2, "style/cheaper": 1 },
    spent: 5,
  });
  expect(await run(["d", "e"])).toEqual({
    before: { "": 5, style: 5, "style/cheaper": 1 },
    answeredBy: { "style/cheaper": 1 },
    spent: 6,
  });
});

test("samples of a stream are taken in by whoever is asked then, and progress says how far the cap is", async () => {
  await using loop = await create({
    reward: part("judge"),
    concurrency: 2,
    spend: { prices: { perCall: 1 }, cap: 50, whenReached: { reward: cheaper } },
  });
  const texts = Array.from({ length: 100 }, (_, index) => `text ${index}`);
  const spending: unknown[] = [];
  const stream = loop.scoreStream(texts.map(sampleOf), {
    onProgress: (progress) => spending.push(progress.spending[0]?.state),
    progressEveryMs: 1,
  });
  let count = 0;
  for await (const { outcome } of stream) {
    expect(outcome.valid).toBe(true);
    count += 1;
  }
  expect(count).toBe(100);
  const { main = 0, cheaper: other = 0 } = loop.answeredBy;
  expect(main + other).toBe(100);
  // What was under way when it was reached is finished.
  expect(main).toBeGreaterThanOrEqual(50);
  expect(main).toBeLessThanOrEqual(52);
  expect(spending.at(-1)).toBe("reached");
});

test.each([
  [{ prices: {}, whenReached: { reward: "x" } }, "spend.whenReached must be left out without cap"],
  [
    { prices: {}, cap: 1, whenReached: "degrade" },
    'spend.whenReached must be "stop" or the options',
  ],
  [
    { prices: {}, cap: 1, whenReached: { rewards: {} } },
    "spend.whenReached.rewards must be one of",
  ],
  [{ prices: {}, cap: 1 }, "spend.cap must be left out without prices"],
  [{ prices: { perCall: 1 }, warnAt: 0.5 }, "spend.warnAt must be left out without cap"],
  [{ prices: {}, cap: 1, warnAt: 2 }, "spend.warnAt must be a number above 0 and of at most 1"],
])("%j is refused", async (spend, message) => {
  await expect(create({ reward: "x", spend } as unknown as RewardLoopOptions)).rejects.toThrow(
    `Reward loop option ${message}`,
  );
});

describe("which versions outcomes will have is known before anything is started", () => {
  const capped = {
    reward: part("judge"),
    spend: { prices: { perCall: 1 }, cap: 2, whenReached: { reward: cheaper } },
  };
  const plans: Record<string, RewardLoopOptions> = {
    "one function": { reward: part("words") },
    "one with a cap": capped,
    "a cascade": { cascade: { rule: { reward: part("rule") }, judge: capped } },
    "several with weights": {
      rewards: {
        words: { reward: part("words"), weight: 0.5 },
        both: { cascade: { rule: { reward: part("rule") }, judge: capped }, onInvalid: "leaveOut" },
      },
    },
  };

  // The last one has all that the others have.
  const inGate = ["several with weights"];
  const some = Object.entries(plans).filter(([name]) => isFull || inGate.includes(name));
  test.each(some)("%s", async (_, plan) => {
    const { versions } = await rewardVersionsOf(plan);
    await using loop = await create(plan);
    expect(versions[0]).toBe(loop.version);
    const outcomes = await oneByOne(loop, ["a", "known 1", "b", "c", "d"]);
    const seen = new Set(outcomes.map(({ version }) => version));
    expect(seen.size).toBe(versions.length);
    expect(new Set(versions)).toEqual(seen);
  });

  test("and hang on what a stage of a cascade passes on", async () => {
    const passing = (passOn: "cannotTell" | "invalid"): RewardLoopOptions => ({
      cascade: { rule: { reward: part("rule"), passOn }, judge: { reward: part("judge") } },
    });
    const [one, other] = [
      await rewardVersionsOf(passing("cannotTell")),
      await rewardVersionsOf(passing("invalid")),
    ];
    expect(one.versions).not.toEqual(other.versions);
    expect(one.parts["cascade"]).not.toBe(other.parts["cascade"]);
  });

  test("and what they hang on, by name", async () => {
    const reward = { path: fixture("parts.ts"), name: "judge" };
    const before = {
      cascade: {
        rule: { reward: part("rule") },
        judge: { reward: { ...reward, rewardKwargs: { worth: 1, key: "secret" } } },
      },
    };
    const after = {
      cascade: {
        rule: { reward: part("words") },
        judge: { reward: { ...reward, rewardKwargs: { worth: 2 } } },
      },
    };
    const [one, other] = [await rewardVersionsOf(before), await rewardVersionsOf(after)];
    const names = new Set([...Object.keys(one.parts), ...Object.keys(other.parts)]);
    expect([...names].filter((name) => one.parts[name] !== other.parts[name])).toEqual([
      "rule: the reward module: its export",
      "judge: rewardKwargs.worth",
      "judge: rewardKwargs.key",
    ]);
    expect(JSON.stringify(one)).not.toContain("secret");
    await expect(rewardVersionsOf({ reward: "./no-such-module.ts" })).rejects.toThrow(
      "was not found",
    );
  });
});
