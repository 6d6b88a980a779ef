/** Short tasks are sent to a worker that is busy: nobody may be able to tell, but by the time. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory } from "../fixtures/isolation.ts";
import { sized } from "../fixtures/suite.ts";
import { nap, Pair, sizeOf, step, type StepOptions } from "../fixtures/sent-ahead.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const untilOnce = async (begun: Int32Array): Promise<void> => {
  if (Atomics.load(begun, 0) === 0) await Atomics.waitAsync(begun, 0, 0).value;
};
const open = (release: Int32Array): void => {
  Atomics.store(release, 0, 1);
  Atomics.notify(release, 0);
};
/** Never tried again. */
const once = step.options({ maxRetries: 0 });
/** So that it is known to be short. */
async function warmUp(task: typeof once): Promise<void> {
  for (let round = 0; round < 20; round++)
    await ray.get(Array.from({ length: 50 }, (_, index) => task.remote(index)));
}

describe("tasks that are sent ahead", () => {
  test("give each its own value", async () => {
    const values = Array.from({ length: 5000 }, (_, index) => index);
    expect(await ray.get(values.map((value) => step.remote(value)))).toEqual(values);
  });

  test("fail one by one", async () => {
    await warmUp(once);
    const refs = Array.from({ length: 200 }, (_, index) =>
      once.remote(index, index % 40 === 20 ? { act: "crash" } : {}),
    );
    const ends = await Promise.allSettled(refs.map((ref) => ray.get(ref)));
    const failed = ends.flatMap((end, index) => (end.status === "rejected" ? [index] : []));
    // A crash costs the task that ran, and none of those that stood behind it.
    expect(failed).toEqual([20, 60, 100, 140, 180]);
    for (const end of ends)
      if (end.status === "rejected") expect(end.reason).toBeInstanceOf(ray.WorkerCrashedError);
  });

  test("may wait for those that stand behind them", async () => {
    await warmUp(once);
    for (let round = 0; round < 5; round++) {
      const pair = Pair.remote();
      const met = [1, 2].map((value) => once.remote(value, { act: "meet", pair }));
      expect(await ray.get(met)).toEqual([1, 2]);
    }
  });

  test("are shared by all workers when they turn out to take longer", async () => {
    const pair = Pair.remote();
    for (let round = 0; round < sized({ gate: 2, full: 5 }); round++) {
      // Two workers are there.
      await ray.get([1, 2].map((value) => once.remote(value, { act: "meet", pair })));
      for (let known = 0; known < 60; known++)
        await ray.get(Array.from({ length: 50 }, () => nap.remote(0)));
      const workers = await ray.get(Array.from({ length: 40 }, () => nap.remote(4)));
      const shares = [...Map.groupBy(workers, (worker) => worker).values()];
      expect(shares.map(({ length }) => length).toSorted((a, b) => a - b)[0]).toBeLessThan(32);
      expect(shares.length).toBeGreaterThan(1);
    }
  });

  test("are tried again while others stand behind them and wait for them", async () => {
    const again = step.options({ maxRetries: 3, retryExceptions: true });
    await warmUp(again);
    const failing = again.remote(ray.put(7) as never, { act: "fail" });
    const waiting = Array.from({ length: 20 }, (_, index) => again.remote(index, {}, [failing]));
    await expect(ray.get(failing)).rejects.toBeInstanceOf(RangeError);
    const ends = await Promise.allSettled(waiting.map((ref) => ray.get(ref)));
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(["rejected"]));
  });

  test("stand behind one with a big argument", async () => {
    for (let round = 0; round < 20; round++)
      await ray.get(Array.from({ length: 50 }, () => sizeOf.remote(new Uint8Array(1))));
    const sizes = [20 << 20, ...Array.from({ length: 20 }, (_, index) => index)];
    const refs = sizes.map((size) => sizeOf.remote(new Uint8Array(size)));
    expect(await ray.get(refs)).toEqual(sizes);
  });

  test("may be cancelled, by force, too", async () => {
    await warmUp(once);
    const refs = Array.from({ length: 100 }, (_, index) => once.remote(index));
    for (const [index, ref] of refs.entries())
      if (index % 3 === 0) ray.cancel(ref, { force: index % 2 === 0 });
    const ends = await Promise.allSettled(refs.map((ref) => ray.get(ref)));
    for (const [index, end] of ends.entries()) {
      if (end.status === "fulfilled") expect(end.value).toBe(index);
      else expect(end.reason).toBeInstanceOf(ray.TaskCancelledError);
      if (index % 3 !== 0) expect(end.status).toBe("fulfilled");
    }
  });
});

