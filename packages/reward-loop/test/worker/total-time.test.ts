/** The total time of samples, in one timer for all that begin in a turn. */

import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { TotalTimes } from "../../src/worker/total-time.ts";

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
