import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory, together } from "../fixtures/isolation.ts";
import { Meeting } from "../fixtures/actors.ts";
import { countsElsewhere, countTo, Streaming, SyncStreaming } from "../fixtures/calls.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

async function collect<T>(stream: ray.ObjectRefGenerator<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const ref of stream) values.push((await ray.get(ref)) as T);
  return values;
}

describe("a generator method", () => {
  test.each(["sync", "async", "task"] as const)(
    "gives refs in order, then the end: %s",
    async (kind) => {
      const actor = Streaming.remote();
      const stream =
        kind === "sync"
          ? actor.count.remote(5)
          : kind === "async"
            ? actor.later.remote(5)
            : countTo.remote(5);
      expect(stream).toBeInstanceOf(ray.ObjectRefGenerator);
      expect(await collect(stream)).toEqual([0, 1, 2, 3, 4]);
      expect(await stream.next()).toEqual({ done: true, value: undefined });
      expect(stream.isFinished()).toBe(true);
      expect(await ray.get(stream.completed())).toBe(5);
    },
  );

  test("is the only thing that streams by itself: what returns a generator says how to", async () => {
    const ref = countsElsewhere.remote(2);
    ray.cancel(ref);
    await expect(collect(ref)).rejects.toThrow(
      'is a ref, not a stream: only generator functions stream by themselves; get the ref, or give the call that made it numReturns: "streaming"',
    );
    const stream = countsElsewhere.options({ numReturns: "streaming" }).remote(2);
    expect(await collect(stream)).toEqual([0, 1]);
  });

  test("may have no items, and many", async () => {
    const actor = Streaming.remote();
    expect(await collect(actor.count.remote(0))).toEqual([]);
    const many = await collect(actor.count.remote(20_000));
    expect(many).toEqual(Array.from({ length: 20_000 }, (_, index) => index));
  });

  test("that throws after k items gives k values, one ref that rejects, and the end for ever", async () => {
    const stream = Streaming.remote().failAfter.remote(2);
    expect(await ray.get((await stream.next()).value as ray.ObjectRef<number>)).toBe(0);
    expect(await ray.get((await stream.next()).value as ray.ObjectRef<number>)).toBe(1);
    const failed = (await stream.next()).value as ray.ObjectRef<number>;
    await expect(ray.get(failed)).rejects.toThrow("no more than 2");
    expect(await stream.next()).toMatchObject({ done: true });
    expect(await stream.next()).toMatchObject({ done: true });
    await expect(ray.get(stream.completed())).rejects.toThrow("no more than 2");
  });

  test("may yield an error as a value; what cannot travel ends the stream with its path", async () => {
    const stream = Streaming.remote().errors.remote();
    expect(await ray.get((await stream.next()).value as ray.ObjectRef)).toBeInstanceOf(RangeError);
    const second = (await stream.next()).value as ray.ObjectRef;
    await expect(ray.get(second)).rejects.toThrow("item 1 of StreamingClass.errors is a function");
    expect(await stream.next()).toMatchObject({ done: true });
  });

  test("any iterable streams when it is asked to, and nothing else does", async () => {
    const actor = Streaming.remote();
    const stream = actor.items.options({ numReturns: "streaming" }).remote();
    expect(await collect(stream as ray.ObjectRefGenerator<string>)).toEqual(["x", "y"]);
    const none = actor.made.options({ numReturns: "streaming" }).remote();
    await expect(collect(none as ray.ObjectRefGenerator<string>)).rejects.toThrow(
      "must return an iterable",
    );
    await expect(ray.get(actor.count.options({ numReturns: 1 }).remote(1))).rejects.toMatchObject({
      code: "NOT_ENCODABLE",
    });
  });

  test("several run at the same time in an async actor", async () => {
    const actor = Streaming.remote();
    const streams = [actor.later.remote(50), actor.later.remote(50), actor.later.remote(50)];
    const all = await Promise.all(streams.map(collect));
    expect(all.map((one) => one.length)).toEqual([50, 50, 50]);
  });

  test("of a sync actor keeps its place until its end", async () => {
    const actor = SyncStreaming.remote();
    const stream = actor.count.remote(3);
    expect(await ray.get(actor.made.remote())).toBe(3);
    expect(await collect(stream)).toEqual([0, 1, 2]);
  });

  test("two who take from it at the same time get an item each", async () => {
    const stream = Streaming.remote().later.remote(2);
    const both = await Promise.all([stream.next(), stream.next(), stream.next()]);
    expect(both.map(({ done }) => done)).toEqual([false, false, true]);
  });
});

