/** What the live page is told of a loop. */
import { expect, test } from "vitest";
import type { SampleOutcome } from "@rayling/reward-loop";
import { answered, combined } from "../../src/compose/combine.ts";
import { retriesIn } from "../../src/manager/loop-metrics.ts";
import { groupSampleOf, outcomesOf } from "../../src/sample/group-sample.ts";
import { latencyBounds, LoopTally } from "../../src/manager/loop-tally.ts";

const measured = { attempts: 2, waitedMs: 0 };
const scored = (rewardScore: number, latencyMs: number): SampleOutcome => ({
  valid: true,
  rewardScore,
  rewardExtraInfo: {},
  latencyMs,
  ...measured,
});
const failed: SampleOutcome = {
  valid: false,
  error: { code: "SCORE_TIMEOUT", name: "TimeoutError", message: "too long" },
  latencyMs: 1e9,
  ...measured,
};

test("samples are in flight until they have an outcome, in their lane", () => {
  let now = 0;
  const tally = new LoopTally(() => now);
  tally.expect(5);
  const first = tally.begin("training");
  now = 10;
  const [second, third] = [tally.begin("training"), tally.begin("validation")];
  now = 30;
  expect(tally.state()).toMatchObject({ inFlight: 3, oldestMs: 30, done: 0, left: 5 });
  tally.end(first, scored(1, 3));
  tally.end(third, failed);
  expect(tally.state()).toMatchObject({
    elapsedMs: 30,
    inFlight: 1,
    oldestMs: 20,
    done: 2,
    left: 3,
    valid: 1,
    failures: { timeout: 1 },
    attempts: 4,
    meanScore: 1,
    lanes: [
      { lane: "training", inFlight: 1, done: 1 },
      { lane: "validation", inFlight: 0, done: 1 },
    ],
  });
  // The loop was closed: it has no outcome.
  tally.end(second, undefined);
  expect(tally.state()).toMatchObject({ inFlight: 0, oldestMs: 0, done: 2, left: 2 });
  tally.spared();
  expect(tally.state().left).toBe(1);
  tally.expect(undefined);
  tally.expect(7);
  expect(tally.state().left).toBeUndefined();
});

test("second calls of samples are added up, but not of cached ones, which have those of others", () => {
  const tally = new LoopTally(() => 0);
  const hedged: SampleOutcome = { ...scored(1, 3), hedges: { begun: 2, won: 1 } };
  tally.end(tally.begin("a"), hedged);
  tally.end(tally.begin("a"), { ...failed, hedges: { begun: 1, won: 0 } });
  tally.end(tally.begin("a"), { ...hedged, cached: true });
  expect(tally.state().hedges).toEqual({ begun: 3, won: 1 });
});

test("latencies are counted up to each bound, and beyond all; what was cached has none", () => {
  const tally = new LoopTally(() => 0);
  for (const ms of [0.5, 1, 1.5, 100_000]) tally.end(tally.begin("a"), scored(0, ms));
  tally.end(tally.begin("a"), failed);
  tally.end(tally.begin("a"), { ...scored(0, 0), cached: true });
  const { latencies, cached } = tally.state();
  expect(cached).toBe(1);
  expect(latencies).toHaveLength(latencyBounds.length + 1);
  expect([latencies[0], latencies[1], latencies.at(-2), latencies.at(-1)]).toEqual([2, 1, 1, 1]);
});

test("retries are attempts after the first one of each function, whatever the sum of attempts", () => {
  const once: SampleOutcome = { ...scored(1, 3), attempts: 1 };
  const thrice: SampleOutcome = { ...scored(1, 3), attempts: 3 };
  expect([once, thrice].map(retriesIn)).toEqual([0, 2]);
  expect(retriesIn({ ...thrice, hedges: { begun: 1, won: 0 } })).toBe(1);
  expect(retriesIn({ ...thrice, cached: true })).toBe(0);
  const cascade = answered({ rule: { ...failed, attempts: 1 }, judge: thrice });
  const parts = ["correct", "style"].map((name) => ({
    name,
    weight: 1,
    onInvalid: "mask" as const,
  }));
  const several = combined(parts, [cascade, once], "sum");
  expect(several.attempts).toBe(5);
  expect(retriesIn(several)).toBe(2);
  const member = { dataSource: "", response: "", groundTruth: "" };
  const members = [1, 2, 3].map((rewardScore) => ({ rewardScore, rewardExtraInfo: {} }));
  const ofGroup = outcomesOf(groupSampleOf([member, member, member]), {
    valid: true,
    rewardScore: 0,
    rewardExtraInfo: { members },
    latencyMs: 3,
    waitedMs: 0,
    attempts: 3,
  });
  expect(ofGroup.map(({ attempts }) => attempts)).toEqual([3, 3, 3]);
  expect(ofGroup.map(retriesIn)).toEqual([2, 0, 0]);
});
