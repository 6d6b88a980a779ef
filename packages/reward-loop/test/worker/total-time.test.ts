/** The total time of samples, in one timer for all that begin in a turn, and what it ends. */

import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { givenUpFailure } from "../../src/outcome.ts";
import type { SampleOutcome } from "../../src/outcome.ts";
import { wholeUsageOf } from "../../src/spend/usage.ts";
import { SampleInTime } from "../../src/worker/attempted-sample.ts";
import { TotalTimes } from "../../src/worker/total-time.ts";
import { sampleOf } from "../loop.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});

afterEach(() => {
  vi.useRealTimers();
});

test("each sample is late once, those that began first first, and those that left never", async () => {
  const times = new TotalTimes(100);
  const late: string[] = [];
  const begin = (name: string): (() => void) => {
    const { timer, place } = times.begin({ late: () => void late.push(name) });
    return () => timer.leave(place);
  };
  begin("a");
  const left = begin("b");
  const leavesTwice = begin("c");
  expect(vi.getTimerCount()).toBe(1);
  await turn();
  vi.advanceTimersByTime(50);
  begin("d");
  expect(vi.getTimerCount()).toBe(2);
  left();
  leavesTwice();
  leavesTwice();
  vi.advanceTimersByTime(49);
  expect(late).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(late).toEqual(["a"]);
  vi.advanceTimersByTime(50);
  expect(late).toEqual(["a", "d"]);
  expect(vi.getTimerCount()).toBe(0);
});

test("a timer ends with the last sample that it is for", () => {
  const times = new TotalTimes(100);
  const begun = [1, 2, 3].map(() => times.begin({ late: () => expect.unreachable() }));
  const [last, ...others] = begun;
  for (const { timer, place } of others) timer.leave(place);
  expect(vi.getTimerCount()).toBe(1);
  last?.timer.leave(last.place);
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(1000);
});

test("a sample may leave, and another one begin, when one is late", async () => {
  const times = new TotalTimes(100);
  const late: string[] = [];
  times.begin({
    late: () => {
      late.push("one");
      other.timer.leave(other.place);
      times.begin({ late: () => void late.push("next") });
    },
  });
  const other = times.begin({ late: () => void late.push("other") });
  await turn();
  vi.advanceTimersByTime(100);
  expect(late).toEqual(["one"]);
  vi.advanceTimersByTime(100);
  expect(late).toEqual(["one", "next"]);
});

describe("the outcome of a sample whose time is over", () => {
  const usedBy = (totalTokens: number): SampleOutcome => ({
    valid: true,
    rewardScore: 1,
    rewardExtraInfo: {},
    latencyMs: 1,
    attempts: 1,
    waitedMs: 0,
    used: { inputTokens: 0, outputTokens: totalTokens, totalTokens },
  });

  /** A sample with calls that a test ends. */
  function begun(areAtWork: readonly boolean[]) {
    const calls = areAtWork.map((isAtWork) => ({ isAtWork }));
    const given = { sample: sampleOf(""), lane: "training", id: undefined };
    let sample: SampleInTime | undefined;
    const outcome = SampleInTime.outcome(given, new TotalTimes(100), (one) => {
      sample = one;
      for (const call of calls) one.began(call);
      return new Promise(() => undefined);
    });
    const settled = vi.fn();
    void outcome.then(settled);
    const end = async (at: number, tokens?: number): Promise<void> => {
      const call = calls[at];
      if (call === undefined) return;
      if (tokens !== undefined) sample?.answered(usedBy(tokens));
      sample?.ended(call);
      await turn();
    };
    const answered: SampleInTime["answered"] = (...one) => sample?.answered(...one);
    return { outcome, settled, end, answered };
  }

  test("waits until each call that is at work has said what it used", async () => {
    const { outcome, settled, end } = begun([true, true]);
    vi.advanceTimersByTime(100);
    await turn();
    await end(1, 5);
    expect(settled).not.toHaveBeenCalled();
    await end(0, 3);
    expect(settled).toHaveBeenCalledOnce();
    expect(await outcome).toMatchObject({ valid: false, error: { code: "SCORE_TIMEOUT" } });
    expect(wholeUsageOf(await outcome)?.totalTokens).toBe(8);
  });

  test("has the usage of a call that has ended before, and waits for none that is not at work", async () => {
    const { outcome, end } = begun([true, false]);
    await end(0, 3);
    vi.advanceTimersByTime(100);
    expect(wholeUsageOf(await outcome)?.totalTokens).toBe(3);
  });

  test("names what failed last: an attempt, or a request of one that is given up", async () => {
    const thrown = { code: "SCORE_THREW", name: "Error", message: "no", status: 500 } as const;
    const invalid = {
      latencyMs: 1,
      attempts: 1,
      waitedMs: 0,
      valid: false,
      error: thrown,
    } as const;
    const earlier = { name: "Error", message: "no", status: 500 };
    const request = { name: "EndpointError", message: "answered 502", requests: 2 };
    const one = begun([true]);
    one.answered(invalid);
    await one.end(0);
    vi.advanceTimersByTime(100);
    const words = "there was no score within 100 ms, with all waiting and tries; before that";
    expect(await one.outcome).toMatchObject({
      error: { code: "SCORE_TIMEOUT", message: `${words} it failed: Error: no`, cause: earlier },
    });
    const other = begun([true]);
    other.answered(invalid);
    vi.advanceTimersByTime(100);
    other.answered({ ...invalid, error: givenUpFailure }, request);
    await other.end(0);
    const last = "2 of its requests failed, the last with EndpointError: answered 502";
    expect(await other.outcome).toMatchObject({
      error: { code: "SCORE_TIMEOUT", message: `${words} ${last}`, cause: request },
    });
  });
});
