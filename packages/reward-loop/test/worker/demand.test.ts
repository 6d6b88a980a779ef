/** When a worker needs one more executor than it has. */

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { SignOfLife } from "../../src/executor/score-executor.ts";
import { Demand } from "../../src/worker/executors/pool/demand.ts";

/** Answers when it is told to, with so much work since its first sample. */
class Thread {
  load = 1;
  overlaps = true;
  busyMs = 0;
  isBlocked = false;
  hasDied = false;
  asked = 0;

  async breathe(): Promise<SignOfLife> {
    this.asked += 1;
    if (this.hasDied) throw new Error("it has died");
    if (this.isBlocked) return new Promise(() => undefined);
    return { done: [], used: [], failed: [], busyMs: this.busyMs };
  }
}

/** A worker that may have three. */
function worker(...threads: readonly Thread[]) {
  const state = { threads: [...threads], waiting: 0, grown: 0 };
  const demand = new Demand<Thread>(Math.max(1, threads.length), 3, {
    executors: () => state.threads,
    hasWaiting: () => state.waiting > 0,
    fill() {
      state.grown += 1;
      state.threads.push(new Thread());
    },
  });
  return Object.assign(state, { demand });
}

/** @param work how long each thread works of each millisecond */
async function pass(ms: number, threads: readonly Thread[] = [], work = 0): Promise<void> {
  for (let at = 0; at < ms; at++) {
    for (const thread of threads) thread.busyMs += work;
    await vi.advanceTimersByTimeAsync(1);
  }
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("one whose samples all wait for something is enough, however long", async () => {
  const thread = new Thread();
  const one = worker(thread);
  one.demand.came();
  await pass(60_000, [thread], 0.8);
  expect(thread.asked).toBeGreaterThan(100);
  expect(one.grown).toBe(0);
});

test("samples that wait for room need another one, and stay where it may help, unless they wait for a moment only", async () => {
  const thread = new Thread();
  const one = worker(thread);
  one.waiting = 5;
  one.demand.came();
  await pass(150);
  one.waiting = 0;
  await pass(100);
  one.waiting = 5;
  await pass(100);
  expect(one.grown).toBe(0);
  await pass(100);
  expect(one.grown).toBe(1);
  await pass(200);
  expect(one.grown).toBe(2);
  // There are all, and the last one starts.
  expect(one.demand.mayHelp).toBe(true);
  one.demand.started();
  expect(one.demand.mayHelp).toBe(false);
});

test("a thread that is blocked needs another one, and each that is blocked one more", async () => {
  const thread = new Thread();
  const one = worker(thread);
  thread.isBlocked = true;
  one.demand.came();
  await pass(250);
  expect(one.grown).toBe(1);
  // The other one answers.
  await pass(10_000);
  expect(one.grown).toBe(1);
  for (const each of one.threads) each.isBlocked = true;
  await pass(300);
  expect(one.grown).toBe(2);
  // There are all.
  expect(one.demand.wanted).toBe(3);
  expect(vi.getTimerCount()).toBe(0);
});

test("a thread that has no moment free needs another one", async () => {
  const thread = new Thread();
  const one = worker(thread);
  one.demand.came();
  await pass(500, [thread], 0.99);
  expect(one.grown).toBe(1);
});

test("a thread that works on one sample only is no reason: the next one would wait for room", async () => {
  const thread = new Thread();
  const one = worker(thread);
  Object.assign(thread, { isBlocked: true, overlaps: false });
  one.demand.came();
  await pass(1_000);
  expect(one.grown).toBe(0);
  // Sent ahead, as those before were brief.
  thread.load = 2;
  await pass(300);
  expect(one.grown).toBe(1);
});

test("one that has nothing to do is not asked, and no time passes for it", async () => {
  const [blocked, idle] = [new Thread(), new Thread()];
  const one = worker(blocked, idle);
  blocked.isBlocked = true;
  idle.load = 0;
  one.demand.came();
  await pass(1_000);
  expect(idle.asked).toBe(0);
  expect(one.grown).toBe(0);
  blocked.load = 0;
  await pass(200);
  expect(vi.getTimerCount()).toBe(0);
});

test("while one starts, or after a death, none is started for that", async () => {
  const thread = new Thread();
  const one = worker();
  one.waiting = 5;
  one.demand.came();
  await pass(1_000);
  expect(one.grown).toBe(0);
  one.waiting = 0;
  thread.hasDied = true;
  one.threads.push(thread);
  await pass(100);
  // Its successor is there.
  one.threads.splice(0, 1, new Thread());
  await pass(1_000);
  expect(one.grown).toBe(0);
});

test("nothing is looked at any more after the end", async () => {
  const one = worker(new Thread());
  one.waiting = 5;
  one.demand.came();
  one.demand.stop();
  one.demand.came();
  expect(vi.getTimerCount()).toBe(0);
  await pass(1_000);
  expect(one.grown).toBe(0);
});
