import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { IdleCollector } from "../src/caller/objects/idle-collector.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

const collect = vi.fn();
/** Milliseconds that the thread works in each second. */
let active = 5;
let held = 1;
let worked = 0;

function collector(): IdleCollector {
  return new IdleCollector(() => held, { collect, activeMs: () => worked });
}

beforeEach(() => {
  collect.mockReset();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  [active, held] = [5, 1];
});

afterEach(() => void vi.useRealTimers());

/** The seconds after which garbage was collected, of so many. */
function collections(seconds: number): number[] {
  const at: number[] = [];
  for (let second = 1; second <= seconds; second++) {
    collect.mockClear();
    worked += active;
    vi.advanceTimersByTime(1000);
    if (collect.mock.calls.length > 0) at.push(second);
  }
  return at;
}

describe("a thread that holds what others wait for collects", () => {
  test("after a second, and ever more rarely while it holds the same", () => {
    collector().arm();
    expect(collections(80)).toEqual([1, 2, 4, 8, 16, 32, 48, 64, 80]);
  });

  test("soon again when more has come", () => {
    const one = collector();
    one.arm();
    collections(20);
    one.arm();
    expect(collections(4)).toEqual([1, 2, 4]);
  });

  test("soon again when something was let go", () => {
    held = 3;
    collector().arm();
    collections(20);
    held = 2;
    expect(collections(20)).toEqual([12, 13, 15, 19]);
  });

  test("at once what the collected held, also where nothing else is done", () => {
    held = 4;
    collector().arm();
    collections(20);
    active = 0;
    worked += 5;
    collect.mockImplementation(() => (held = Math.max(1, held - 1)));
    expect(collections(20)).toEqual([12, 14, 15, 16]);
  });

  test("not while it has nothing to do, and not when it holds nothing", () => {
    collector().arm();
    expect(collections(2)).toEqual([1, 2]);
    active = 0;
    expect(collections(20)).toEqual([]);
    active = 5;
    expect(collections(2)).toHaveLength(1);
    held = 0;
    expect(collections(60)).toEqual([]);
  });
});
