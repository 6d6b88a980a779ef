import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { addOne, Cancel, Counter, Log, Signal, SyncCancel, tree } from "../fixtures/conformance.ts";
import { inFull } from "../fixtures/suite.ts";
import { initIn, isolations, isOverTls, withinAndApart } from "../fixtures/isolations.ts";

const isCancelled = async (ref: ray.ObjectRef): Promise<void> => {
  await expect(ray.get(ref)).rejects.toBeInstanceOf(ray.TaskCancelledError);
};

/** What only notes needs no host of its own. */
const witness = { isolation: "shared" } as const;

// Beside actors that share a thread, tasks have the same workers as beside those with threads.
describe.each(withinAndApart)("cancel of tasks: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_cancel::test_cancel_chain: cancelling the first of a chain fails all, cancelling the third leaves the first two", async () => {
    for (const cancelled of [0, 2]) {
      const signal = Signal.remote();
      const first = addOne.remote(0, signal);
      const second = addOne.remote(first);
      const third = addOne.remote(second, signal);
      const fourth = addOne.remote(third);
      const chain = [first, second, third, fourth];
      await ray.get(signal.reached.remote(1));
      ray.cancel(chain[cancelled] as ray.ObjectRef);
      if (cancelled === 0) {
        for (const ref of chain) await isCancelled(ref);
      } else {
        signal.send.remote();
        expect(await ray.get([first, second])).toEqual([1, 2]);
        for (const ref of [third, fourth]) await isCancelled(ref);
      }
    }
  });

  // Seven tasks are seven hosts: the case below cancels what a call has called in processes, too.
  test.runIf(
    isolation === "thread" ||
      inFull("it starts seven processes; test_cancel_recursive_chain is in processes, too"),
  )(
    "test_actor_cancel::test_cancel_recursive_tree: recursive cancels the leaves, too",
    async () => {
      const [started, log] = [Signal.remote(), Log.options(witness).remote()];
      const root = tree.remote(2, started, log);
      await ray.get(started.reached.remote(4));
      ray.cancel(root);
      await isCancelled(root);
      await expect
        .poll(() => ray.get(log.lines.remote()), { timeout: 60_000 })
        .toEqual(Array.from({ length: 4 }, () => "leaf cancelled"));
    },
  );
});

describe.each(isolations)("cancel: %s", (isolation) => {
  let folder: string;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "conformance-"));
    await initIn(isolation);
  });
  afterAll(async () => {
    await ray.shutdown();
    rmSync(folder, { recursive: true });
  });

  test("test_actor_cancel::test_async_actor_client_side_cancel: what waits for its actor, or for an argument, never runs", async () => {
    const signal = Signal.remote();
    const unborn = Counter.remote(signal.wait.remote(1) as ray.ObjectRef<number>);
    const early = unborn.increment.remote(10);
    ray.cancel(early);
    await isCancelled(early);
    const counter = Counter.remote();
    const waiting = counter.increment.remote(signal.wait.remote(100) as ray.ObjectRef<number>);
    ray.cancel(waiting);
    await isCancelled(waiting);
    signal.send.remote();
    expect(await ray.get([unborn.read.remote(), counter.read.remote()])).toEqual([1, 0]);
  });

  test.skipIf(isOverTls)(
    "test_actor_cancel::test_is_canceled_sync_actor_task: the running call sees that it is cancelled, the next one not",
    async () => {
      const actor = SyncCancel.remote();
      const startedFile = join(folder, "started");
      const call = actor.untilCanceled.remote(startedFile);
      const next = actor.noticed.remote();
      await expect.poll(() => existsSync(startedFile), { timeout: 60_000 }).toBe(true);
      ray.cancel(call);
      await isCancelled(call);
      expect(await ray.get(next)).toBe(1);
    },
  );

  test("test_actor_cancel::test_is_canceled_concurrent_actor_task: of many running calls only that one is cancelled", async () => {
    const actor = Cancel.remote();
    const [signal, started, log] = [
      Signal.remote(),
      Signal.remote(),
      Log.options(witness).remote(),
    ];
    const others = [actor.untilAborted.remote(signal), actor.untilAborted.remote(signal)];
    const call = actor.noticed.remote(started, log);
    await ray.get([signal.reached.remote(2), started.reached.remote(1)]);
    ray.cancel(call);
    await isCancelled(call);
    // Differs: an async method may ask, too, and has a signal.
    await expect
      .poll(() => ray.get(log.lines.remote()), { timeout: 60_000 })
      .toEqual([["aborted", true]]);
    expect(await ray.get(actor.isCanceled.remote())).toBe(false);
    signal.send.remote();
    expect(await ray.get(others)).toEqual(["not cancelled", "not cancelled"]);
  });

  test("test_actor_cancel::test_cancel_recursive_chain: recursive or not decides about what the call has called", async () => {
    for (const recursive of [true, false]) {
      const [started, log] = [Signal.remote(), Log.options(witness).remote()];
      const child = Cancel.remote();
      const call = Cancel.remote().child.remote(child, started, log);
      await ray.get(started.reached.remote(1));
      ray.cancel(call, { recursive });
      await isCancelled(call);
      if (recursive) {
        await expect
          .poll(() => ray.get(log.lines.remote()), { timeout: 60_000 })
          .toEqual([["aborted", true]]);
      } else {
        // Two messages on the way that a cancellation would have taken, and nothing came.
        await ray.get(child.isCanceled.remote());
        expect(await ray.get(log.lines.remote())).toEqual([]);
        await ray.kill(child);
      }
    }
  });

  test("test_actor_cancel: the cancelled head of the line, blocked by its argument, lets the next call run", async () => {
    const signal = Signal.remote();
    const counter = Counter.remote();
    const head = counter.increment.remote(signal.wait.remote(5) as ray.ObjectRef<number>);
    const next = counter.increment.remote(1);
    expect((await ray.wait([next], { timeoutMs: 20 })).ready).toEqual([]);
    ray.cancel(head);
    expect(await ray.get(next)).toBe(1);
    await isCancelled(head);
  });
});
