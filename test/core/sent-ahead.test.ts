/** Short tasks are sent to a worker that is busy: nobody may be able to tell, but by the time. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory } from "../fixtures/isolation.ts";
import { Pair, step } from "../fixtures/sent-ahead.ts";

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
    for (let round = 0; round < 5; round++) {
      const [begun, release] = [cell(), cell()];
      const held = once.remote(1, { act, begun, release });
      const behind = Array.from({ length: 20 }, (_, index) => once.remote(index));
      await untilOnce(begun);
      expect(await ray.get(behind)).toEqual(Array.from({ length: 20 }, (_, index) => index));
      open(release);
      expect(await ray.get(held)).toBe(1);
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
});
