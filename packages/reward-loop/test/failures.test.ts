/** One sample fails in every way there is; it is told with its reason and all others are scored. */

import * as ray from "@rayling/core";
import { RewardLoopManager } from "@rayling/reward-loop";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { classOf } from "../src/faults/failure-class.ts";
import {
  expectOnlyInvalid,
  failureAt,
  fixture,
  numbers,
  sampleOf,
  scoreByDeadline,
  scoreTexts,
} from "./loop.ts";
import { inFull, sized } from "../../../test/fixtures/suite.ts";

beforeAll(() => ray.init({ isolation: "shared", prewarm: 0 }));
afterAll(() => ray.shutdown());

const kinds: readonly [string, string][] = [
  ["sync", "synchronous"],
  ["later", "asynchronous, after an await"],
  // It fails as the first, and is awaited as the second.
  ["atOnce", "asynchronous"],
];

describe.each(sized({ gate: kinds.slice(0, 2), full: kinds }))(
  "a score function that is %s: %s",
  (name) => {
    const reward = `${fixture("troublemaker.ts")}:${name}`;

    test("throws, hangs and returns garbage on some samples: exactly those are invalid", async () => {
      const { outcomes, timeoutMs } = await scoreByDeadline(
        () => ({ reward }),
        numbers(24, { 2: "throw", 5: "spin", 6: "hang", 15: "garbage" }),
      );
      expectOnlyInvalid(outcomes, {
        2: "SCORE_THREW",
        5: "SCORE_TIMEOUT",
        6: "SCORE_TIMEOUT",
        15: "INVALID_SCORE",
      });
      expect(failureAt(outcomes, 2)).toMatchObject({
        name: "RangeError",
        message: "this sample is out of range",
      });
      expect(failureAt(outcomes, 2).stack).toContain("troublemaker.ts");
      expect(failureAt(outcomes, 5).message).toContain(`${timeoutMs} ms`);
      expect(classOf(failureAt(outcomes, 5))).toBe("user-code");
      expect(failureAt(outcomes, 15).message).toContain("an object with the keys verdict");
    });

    test.runIf(
      name === "later" || inFull("what travels is the same, however it was told; `later` has it"),
    )("says something that cannot travel: it travels as text, and the score is kept", async () => {
      const outcomes = await scoreTexts(
        { reward },
        numbers(8, { 3: "unsendable", 5: "unreadable" }),
      );
      expect(outcomes.filter(({ valid }) => !valid)).toEqual([]);
      expect(outcomes[3]).toMatchObject({
        rewardScore: 1,
        rewardExtraInfo: {
          callback: "[Function: callback]",
          nested: [{ answer: expect.stringContaining("Promise"), kept: [1, "two"] }],
        },
      });
      expect(outcomes[5]).toMatchObject({
        rewardScore: 1,
        rewardExtraInfo: { gone: expect.any(String), reason: "kept" },
      });
    });
  },
);

test("a result that hangs whoever reads it is found, however deep it lies", async () => {
  const { outcomes } = await scoreByDeadline(
    () => ({ reward: `${fixture("troublemaker.ts")}:later` }),
    numbers(16, { 3: "trap", 12: "deep trap" }),
  );
  expectOnlyInvalid(outcomes, { 3: "SCORE_TIMEOUT", 12: "SCORE_TIMEOUT" });
});

test("a function that blocks its thread is asked again only where it was new there, and its endpoint not held to blame", async () => {
  const { outcomes } = await scoreByDeadline(
    (timeoutMs) => ({
      reward: `${fixture("troublemaker.ts")}:later`,
      concurrency: 1,
      retry: { attempts: 3, baseMs: 1, budget: Infinity },
      limits: {
        endpoint: `blocked threads, ${timeoutMs} ms`,
        breaker: { window: 2, threshold: 0.5, openMs: 1e9 },
      },
    }),
    numbers(4, { 0: "hang", 1: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 0: "SCORE_TIMEOUT", 1: "SCORE_TIMEOUT" });
  // Both come first to a new thread, the second one behind the end of that of the first.
  expect(outcomes.map(({ attempts }) => attempts)).toEqual([2, 2, 1, 1]);
});

test("promises that never settle, more than there is room for, are told at their deadline, and do not starve the others", async () => {
  const waiting = Object.fromEntries(
    Array.from({ length: 5 }, (_, index) => [2 * index, "wait forever"]),
  );
  const { outcomes } = await scoreByDeadline(
    () => ({ reward: `${fixture("troublemaker.ts")}:later`, concurrency: 2 }),
    numbers(14, waiting),
  );
  expectOnlyInvalid(
    outcomes,
    Object.fromEntries(Object.keys(waiting).map((index) => [index, "SCORE_TIMEOUT"])),
  );
  expect(classOf(failureAt(outcomes, 0))).toBe("timeout");
});

test("a sample whose thread is blocked by what another left behind is scored elsewhere", async () => {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 1,
    timeoutMs: 500,
    reward: `${fixture("troublemaker.ts")}:leavesBlock`,
  });
  const scores = async (text: string): Promise<unknown> => {
    const outcome = await loop.computeScore(sampleOf(text));
    return outcome.valid ? [outcome.rewardScore, outcome.attempts] : outcome.error;
  };
  const channel = new BroadcastChannel("rayling left behind");
  onTestFinished(() => channel.close());
  const isBlocked = new Promise((resolve) => channel.addEventListener("message", resolve));
  expect(await scores("1")).toEqual([1, 1]);
  channel.postMessage("block");
  await isBlocked;
  expect(await scores("2")).toEqual([2, 1]);
});

test("the deadline counts from the start of the function, not from the dispatch", async () => {
  // One executor, ten samples of a fifth of the deadline, one after the other: the last waits twice as long as the deadline.
  const { outcomes } = await scoreByDeadline(
    (timeoutMs) => ({
      reward: {
        path: fixture("troublemaker.ts"),
        name: "busy",
        rewardKwargs: { ms: timeoutMs / 5 },
      },
    }),
    numbers(10),
  );
  expectOnlyInvalid(outcomes, {});
});

test.runIf(
  inFull(
    "the hangs above have others behind them in their threads, of which none is told as timed out",
  ),
)("samples that wait while another blocks their thread are not told as timed out", async () => {
  const { outcomes } = await scoreByDeadline(
    () => ({ reward: `${fixture("troublemaker.ts")}:later`, concurrency: 16 }),
    numbers(16, { 15: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 15: "SCORE_TIMEOUT" });
});

test("a user's own manager and tokenizer run on the clock too", async () => {
  const { outcomes } = await scoreByDeadline(
    () => ({
      reward: `${fixture("rewards.ts")}:value`,
      manager: { path: fixture("own-parts.ts"), name: "PenaltyManager" },
      managerOptions: { penalty: 0 },
    }),
    numbers(12, { 4: "hang" }),
  );
  expectOnlyInvalid(outcomes, { 4: "SCORE_TIMEOUT" });
});