describe("back-pressure", () => {
  test("keeps the producer one item ahead, and taking lets it go on", async () => {
    const actor = Streaming.remote();
    const stream = actor.count.options({ generatorBackpressureNumObjects: 1 }).remote(10);
    await ray.wait([stream]);
    expect((await ray.get(actor.made.remote())).made).toBe(1);
    await stream.next();
    await ray.wait([stream]);
    expect((await ray.get(actor.made.remote())).made).toBe(2);
    expect(await collect(stream)).toHaveLength(9);
  });

  test("stays when the consumer stops: the method ends, and its finally runs", async () => {
    const actor = Streaming.remote();
    const stream = actor.count.options({ generatorBackpressureNumObjects: 2 }).remote(100);
    for await (const _ of stream) break;
    const count = await ray.get(stream.completed());
    expect(count).toBeLessThanOrEqual(3);
    expect(await ray.get(actor.made.remote())).toEqual({ made: count, closed: 1 });
    expect(await stream.next()).toMatchObject({ done: true });
  });

  test("of one that is detached is lifted when the collector takes the generator", async () => {
    const completed = Streaming.remote()
      .count.options({ generatorBackpressureNumObjects: 2, detached: true })
      .remote(100)
      .completed();
    const collecting = setInterval(() => globalThis.gc?.(), 1);
    expect(await ray.get(completed)).toBe(100);
    clearInterval(collecting);
  });
});

describe("loss, retry and cancellation", () => {
  test("a host that dies gives the items, then the actor's error, then the end", async () => {
    const stream = Streaming.remote().exitAfter.remote(3);
    const seen: unknown[] = [];
    for await (const ref of stream) seen.push(await ray.get(ref).catch((error: unknown) => error));
    expect(seen.at(-1)).toBeInstanceOf(ray.ActorDiedError);
    expect(seen.slice(0, -1)).toEqual([0, 1, 2].slice(0, seen.length - 1));
  });

  test.skipIf(!sharesMemory)(
    "a retry goes on where it was: nothing twice, nothing missing",
    async () => {
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const actor = Streaming.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
      expect(await collect(actor.exitOnce.remote(cell, 3, 6))).toEqual([0, 1, 2, 3, 4, 5]);
      expect(cell[0]).toBe(2);
    },
  );

  test.skipIf(!sharesMemory)(
    "a retry that gives fewer items than had arrived is an error",
    async () => {
      const cell = new Int32Array(new SharedArrayBuffer(4));
      const actor = Streaming.options({ maxRestarts: 1, maxTaskRetries: 1 }).remote();
      const stream = actor.exitOnce.remote(cell, 3, 1);
      await expect(collect(stream)).rejects.toBeInstanceOf(
        ray.StreamingGeneratorReplayInconsistentError,
      );
    },
  );

  test("cancel ends it: the next item rejects, then the end, and its finally runs", async () => {
    const actor = Streaming.remote();
    const stream = actor.until.remote();
    expect(await ray.get((await stream.next()).value as ray.ObjectRef<string>)).toBe("started");
    ray.cancel(stream);
    const next = (await stream.next()).value as ray.ObjectRef<string>;
    await expect(ray.get(next)).rejects.toBeInstanceOf(ray.TaskCancelledError);
    expect(await stream.next()).toMatchObject({ done: true });
  });

  test("cancel reaches a producer that waits for its consumer", async () => {
    const actor = Streaming.remote();
    const stream = actor.count.options({ generatorBackpressureNumObjects: 1 }).remote(10);
    await ray.wait([stream]);
    ray.cancel(stream);
    await expect(ray.get(stream.completed())).rejects.toBeInstanceOf(ray.TaskCancelledError);
    // The answer does not wait for its finally.
    await expect
      .poll(() => ray.get(actor.made.remote()), { timeout: 30_000 })
      .toEqual({ made: 1, closed: 1 });
  });
});

describe("wait", () => {
  test("takes generators among refs: one is ready when its next item or its end is", async () => {
    const gate = Meeting.remote();
    const actor = Streaming.remote();
    const slow = gate.wait.remote();
    const stream = actor.count.remote(1);
    const first = await ray.wait([slow, stream], { numReturns: 1 });
    expect(first).toEqual({ ready: [stream], pending: [slow] });
    await stream.next();
    expect(await ray.wait([stream])).toEqual({ ready: [stream], pending: [] });
    expect(await stream.next()).toMatchObject({ done: true });
    const never = actor.until.remote();
    await never.next();
    expect(await ray.wait([never], { timeoutMs: 0 })).toEqual({ ready: [], pending: [never] });
    ray.cancel(never);
    gate.open.remote();
    await ray.get(slow);
  });

  test("get refuses a generator and says what to do, and a call refuses it as an argument", async () => {
    const actor = Streaming.remote();
    const stream = actor.count.remote(1);
    // @ts-expect-error not a ref
    await expect(ray.get(stream)).rejects.toThrow("iterate over it");
    // @ts-expect-error not a number
    expect(() => actor.count.remote(stream)).toThrow("args[0]");
    await collect(stream);
  });
});