describe.runIf(sharesMemory)("a task that stands behind a long one", () => {
  test.each(["hold", "hold its thread"] as const)("runs on another worker: %s", async (act) => {
    await warmUp(once);
    for (let round = 0; round < sized({ gate: 3, full: 5 }); round++) {
      const [begun, release] = [cell(), cell()];
      const held = once.remote(1, { act, begun, release });
      const behind = Array.from({ length: 20 }, (_, index) => once.remote(index));
      await untilOnce(begun);
      expect(await ray.get(behind)).toEqual(Array.from({ length: 20 }, (_, index) => index));
      open(release);
      expect(await ray.get(held)).toBe(1);
    }
  });

  test("of some milliseconds, too, goes to who is idle, and runs once", async () => {
    const work = { act: "work" } as const;
    await ray.get(Array.from({ length: 100 }, (_, index) => once.remote(index, work)));
    for (let round = 0; round < sized({ gate: 5, full: 10 }); round++) {
      const release = cell();
      const counts = Array.from({ length: 12 }, cell);
      const refs = counts.map((begun, index) =>
        index === 3
          ? once.remote(index, { act: "hold its thread", begun, release })
          : once.remote(index, { ...work, begun }),
      );
      const [held] = refs.splice(3, 1);
      expect(await ray.get(refs)).toEqual([0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
      open(release);
      expect(await ray.get(held as ray.ObjectRef<number>)).toBe(3);
      expect(counts.map(([count]) => count)).toEqual(counts.map(() => 1));
    }
  });

  test("never runs when it is cancelled, and the long one goes on", async () => {
    await warmUp(once);
    const hold = { act: "hold its thread" } as const;
    for (const force of [false, true]) {
      const [begun, release, ran] = [cell(), cell(), cell()];
      const all = once.options({ numCpus: 2 });
      await warmUp(all);
      const held = all.remote(1, { ...hold, begun, release });
      const behind = all.remote(2, { begun: ran });
      await untilOnce(begun);
      ray.cancel(behind, { force });
      await expect(ray.get(behind)).rejects.toBeInstanceOf(ray.TaskCancelledError);
      open(release);
      expect(await ray.get(held)).toBe(1);
      expect(await ray.get(all.remote(3))).toBe(3);
      expect(Atomics.load(ran, 0)).toBe(0);
    }
  });

  /** Held tasks, the first of which runs at a worker with the others behind it; all are counted. */
  async function countedSteps(count: number, acts: Readonly<Record<number, StepOptions>>) {
    const counts = Array.from({ length: count }, cell);
    const refs = counts.map((begun, index) => once.remote(index, { begun, ...acts[index] }));
    await ray.wait(refs);
    return { refs, counts };
  }
  /** As code of the driver that holds its thread. */
  const holdThread = (ms: number): void => void Atomics.wait(cell(), 0, 0, ms);
  const counted = (counts: readonly Int32Array[]): number[] => counts.map(([count]) => count ?? -1);

  test("runs once, whatever holds the driver's thread meanwhile", async () => {
    for (let round = 0; round < sized({ gate: 5, full: 10 }); round++) {
      await warmUp(once);
      const release = cell();
      const { refs, counts } = await countedSteps(34, { 1: { act: "hold its thread", release } });
      open(release);
      holdThread(round);
      await new Promise(setImmediate);
      holdThread(8);
      expect(await ray.get(refs)).toEqual(refs.map((_, index) => index));
      expect(counted(counts)).toEqual(refs.map(() => 1));
    }
  });

  test("that crashes is the one that fails, though earlier answers are not read", async () => {
    for (let round = 0; round < sized({ gate: 3, full: 6 }); round++) {
      await warmUp(once);
      const release = cell();
      const acts = { 9: { act: "hold its thread", release }, 10: { act: "crash" } } as const;
      const { refs, counts } = await countedSteps(20, acts);
      open(release);
      holdThread(100);
      const ends = await Promise.allSettled(refs.map((ref) => ray.get(ref)));
      expect(ends.flatMap(({ status }, index) => (status === "rejected" ? [index] : []))).toEqual([
        10,
      ]);
      expect(counted(counts)).toEqual(refs.map(() => 1));
    }
  });

  test("goes on when the one before it has ended and is cancelled by force", async () => {
    for (let round = 0; round < sized({ gate: 2, full: 4 }); round++) {
      await warmUp(once);
      const [first, second, begun] = [cell(), cell(), cell()];
      const ended = once.remote(1, { act: "hold its thread", release: first });
      const next = once.remote(2, { act: "hold its thread", release: second, begun });
      open(first);
      // It begins while this thread is held, if it was sent ahead.
      Atomics.wait(begun, 0, 0, 200);
      ray.cancel(ended, { force: true });
      open(second);
      expect(await ray.get(next)).toBe(2);
    }
  });
});
