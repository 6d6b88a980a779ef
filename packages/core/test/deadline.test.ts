import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { deadline, TimeLimit } from "../src/transport/deadline.ts";
import { followGlobals } from "./fixtures/follow-globals.ts";

followGlobals();

const over = vi.fn<() => void>();
afterEach(() => void over.mockClear());

/** This thread computes. */
function hold(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

test("a deadline calls back when it is over, once", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "hrtime"] });
  onTestFinished(() => void vi.useRealTimers());
  deadline(1000, over);
  await vi.advanceTimersByTimeAsync(999);
  expect(over).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(over).toHaveBeenCalledTimes(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(over).toHaveBeenCalledTimes(1);
});

test("a deadline that is ended does not, whether its time has come or not", async () => {
  deadline(10, over).end();
  const running = deadline(10, over);
  hold(50);
  await new Promise((resolve) => setTimeout(resolve));
  running.end();
  await new Promise<void>((resolve) => deadline(20, resolve));
  expect(over).not.toHaveBeenCalled();
});

test("a thread that was held listens to what came meanwhile first, however short the deadline", async () => {
  const limit = deadline(10, over);
  hold(1200);
  // Turns of this thread, in which an answer would be taken apart.
  for (let turns = 0; turns < 5; turns++) await new Promise((resolve) => setImmediate(resolve));
  expect(over).not.toHaveBeenCalled();
  limit.end();
});

test("who was waited for while this thread was held gets its time once more", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const now = vi.spyOn(process, "hrtime").mockReturnValue([0, 0]);
  onTestFinished(() => {
    vi.useRealTimers();
    now.mockRestore();
  });
  deadline(1000, over);
  now.mockReturnValue([2, 5e8]);
  await vi.advanceTimersByTimeAsync(1000);
  // Long enough for a look at what has come meanwhile.
  await vi.advanceTimersByTimeAsync(101);
  expect(over).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(over).toHaveBeenCalledTimes(1);
});

test("patience passes only while it runs, and is whole again when it is renewed", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "hrtime"] });
  onTestFinished(() => void vi.useRealTimers());
  const patience = new TimeLimit(1000, over);
  patience.run();
  await vi.advanceTimersByTimeAsync(900);
  patience.stop();
  await vi.advanceTimersByTimeAsync(10_000);
  patience.renew();
  patience.run();
  await vi.advanceTimersByTimeAsync(900);
  patience.stop();
  expect(over).not.toHaveBeenCalled();
  patience.run();
  await vi.advanceTimersByTimeAsync(201);
  expect(over).toHaveBeenCalledTimes(1);
  // It has passed: none is left.
  await vi.advanceTimersByTimeAsync(10_000);
  patience.stop();
  patience.run();
  await vi.advanceTimersByTimeAsync(101);
  expect(over).toHaveBeenCalledTimes(2);
  patience.stop();
});

test("patience that ran while this thread was held is not used up by that", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const now = vi.spyOn(process, "hrtime").mockReturnValue([0, 0]);
  onTestFinished(() => {
    vi.useRealTimers();
    now.mockRestore();
  });
  const patience = new TimeLimit(1000, over);
  patience.run();
  now.mockReturnValue([2, 5e8]);
  // The other side was reached meanwhile, which this thread hears first.
  patience.stop();
  patience.run();
  await vi.advanceTimersByTimeAsync(999);
  expect(over).not.toHaveBeenCalled();
  patience.stop();
});
