import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { add, Counter, Meeting, throwing } from "../fixtures/actors.ts";
import { seededRandom } from "../servers/seeded.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0 }));
afterAll(() => ray.shutdown());

describe("get", () => {
  test("of a list gives the values in the order asked, repeated refs included", async () => {
    const refs = Array.from({ length: 10 }, (_, index) => ray.put(index));
    const asked = [...refs, refs[3], refs[0]] as ray.ObjectRef<number>[];
    expect(await ray.get(asked)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 3, 0]);
    expect(await ray.get([])).toEqual([]);
  });

  test("of a tuple of different types gives each its value", async () => {
    const counter = Counter.remote();
    const [n, text] = await ray.get([counter.increment.remote(), ray.put("text")]);
    expect(n + text.length).toBe(5);
  });

  test("may wait for longer than a timer can count: that is no time-out at once, nor is it for wait", async () => {
    const timeoutMs = 2 ** 40;
    const meeting = Meeting.remote();
    const ref = meeting.wait.remote();
    const [got, waited] = [ray.get(ref, { timeoutMs }), ray.wait([ref], { timeoutMs })];
    // Both have waited for longer than the shortest timer, and for an answer of the actor.
    await expect(ray.get(ref, { timeoutMs: 20 })).rejects.toThrow(ray.GetTimeoutError);
    meeting.open.remote();
    expect(await got).toBe(1);
    expect(await waited).toEqual({ ready: [ref], pending: [] });
  });

  test("with a timeout rejects with GetTimeoutError naming what it waits for, and the value is not lost", async () => {
    const meeting = Meeting.remote();
    const ref = meeting.wait.remote();
    const error = await ray.get(ref, { timeoutMs: 20 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ray.GetTimeoutError);
    expect(error).toMatchObject({ code: "GET_TIMEOUT", timeoutMs: 20 });
    expect(String(error)).toContain("Meeting.wait");
    meeting.open.remote();
    expect(await ray.get(ref)).toBe(1);
  });

  test("of an object gives the values by their names", async () => {
    const counter = Counter.remote();
    const both = await ray.get({ n: counter.increment.remote(), text: ray.put("text") });
    expect(both.n + both.text.length).toBe(5);
    expect(both).toEqual({ n: 1, text: "text" });
    expect(await ray.get({})).toEqual({});
    await expect(ray.get({ n: ray.put(1), bad: throwing.remote("one") })).rejects.toThrow("one");
    // @ts-expect-error no ref
    await expect(ray.get({ n: ray.put(1), bad: 5 })).rejects.toThrow(
      "refs.bad is not an ObjectRef but 5",
    );
    const known: string = await ray.get<string>(ray.put<unknown>("text"));
    expect(known).toBe("text");
  });

  test("and wait end with the reason of their signal, at once, and the value is not lost", async () => {
    const meeting = Meeting.remote();
    const ref = meeting.wait.remote();
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [ray.get(ref, { signal }), ray.wait([ref], { signal, timeoutMs: 60_000 })];
    const ended = Promise.allSettled(waiting);
    controller.abort(new RangeError("enough"));
    expect(await ended).toEqual(
      waiting.map(() => ({ status: "rejected", reason: signal.reason as unknown })),
    );
    // The reason belongs to whoever gave it.
    expect((signal.reason as Error).stack).not.toContain("api/objects");
    await expect(ray.get(ref, { signal })).rejects.toBe(signal.reason);
    await expect(ray.wait([ref], { signal })).rejects.toBe(signal.reason);
    await expect(ray.get(ref, { signal: AbortSignal.abort() })).rejects.toMatchObject({
      name: "AbortError",
    });
    await expect(ray.get(ref, { signal: AbortSignal.timeout(1) })).rejects.toMatchObject({
      name: "TimeoutError",
    });
    const unused = new AbortController();
    const got = ray.get(ref, { signal: unused.signal });
    meeting.open.remote();
    expect(await got).toBe(1);
    unused.abort();
    expect(await ray.wait([ref], { signal: new AbortController().signal })).toEqual({
      ready: [ref],
      pending: [],
    });
    await expect(ray.get(ref, { signal: 5 as never })).rejects.toThrow("must be an AbortSignal");
  });

  test("with timeout 0 answers at once for what is ready and rejects for what is not", async () => {
    expect(await ray.get(ray.put(1), { timeoutMs: 0 })).toBe(1);
    await expect(ray.get(Meeting.remote().never.remote(), { timeoutMs: 0 })).rejects.toThrow(
      ray.GetTimeoutError,
    );
  });

  test("of a list fails with the first failure, without waiting for the rest", async () => {
    const meeting = Meeting.remote();
    await expect(ray.get([meeting.never.remote(), throwing.remote("at once")])).rejects.toThrow(
      "at once",
    );
  });

  test("gives a fresh value each time, and a put is a snapshot", async () => {
    const value = { list: [1, 2] };
    const ref = ray.put(value);
    value.list.push(3);
    const [first, second] = await ray.get([ref, ref]);
    expect(first).toEqual({ list: [1, 2] });
    expect(first).not.toBe(second);
  });

  test.each([
    ["a number", 5],
    ["a promise", Promise.resolve(1)],
    ["undefined", undefined],
  ])("of %s rejects with InvalidOptionError", async (_name, value) => {
    await expect(ray.get(value as never)).rejects.toThrow(ray.InvalidOptionError);
  });

  test("names the place of what is no ref in a list, and refuses a bad timeout", async () => {
    await expect(ray.get([ray.put(1), 7 as never])).rejects.toThrow(
      "refs[1] is not an ObjectRef but 7",
    );
    await expect(ray.get(ray.put(1), { timeoutMs: -1 })).rejects.toThrow("timeoutMs");
    await expect(ray.get(ray.put(1), { stuckWarningMs: -1 })).rejects.toThrow("stuckWarningMs");
    await expect(ray.get(ray.put(1), { timeoutMs: Number.NaN })).rejects.toThrow("timeoutMs");
  });
});

