import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { isAlone } from "../fixtures/isolation.ts";
import { Meeting } from "../fixtures/actors.ts";
import { abortable, Busy, endless, plusOne, Waits } from "../fixtures/calls.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

const cell = (): Int32Array => new Int32Array(new SharedArrayBuffer(4));
const becomes = async (of: Int32Array, value: number): Promise<void> => {
  for (let now = Atomics.load(of, 0); now !== value; now = Atomics.load(of, 0)) {
    await Atomics.waitAsync(of, 0, now).value;
  }
};
const wake = (of: Int32Array): void => {
  Atomics.store(of, 0, 1);
  Atomics.notify(of, 0);
};
const isCancelled = async (ref: ray.ObjectRef): Promise<void> => {
  await expect(ray.get(ref)).rejects.toBeInstanceOf(ray.TaskCancelledError);
};

describe("cancel of a call to an actor", () => {
  test("that waits for its argument: it never runs", async () => {
    const gate = Meeting.remote();
    const waiting = Waits.remote().untilAborted.remote(gate.never.remote());
    ray.cancel(waiting);
    await isCancelled(waiting);
  });

  test("queued behind a busy one: it never runs, the others do", async () => {
    const [started, release, mark] = [cell(), cell(), cell()];
    const actor = Busy.remote();
    const held = actor.hold.remote(started, release);
    const before = actor.mark.remote(mark);
    const queued = actor.mark.remote(mark);
    const after = actor.mark.remote(mark);
    await becomes(started, 1);
    ray.cancel(queued);
    // The cancellation leaves with the messages of this turn; shared memory is faster.
    await new Promise(setImmediate);
    wake(release);
    expect(await ray.get([held, before, after])).toEqual(["held", 0, 1]);
    await isCancelled(queued);
    expect(Atomics.load(mark, 0)).toBe(2);
  });

  test("that is running and synchronous: it is told when it asks, runs on, and its result is thrown away", async () => {
    const started = cell();
    const actor = Busy.remote();
    const call = actor.untilCancelled.remote(started);
    const next = actor.mark.remote(cell());
    await becomes(started, 1);
    ray.cancel(call);
    await isCancelled(call);
    expect(Atomics.load(started, 0)).toBe(2);
    expect(await ray.get(next)).toBe(0);
  });

  test("that is running and asynchronous: its signal is aborted and it rejects at once", async () => {
    const started = cell();
    const actor = Waits.remote();
    const call = actor.untilAborted.remote(started);
    await becomes(started, 1);
    ray.cancel(call);
    await isCancelled(call);
    expect(await ray.get(actor.aborted.remote())).toBe(1);
  });

  test("that has finished changes nothing, and cancelling twice neither", async () => {
    const actor = Waits.remote();
    const call = actor.quick.remote();
    expect(await ray.get(call)).toBe("quick");
    ray.cancel(call);
    ray.cancel(call);
    expect(await ray.get(call)).toBe("quick");
  });

  test.skipIf(!isAlone).each([true, false])(
    "takes its children with it if recursive: %s",
    async (recursive) => {
      const started = cell();
      const child = Busy.remote();
      const call = Waits.remote().child.remote(child, started);
      await becomes(started, 1);
      ray.cancel(call, { recursive });
      await isCancelled(call);
      const after = child.mark.remote(cell());
      if (recursive) {
        await becomes(started, 2);
        expect(await ray.get(after)).toBe(0);
      } else {
        expect(await ray.wait([after], { timeoutMs: 0 })).toMatchObject({ ready: [] });
        expect(Atomics.load(started, 0)).toBe(1);
        await ray.kill(child);
      }
    },
  );

  test("is never tried again, even if its actor restarts", async () => {
    const started = cell();
    const actor = Busy.options({ maxRestarts: 1, maxTaskRetries: -1 }).remote();
    const call = actor.hold.remote(started, cell());
    await becomes(started, 1);
    ray.cancel(call);
    await ray.kill(actor, { noRestart: false });
    await isCancelled(call);
  });

  test("with force is refused", async () => {
    const actor = Waits.remote();
    const call = actor.untilAborted.remote(cell());
    expect(() => ray.cancel(call, { force: true })).toThrow("force is for tasks");
    ray.cancel(call);
    await isCancelled(call);
  });
});

describe("cancel of a task", () => {
  test("that is running with force ends its worker", async () => {
    const started = cell();
    const task = endless.remote(started);
    await becomes(started, 1);
    ray.cancel(task, { force: true });
    await isCancelled(task);
  });

  test("that awaits: its signal is aborted", async () => {
    const started = cell();
    const task = abortable.remote(started);
    await becomes(started, 1);
    ray.cancel(task);
    await isCancelled(task);
  });

  test("fails those that need it, and none before it", async () => {
    const gate = Meeting.remote();
    const first = plusOne.remote(1);
    const second = plusOne.remote(first);
    const third = plusOne.remote(gate.wait.remote());
    const fourth = plusOne.remote(third);
    ray.cancel(third);
    await isCancelled(third);
    await isCancelled(fourth);
    expect(await ray.get([first, second])).toEqual([2, 3]);
    gate.open.remote();
  });

  test("for which no worker is free: it never runs", async () => {
    const started = [cell(), cell()];
    const busy = started.map((one) => abortable.remote(one));
    await Promise.all(started.map((one) => becomes(one, 1)));
    const queued = plusOne.remote(1);
    ray.cancel(queued);
    await isCancelled(queued);
    for (const one of busy) ray.cancel(one);
    for (const one of busy) await isCancelled(one);
    expect(await ray.get(plusOne.remote(1))).toBe(2);
  });
});

describe("cancel by somebody who was given the ref", () => {
  test("asks the owner to cancel", async () => {
    const started = cell();
    const task = abortable.remote(started);
    await becomes(started, 1);
    await ray.get(Waits.remote().cancels.remote({ ref: task }));
    await isCancelled(task);
  });
});

describe("cancel refuses", () => {
  test("what is no ref", () => {
    // @ts-expect-error not a ref
    expect(() => ray.cancel(1)).toThrow(
      "cancel takes an ObjectRef or an ObjectRefGenerator, not 1",
    );
  });
  test("unknown options, and does nothing to what was put", async () => {
    const ref = ray.put(1);
    // @ts-expect-error unknown
    expect(() => ray.cancel(ref, { now: true })).toThrow('has no option "now"');
    ray.cancel(ref);
    expect(await ray.get(ref)).toBe(1);
  });
});
