/** The signal of one call: it does what an AbortSignal does for those who listen. */

import { describe, expect, test } from "vitest";
import { CallSignal } from "../../src/faults/call-signal.ts";
import type { SignalOfCall } from "../../src/faults/call-signal.ts";

interface Subject {
  readonly signal: SignalOfCall;
  readonly abort: (reason: unknown) => void;
}

const subjects: [string, () => Subject][] = [
  [
    "Node's",
    () => {
      const controller = new AbortController();
      return { signal: controller.signal, abort: (reason) => controller.abort(reason) };
    },
  ],
  [
    "that of a call",
    () => {
      const signal = new CallSignal(undefined);
      return { signal, abort: (reason) => signal.abort(reason) };
    },
  ],
  [
    "that of a call, aborted with its sample",
    () => {
      const controller = new AbortController();
      const signal = new CallSignal(controller.signal);
      return { signal, abort: (reason) => controller.abort(reason) };
    },
  ],
];

describe.each(subjects)("%s", (_, subject) => {
  test("calls its listeners once, in order, with the first reason", () => {
    const { signal, abort } = subject();
    const told: unknown[] = [];
    signal.addEventListener("abort", () => told.push(["one", signal.reason]), { once: true });
    signal.addEventListener("abort", () => told.push(["other", signal.aborted]), { once: true });
    expect(signal.aborted).toBe(false);
    signal.throwIfAborted();
    abort("first");
    abort("second");
    expect(told).toEqual([
      ["one", "first"],
      ["other", true],
    ]);
    expect(() => signal.throwIfAborted()).toThrow("first");
  });

  test("calls no listener that was removed, and none that came too late", () => {
    const { signal, abort } = subject();
    const told: string[] = [];
    const removed = (): void => void told.push("removed");
    signal.addEventListener("abort", removed, { once: true });
    signal.addEventListener("abort", () => told.push("kept"), { once: true });
    signal.removeEventListener("abort", removed);
    signal.removeEventListener("abort", removed);
    abort("reason");
    signal.addEventListener("abort", () => told.push("late"), { once: true });
    expect(told).toEqual(["kept"]);
  });

  test("calls no listener that an earlier one removes", () => {
    const { signal, abort } = subject();
    const told: string[] = [];
    const removed = (): void => void told.push("removed");
    const removing = (): void => signal.removeEventListener("abort", removed);
    signal.addEventListener("abort", removing, { once: true });
    signal.addEventListener("abort", removed, { once: true });
    signal.addEventListener("abort", () => told.push("kept"), { once: true });
    abort("reason");
    expect(told).toEqual(["kept"]);
  });
});

test("one call is aborted by itself, and its sample goes on", () => {
  const sample = new AbortController();
  const signal = new CallSignal(sample.signal);
  signal.abort("needless");
  sample.abort("too late");
  expect(signal.reason).toBe("needless");
  expect(new CallSignal(sample.signal)).toMatchObject({ aborted: true, reason: "too late" });
});

test("a call that has left is not aborted with its sample", () => {
  const sample = new AbortController();
  const signal = new CallSignal(sample.signal);
  signal.leave();
  sample.abort();
  expect(signal.aborted).toBe(false);
});