describe("put", () => {
  test("refuses a ref and what cannot travel", () => {
    expect(() => ray.put(ray.put(1))).toThrow(ray.InvalidOptionError);
    expect(() => ray.put({ deep: [{ on: () => 1 }] })).toThrow("value.deep[0].on is a function");
  });

  test("of an actor handle and of a ref inside a value works", async () => {
    const counter = Counter.remote(41);
    const value = await ray.get(ray.put({ counter, inner: [ray.put("inner")] }));
    expect(await ray.get(value.counter.increment.remote())).toBe(42);
    expect(await ray.get(value.inner)).toEqual(["inner"]);
  });
});

describe("wait", () => {
  test("gives the first ready refs in input order and keeps the rest", async () => {
    const refs = [
      ray.put("a"),
      Meeting.remote().never.remote(),
      ray.put("b"),
      ray.put("c"),
    ] as const;
    const { ready, pending } = await ray.wait(refs, { numReturns: 2 });
    expect(ready).toEqual([refs[0], refs[2]]);
    expect(pending).toEqual([refs[1], refs[3]]);
  });

  test("answers with what is ready when the time is over", async () => {
    const never = Meeting.remote().never.remote();
    const done = ray.put(1);
    const { ready, pending } = await ray.wait([never, done] as ray.ObjectRef[], {
      numReturns: 2,
      timeoutMs: 20,
    });
    expect(ready).toEqual([done]);
    expect(pending).toEqual([never]);
    expect(await ray.wait([never], { timeoutMs: 0 })).toEqual({ ready: [], pending: [never] });
  });

  test("counts a failed ref as ready and does not reject", async () => {
    const failed = throwing.remote("no matter");
    expect(await ray.wait([failed])).toEqual({ ready: [failed], pending: [] });
  });

  test("one at a time goes through all of them", async () => {
    let pending: ray.ObjectRef<number>[] = Array.from({ length: 20 }, (_, index) =>
      add.remote(index, 1),
    );
    let sum = 0;
    while (pending.length > 0) {
      const step = await ray.wait(pending);
      sum += await ray.get(step.ready[0] as ray.ObjectRef<number>);
      pending = step.pending;
    }
    expect(sum).toBe(210);
  });

  test("of a list that it left goes on with what is in it now", async () => {
    const refs = Array.from({ length: 60 }, (_, index) => ray.put(index));
    const valuesOf = async (list: readonly ray.ObjectRef<number>[]): Promise<number[]> =>
      ray.get(list);
    const all = [...Array(60).keys()];
    const first = await ray.wait(refs, { numReturns: 3 });
    expect(await valuesOf(first.pending)).toEqual(all.slice(3));
    // Given twice at the same time, each goes on from what it was given.
    const [one, other] = await Promise.all([
      ray.wait(first.pending),
      ray.wait(first.pending, { numReturns: 5 }),
    ]);
    expect(await valuesOf(one.pending)).toEqual(all.slice(4));
    expect(await valuesOf(other.ready)).toEqual([3, 4, 5, 6, 7]);
    expect(await valuesOf(other.pending)).toEqual(all.slice(8));
    // Changed by whoever has it: longer, in another order, and with a ref twice.
    const { pending } = other;
    pending.push(ray.put(60));
    const longer = await ray.wait(pending, { numReturns: 2 });
    expect(await valuesOf(longer.pending)).toEqual([...all.slice(10), 60]);
    longer.pending.reverse();
    const turned = await ray.wait(longer.pending);
    expect(await valuesOf(turned.ready)).toEqual([60]);
    expect(await valuesOf(turned.pending)).toEqual(all.slice(10).toReversed());
    turned.pending[1] = turned.pending[0]!;
    await expect(ray.wait(turned.pending)).rejects.toThrow("a ref stands twice in the list");
    turned.pending[1] = 7 as never;
    await expect(ray.wait(turned.pending)).rejects.toThrow("refs[1] is not an ObjectRef");
  });

  test("of a list that it left finds the ready ones among those that are not", async () => {
    const meeting = Meeting.remote();
    const never = Array.from({ length: 20 }, () => meeting.never.remote());
    const puts = Array.from({ length: 20 }, (_, index) => ray.put(index));
    let left: ray.ObjectRef[] = [...never.slice(0, 10), ...puts, ...never.slice(10)];
    const seen: unknown[] = [];
    for (let round = 0; round < 10; round++) {
      const { ready, pending } = await ray.wait(left, { numReturns: 2 });
      seen.push(...(await ray.get(ready)));
      left = pending;
    }
    expect(seen).toEqual([...Array(20).keys()]);
    expect(left).toEqual(never);
    const late = await ray.wait(left, { numReturns: 20, timeoutMs: 0 });
    expect(late.ready).toEqual([]);
    expect(late.pending).toEqual(never);
  });

  test("takes the first ready ones, so many as asked, wherever they stand", async () => {
    const meeting = Meeting.remote();
    for (let seed = 0; seed < 20; seed++) {
      const random = seededRandom(seed);
      const isReady = Array.from({ length: 50 }, () => random() < 0.5);
      let left: ray.ObjectRef[] = isReady.map((is) => (is ? ray.put(0) : meeting.never.remote()));
      let open = left.map((ref, at) => ({ ref, is: isReady[at] === true }));
      for (let count = open.filter(({ is }) => is).length; count > 0;) {
        const numReturns = Math.min(count, 1 + Math.floor(4 * random()));
        const taken = open.filter(({ is }) => is).slice(0, numReturns);
        open = open.filter((one) => !taken.includes(one));
        const { ready, pending } = await ray.wait(left, { numReturns });
        expect(ready.map((ref) => taken.findIndex((one) => one.ref === ref))).toEqual([
          ...taken.keys(),
        ]);
        expect(pending.length).toBe(open.length);
        expect(pending.every((ref, at) => ref === open[at]?.ref)).toBe(true);
        left = pending;
        count -= numReturns;
      }
    }
  });

  test("refuses a duplicate, a bare ref, a bad count and a negative time, and takes an empty list", async () => {
    const ref = ray.put(1);
    await expect(ray.wait([ref, ref])).rejects.toThrow("stands twice");
    await expect(ray.wait(ref as never)).rejects.toThrow(ray.InvalidOptionError);
    await expect(ray.wait([1 as never])).rejects.toThrow("refs[0]");
    await expect(ray.wait([ref, "x" as never])).rejects.toThrow("refs[1]");
    await expect(ray.wait([ref], { numReturns: 2 })).rejects.toThrow("numReturns");
    await expect(ray.wait([ref], { numReturns: 0 })).rejects.toThrow("numReturns");
    await expect(ray.wait([ref], { timeoutMs: -5 })).rejects.toThrow("timeoutMs");
    await expect(ray.wait([ref], { timeout: 5 } as never)).rejects.toThrow('no option "timeout"');
    expect(await ray.wait([])).toEqual({ ready: [], pending: [] });
  });
});
