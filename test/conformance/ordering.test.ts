import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import {
  CounterClass,
  fork,
  Grouped,
  Holder,
  Log,
  plusOneAsync,
  Rendezvous,
  Signal,
  Steps,
  SyncGrouped,
} from "../fixtures/conformance.ts";
import { alike, initIn, isolations } from "../fixtures/isolations.ts";

describe.each(isolations)("ordering: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_basic_2::test_actor_call_order: calls run as they were made, whenever their arguments are ready", async () => {
    const signals = Array.from({ length: 10 }, () => Signal.options({ numCpus: 0 }).remote());
    const log = Log.remote();
    const calls = Array.from({ length: 100 }, (_, index) =>
      log.add.remote(index, signals[(index * 7) % 10]?.wait.remote()),
    );
    for (const index of [4, 9, 1, 7, 0, 3, 8, 2, 6, 5]) {
      await ray.get((signals[index] as (typeof signals)[0]).send.remote());
    }
    const inOrder = Array.from({ length: 100 }, (_, index) => index);
    expect(await ray.get(calls)).toEqual(inOrder);
    expect(await ray.get(log.lines.remote())).toEqual(inOrder);
  });

  test("test_basic_2::test_actor_pass_by_ref_order_optimization: a slow argument holds up its caller, not another", async () => {
    const signal = Signal.remote();
    const log = Log.remote();
    const first = log.add.remote("first", signal.wait.remote());
    const second = log.add.remote("second");
    expect(await ray.get(Holder.remote().add.remote(log, "other caller"))).toBe("other caller");
    signal.send.remote();
    await ray.get([first, second]);
    expect(await ray.get(log.lines.remote())).toEqual(["other caller", "first", "second"]);
  });

  test("test_actor_advanced::test_fork_consistency: each caller that was given a handle has its own order", async () => {
    const log = Log.remote();
    const names = ["a", "b", "c", "d", "e"];
    await ray.get(names.map((name) => fork.remote(log, name, 100)));
    const lines = (await ray.get(log.lines.remote())) as [string, number][];
    expect(lines).toHaveLength(500);
    for (const name of names) {
      const own = lines.filter(([from]) => from === name).map(([, index]) => index);
      expect(own).toEqual(Array.from({ length: 100 }, (_, index) => index));
    }
  });
});

describe.each(alike)("concurrency: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_basic_2::test_actor_concurrent: with maxConcurrency 3, three calls wait for each other", async () => {
    const actor = Rendezvous.options({ maxConcurrency: 3 }).remote();
    expect(await ray.get([1, 2, 3].map(() => actor.meet.remote(3)))).toEqual([3, 3, 3]);
    expect(await ray.get(actor.most.remote())).toBe(3);
  });

  test("test_asyncio::test_asyncio_actor: calls of an async actor meet inside", async () => {
    const signal = Signal.remote();
    const waiting = [1, 2, 3].map((value) => signal.wait.remote(value));
    await ray.get(signal.reached.remote(3));
    signal.send.remote();
    expect(await ray.get(waiting)).toEqual([1, 2, 3]);
  });

  test("test_asyncio::test_asyncio_actor_concurrency: with maxConcurrency 1, starts and ends alternate", async () => {
    const actor = Steps.options({ maxConcurrency: 1 }).remote();
    await ray.get(Array.from({ length: 10 }, () => actor.step.remote()));
    expect(await ray.get(actor.events.remote())).toEqual(
      Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? "starts" : "ends")),
    );
  });

  test("test_asyncio::test_asyncio_actor_high_concurrency: thousands of calls may wait, at most a thousand of them at once", async () => {
    const actor = Steps.remote();
    // Five crowds, each of which waits until all thousand are there.
    const calls = Array.from({ length: 5000 }, () => actor.crowd.remote(1000));
    expect(await ray.get(calls)).toHaveLength(5000);
    expect(await ray.get(actor.most.remote())).toBe(1000);
  });

  test("test_concurrency_group::test_basic: each group has its own limit, and the option of a call overrides the method's", async () => {
    const actor = Grouped.remote();
    const signal = Signal.remote();
    const io = [1, 2, 3].map(() => actor.io.remote(signal));
    const compute = actor.compute.remote(signal);
    const plain = actor.plain.remote(signal);
    const moved = actor.plain.options({ concurrencyGroup: "compute" }).remote(signal);
    // Two of io, one of compute, one of the default group; the third of io and the one that was moved wait.
    await ray.get(signal.reached.remote(4));
    expect(await ray.get(signal.waiting.remote())).toBe(4);
    signal.send.remote();
    const seen = await ray.get([...io, compute, plain, moved]);
    for (const running of seen) {
      expect(running.filter((name) => name === "io").length).toBeLessThanOrEqual(2);
      expect(running.filter((name) => name === "compute").length).toBeLessThanOrEqual(1);
    }
  });

  test("test_concurrency_group::test_per_group_independent_ordering: a group held up by an argument does not hold up another", async () => {
    const actor = SyncGrouped.remote();
    const signal = Signal.remote();
    const held = actor.a.remote("a 0", signal.wait.remote());
    const behind = actor.a.remote("a 1");
    await ray.get([0, 1, 2, 3, 4].map((index) => actor.b.remote(`b ${index}`)));
    expect(await ray.get(actor.lines.remote())).toEqual(["b 0", "b 1", "b 2", "b 3", "b 4"]);
    signal.send.remote();
    await ray.get([held, behind]);
    expect((await ray.get(actor.lines.remote())).slice(5)).toEqual(["a 0", "a 1"]);
  });

  test("test_concurrency_group::test_invalid_concurrency_group: a group of size 0 is refused", () => {
    expect(() => ray.remote(CounterClass, { concurrencyGroups: { io: 0 } })).toThrow(
      "must be greater than 0",
    );
  });

  test("test_advanced_4::test_back_pressure: with maxPendingCalls 10 the eleventh call throws, and when they are answered calls go again", async () => {
    const signal = Signal.remote();
    const holder = Holder.options({ maxPendingCalls: 10 }).remote();
    const calls = Array.from({ length: 10 }, () => holder.waitFor.remote(signal));
    expect(() => holder.waitFor.remote(signal)).toThrow(ray.PendingCallsLimitExceeded);
    signal.send.remote();
    await ray.get(calls);
    expect(await ray.get(holder.waitFor.remote(signal))).toBeUndefined();
  });

  test("test_asyncio::test_async_function_errored: differs: an async function is a task like any other", async () => {
    expect(await ray.get(plusOneAsync.remote(1))).toBe(2);
  });
});
