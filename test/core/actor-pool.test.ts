import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { alone, isAlone, together } from "../fixtures/isolation.ts";
import {
  addOne,
  addOneUnless3,
  newMoments,
  PoolHolder,
  PoolWorker,
  type WorkerClass,
} from "../fixtures/utilities.ts";

beforeAll(() => ray.init({ numCpus: 4, prewarm: 0, ...together }));
afterAll(() => ray.shutdown());

type Worker = ray.ActorHandle<WorkerClass>;

const workers = (count: number): Worker[] =>
  Array.from({ length: count }, () => PoolWorker.remote());
const double = (actor: Worker, value: number): ray.ObjectRef<number> => actor.double.remote(value);
const gated = (actor: Worker, value: number): ray.ObjectRef<number> => actor.gated.remote(value);
const fail = (actor: Worker, value: number): ray.ObjectRef<number> => actor.fail.remote(value);
/** Lets a gated call end, whichever actor it is on. */
const open = (actors: readonly Worker[], value: number): Promise<unknown> =>
  ray.get(actors.map((actor) => actor.open.remote(value)));
const all = async <T>(values: AsyncIterable<T>): Promise<T[]> => Array.fromAsync(values);
const started = async (actors: readonly Worker[]): Promise<number[]> =>
  (await ray.get(actors.map((actor) => actor.started.remote()))).flat();

describe("submit and getNext", () => {
  test("give results in the order of submission, however many actors there are", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (let value = 0; value < 5; value++) pool.submit(double, value);
    const results: number[] = [];
    while (pool.hasNext()) results.push(await pool.getNext<number>());
    expect(results).toEqual([0, 2, 4, 6, 8]);
  });

  test("answer getters that ask at the same time each with its own", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (let value = 0; value < 6; value++) pool.submit(double, value);
    const getters = Array.from({ length: 6 }, () => pool.getNext());
    expect(pool.hasNext()).toBe(false);
    await expect(pool.getNext()).rejects.toThrow(ray.NoMoreResultsError);
    expect(await Promise.all(getters)).toEqual([0, 2, 4, 6, 8, 10]);
  });

  test("go on with other actors while the head of the line is slow", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    pool.submit(gated, 1);
    for (const value of [2, 3, 4]) pool.submit(double, value);
    pool.submit((actor, value) => {
      void open(actors, 1);
      return actor.double.remote(value);
    }, 5);
    // The first ends only when the fifth has started.
    expect(await pool.getNext()).toBe(1);
    for (const result of [4, 6, 8, 10]) expect(await pool.getNext()).toBe(result);
  });

  test("of nothing reject with a typed error", async () => {
    const pool = new ray.ActorPool(workers(1));
    for (const call of [() => pool.getNext(), () => pool.getNextUnordered()]) {
      const error = await call().catch((caught: unknown) => caught);
      expect(error).toBeInstanceOf(ray.NoMoreResultsError);
      expect(error).toMatchObject({ code: "NO_MORE_RESULTS" });
    }
  });
});

describe("getNextUnordered", () => {
  test("gives what is ready, whichever it is", async () => {
    const actors = workers(3);
    const pool = new ray.ActorPool(actors);
    for (const value of [1, 2, 3]) pool.submit(gated, value);
    for (const value of [2, 3, 1]) {
      await open(actors, value);
      expect(await pool.getNextUnordered()).toBe(value);
    }
    expect(pool.hasNext()).toBe(false);
  });

  test("gives each result once to getters that ask at the same time", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (let value = 0; value < 6; value++) pool.submit(double, value);
    const results = await Promise.all(
      Array.from({ length: 6 }, () => pool.getNextUnordered<number>()),
    );
    expect(results.toSorted((left, right) => left - right)).toEqual([0, 2, 4, 6, 8, 10]);
  });

  test("rules out getNext until all is taken", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (const value of [1, 2, 3]) pool.submit(double, value);
    await pool.getNextUnordered();
    await expect(pool.getNext()).rejects.toThrow(ray.RaySystemError);
    await expect(pool.getNext()).rejects.toThrow("cannot follow getNextUnordered");
    await pool.getNextUnordered();
    await pool.getNextUnordered();
    pool.submit(double, 4);
    expect(await pool.getNext()).toBe(8);
  });
});

describe("a timeout", () => {
  test("leaves the result to be got later, in its place", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    pool.submit(gated, 1);
    pool.submit(double, 2);
    const error = await pool.getNext({ timeoutMs: 5 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(ray.GetTimeoutError);
    expect(error).toMatchObject({ timeoutMs: 5 });
    expect(String(error)).toContain("WorkerClass.gated");
    await expect(pool.getNext({ timeoutMs: 0 })).rejects.toThrow(ray.GetTimeoutError);
    expect(pool.hasFree()).toBe(false);
    await open(actors, 1);
    expect([await pool.getNext(), await pool.getNext()]).toEqual([1, 4]);
  });

  test("with ignoreIfTimedOut gives the result up and the actor back", async () => {
    const actors = workers(1);
    const pool = new ray.ActorPool(actors);
    pool.submit(gated, 1);
    pool.submit(double, 2);
    await expect(pool.getNext({ timeoutMs: 0, ignoreIfTimedOut: true })).rejects.toThrow(
      ray.GetTimeoutError,
    );
    expect(await pool.getNext()).toBe(4);
    expect([pool.hasNext(), pool.hasFree()]).toEqual([false, true]);
  });

  test("of getNextUnordered does the same", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    pool.submit(gated, 1);
    pool.submit(gated, 2);
    await expect(pool.getNextUnordered({ timeoutMs: 0 })).rejects.toThrow(ray.GetTimeoutError);
    expect(pool.hasFree()).toBe(false);
    const options = { timeoutMs: 0, ignoreIfTimedOut: true };
    await expect(pool.getNextUnordered(options)).rejects.toThrow(ray.GetTimeoutError);
    expect(pool.hasFree()).toBe(true);
    await open(actors, 2);
    expect(await pool.getNextUnordered()).toBe(2);
    expect(pool.hasNext()).toBe(false);
  });
});

describe("a cancelled call", () => {
  const methods = ["double", "fail", "list"] as const;
  const orders = ["getNext", "getNextUnordered"] as const;
  test.each(methods.flatMap((method) => orders.map((order) => ({ method, order }))))(
    "takes no result: $order of $method",
    async ({ method, order }) => {
      const holder = PoolHolder.options({ numCpus: 0 }).remote();
      await ray.get(holder.submit.remote(method, 1));
      const moments = newMoments();
      const call = holder.nextWhenCancelled.remote(order, moments);
      await ray.get(moments.there.wait.remote());
      ray.cancel(call);
      await expect(ray.get(call)).rejects.toBeInstanceOf(ray.TaskCancelledError);
      await ray.get(moments.over.wait.remote());
      const next = ray.get(holder.next.remote(order));
      if (method === "fail") await expect(next).rejects.toThrow("no 1");
      else expect(await next).toEqual(method === "list" ? [2] : 2);
    },
  );
});

describe("map", () => {
  test("gives results in the order of the values", async () => {
    const pool = new ray.ActorPool(workers(3));
    const values = Array.from({ length: 50 }, (_, value) => value);
    expect(await all(pool.map(double, values))).toEqual(values.map((value) => 2 * value));
    expect([pool.hasNext(), pool.hasFree()]).toEqual([false, true]);
  });

  test("is lazy: it starts nothing before it is asked, and takes values at most two per actor ahead", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    const taken: number[] = [];
    const values = function* (): Generator<number> {
      for (let value = 0; value < 100; value++) {
        taken.push(value);
        yield value;
      }
    };
    const results = pool.map(double, values());
    expect(pool.hasFree()).toBe(true);
    expect(taken).toEqual([]);
    expect((await results.next()).value).toBe(0);
    expect(taken).toEqual([0, 1, 2, 3]);
    expect((await results.next()).value).toBe(2);
    expect(taken).toEqual([0, 1, 2, 3, 4]);
  });

  test("left early gives up the rest, and the pool goes on", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    let ended = false;
    const values = function* (): Generator<number> {
      try {
        for (let value = 0; ; value++) yield value;
      } finally {
        ended = true;
      }
    };
    for await (const result of pool.map(double, values())) if (result === 6) break;
    expect(ended).toBe(true);
    expect([pool.hasFree(), pool.hasNext()]).toEqual([true, false]);
    expect(await all(pool.map(double, [1, 2, 3]))).toEqual([2, 4, 6]);
    expect(Math.max(...(await started(actors)))).toBeLessThan(10);
  });

  test("ends with the first failure; its actor stays in the pool", async () => {
    const pool = new ray.ActorPool(workers(1));
    const failing = pool.map(
      (actor, value: number) => (value === 2 ? fail : double)(actor, value),
      [1, 2, 3],
    );
    expect((await failing.next()).value).toBe(2);
    await expect(failing.next()).rejects.toThrow("no 2");
    expect((await failing.next()).done).toBe(true);
    expect(await all(pool.map(double, [5]))).toEqual([10]);
  });

  test("leaves alone what was submitted before, even if that holds every actor", async () => {
    const pool = new ray.ActorPool(workers(2));
    for (const value of [10, 20, 30]) pool.submit(double, value);
    expect(await all(pool.map(double, [1, 2, 3, 4]))).toEqual([2, 4, 6, 8]);
    const rest: number[] = [];
    while (pool.hasNext()) rest.push(await pool.getNext<number>());
    expect(rest).toEqual([20, 40, 60]);
  });

  test("does not wait for an earlier call that is stuck", async () => {
    const pool = new ray.ActorPool(workers(2));
    pool.submit(gated, 6);
    expect(await all(pool.map(double, [1, 2, 3, 4, 5]))).toEqual([2, 4, 6, 8, 10]);
  });

  test("may run many times at once on one pool", async () => {
    const pool = new ray.ActorPool(workers(2));
    const lists = await Promise.all(
      [0, 1, 2].map((list) => all(pool.map(double, [list, list + 10, list + 20]))),
    );
    expect(lists).toEqual([
      [0, 20, 40],
      [2, 22, 42],
      [4, 24, 44],
    ]);
  });

  test("unordered gives what is ready first", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors);
    const results = pool.mapUnordered(gated, [1, 2, 3]);
    const first = results.next();
    await open(actors, 2);
    expect((await first).value).toBe(2);
    await open(actors, 3);
    expect((await results.next()).value).toBe(3);
    await open(actors, 1);
    expect((await results.next()).value).toBe(1);
    expect((await results.next()).done).toBe(true);
  });

  test("of nothing gives nothing, and takes lists of refs", async () => {
    const pool = new ray.ActorPool(workers(1));
    expect(await all(pool.map(double, []))).toEqual([]);
    const pairs = pool.map(
      (actor, value: number) => [actor.double.remote(value), actor.both.remote(value)] as const,
      [1, 2],
    );
    expect(await all(pairs)).toEqual([
      [2, [1, "1"]],
      [4, [2, "2"]],
    ]);
  });
});

describe("the actors of a pool", () => {
  test("are free until something is submitted, and again when its result is taken", async () => {
    const pool = new ray.ActorPool(workers(2));
    pool.submit(double, 1);
    expect(pool.hasFree()).toBe(true);
    pool.submit(double, 1);
    expect(pool.hasFree()).toBe(false);
    await pool.getNext();
    expect(pool.hasFree()).toBe(true);
    expect(pool.popIdle()).toBeDefined();
    expect(pool.popIdle()).toBeUndefined();
    expect(await pool.getNext()).toBe(2);
  });

  test("may be added, but not twice, neither idle nor busy", async () => {
    const [first, second] = workers(2) as [Worker, Worker];
    const pool = new ray.ActorPool([first]);
    expect(() => pool.push(first)).toThrow(ray.InvalidOptionError);
    expect(() => new ray.ActorPool([first, first])).toThrow("is in the pool already");
    pool.submit(double, 1);
    expect(() => pool.push(first)).toThrow("is in the pool already");
    pool.submit(gated, 2);
    pool.push(second);
    await open([second], 2);
    expect([await pool.getNext(), await pool.getNext()]).toEqual([2, 2]);
    expect(() => new ray.ActorPool([{} as Worker])).toThrow("takes actor handles");
  });

  test("that failed a call stay in it", async () => {
    const pool = new ray.ActorPool(workers(1));
    pool.submit(fail, 1);
    pool.submit(double, 2);
    await expect(pool.getNext()).rejects.toThrow("no 1");
    expect(await pool.getNext()).toBe(4);
    pool.submit(fail, 3);
    await expect(pool.getNextUnordered()).rejects.toThrow("no 3");
    expect(pool.hasFree()).toBe(true);
  });

  test.skipIf(!isAlone)("that died are dropped; the others do the work", async () => {
    const pool = new ray.ActorPool([1, 2].map(() => PoolWorker.options(alone).remote()));
    pool.submit((actor, value) => actor.exit.remote(value), 1);
    for (const value of [2, 3, 4]) pool.submit(double, value);
    await expect(pool.getNext()).rejects.toThrow(ray.ActorDiedError);
    const rest: number[] = [];
    while (pool.hasNext()) rest.push(await pool.getNext<number>());
    expect(rest).toEqual([4, 6, 8]);
    expect(pool.popIdle()).toBeDefined();
    expect(pool.popIdle()).toBeUndefined();
  });

  test("that called a dead actor are not dropped", async () => {
    const pool = new ray.ActorPool(workers(1));
    pool.submit((actor, value) => actor.callsDead.remote(value), 1);
    await expect(pool.getNext()).rejects.toThrow(ray.ActorDiedError);
    expect(pool.hasFree()).toBe(true);
  });

  test("may all be gone: what is queued fails at once, and runs when one is pushed", async () => {
    const pool = new ray.ActorPool<Worker>([]);
    pool.submit(double, 1);
    expect(pool.hasNext()).toBe(true);
    await expect(pool.getNext()).rejects.toThrow("the pool has no actor left");
    await expect(pool.getNextUnordered()).rejects.toThrow("the pool has no actor left");
    await expect(all(pool.map(double, [1]))).rejects.toThrow("the pool has no actor left");
    pool.push(PoolWorker.remote());
    expect(await pool.getNext()).toBe(2);
  });
});

describe("bad input", () => {
  test("a function that throws or returns no ref fails its submission and no other", async () => {
    const pool = new ray.ActorPool(workers(1));
    const throwing = (): never => {
      throw new TypeError("not today");
    };
    expect(() => pool.submit(throwing, 1)).toThrow("not today");
    expect(() => pool.submit(() => 5 as never, 1)).toThrow("must return the ref");
    expect(() => pool.submit(() => [], 1)).toThrow(ray.InvalidOptionError);
    expect([pool.hasFree(), pool.hasNext()]).toEqual([true, false]);
    pool.submit(double, 1);
    pool.submit(throwing, 2);
    pool.submit(double, 3);
    expect(await pool.getNext()).toBe(2);
    await expect(pool.getNext()).rejects.toThrow("not today");
    expect(await pool.getNext()).toBe(6);
  });

  test("options are checked", async () => {
    const pool = new ray.ActorPool(workers(1));
    pool.submit(double, 1);
    await expect(pool.getNext({ timeoutMs: -1 })).rejects.toThrow("timeoutMs");
    await expect(pool.getNextUnordered({ timeout: 1 } as never)).rejects.toThrow("timeout");
    await expect(pool.getNext({ ignoreIfTimedOut: 1 } as never)).rejects.toThrow(
      "ignoreIfTimedOut",
    );
    expect(await pool.getNext()).toBe(2);
  });
});

describe("maxInFlightPerActor", () => {
  test("gives each actor so many calls, each its first before any a second one", async () => {
    const actors = workers(2);
    const pool = new ray.ActorPool(actors, { maxInFlightPerActor: 2 });
    for (let value = 0; value < 5; value++) pool.submit(gated, value);
    await expect.poll(() => started(actors)).toHaveLength(4);
    expect(new Set(await started(actors.slice(0, 1)))).toEqual(new Set([0, 2]));
    expect(pool.hasFree()).toBe(false);
    expect(pool.popIdle()).toBeUndefined();
    for (let value = 0; value < 5; value++) {
      await open(actors, value);
      expect(await pool.getNext()).toBe(value);
    }
    expect(pool.popIdle()).toBeDefined();
    expect(pool.popIdle()).toBeDefined();
    expect(pool.popIdle()).toBeUndefined();
  });

  test("forgets all places of an actor that died", async () => {
    const [one, other] = workers(2) as [Worker, Worker];
    const pool = new ray.ActorPool([one, other], { maxInFlightPerActor: 3 });
    await ray.kill(one);
    const results = [];
    for (let value = 0; value < 6; value++) pool.submit(double, value);
    while (pool.hasNext()) results.push(await pool.getNextUnordered().catch(() => "died"));
    expect(results.filter((result) => result !== "died").length).toBeGreaterThanOrEqual(3);
    expect(await all(pool.map(double, [1, 2, 3]))).toEqual([2, 4, 6]);
  });

  test("is a whole number of at least 1", () => {
    expect(() => new ray.ActorPool([], { maxInFlightPerActor: 0 })).toThrow("maxInFlightPerActor");
  });
});

describe("map and mapUnordered of tasks", () => {
  const numbers = function* (count: number, taken: number[]): Generator<number> {
    for (let value = 0; value < count; value++) {
      taken.push(value);
      yield value;
    }
  };

  test("give all results, in order or as they come, and take values as calls end", async () => {
    const taken: number[] = [];
    const ordered = ray.map(addOne, numbers(20, taken), { inFlight: 3 });
    expect(taken).toEqual([]);
    expect((await ordered.next()).value).toBe(1);
    expect(taken).toHaveLength(3);
    expect(await all(ordered)).toEqual(Array.from({ length: 19 }, (_, index) => index + 2));
    const unordered = await all(ray.mapUnordered(addOne, numbers(20, []), { inFlight: 4 }));
    expect(unordered.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  test("take methods of handles, functions that give refs, and what comes later", async () => {
    const [actor] = workers(1) as [Worker];
    expect(await all(ray.map(actor.double, [1, 2]))).toEqual([2, 4]);
    expect(await all(ray.map((value: number) => actor.double.remote(value), [3]))).toEqual([6]);
    const later = async function* (): AsyncGenerator<number> {
      yield 1;
      await new Promise((resolve) => setImmediate(resolve));
      yield 2;
    };
    expect(await all(ray.map(addOne, later()))).toEqual([2, 3]);
    await expect(all(ray.map((() => 5) as never, [1]))).rejects.toThrow("gave 5, not a ref");
    expect(() => ray.map(5 as never, [1])).toThrow("map takes a remote function");
    expect(() => ray.map(addOne, [1], { inFlight: 0 })).toThrow("inFlight");
  });

  test("end with the first failure, and whoever leaves cancels what is under way", async () => {
    const seen: unknown[] = [];
    const failing = async (): Promise<void> => {
      for await (const value of ray.map(addOneUnless3, [1, 2, 3, 4, 5], { inFlight: 2 })) {
        seen.push(value);
      }
    };
    await expect(failing()).rejects.toThrow("it is 3");
    expect(seen).toEqual([2, 3]);
    const [first, second] = workers(2) as [Worker, Worker];
    let calls = 0;
    const refs: ray.ObjectRef<number>[] = [];
    const call = (value: number): ray.ObjectRef<number> => {
      calls += 1;
      const ref = (value === 0 ? first.double : second.gated).remote(value);
      refs.push(ref);
      return ref;
    };
    for await (const value of ray.mapUnordered(call, [0, 1, 2, 3], { inFlight: 2 })) {
      expect(value).toBe(0);
      break;
    }
    expect(calls).toBe(2);
    await expect(ray.get(refs[1] as ray.ObjectRef<number>)).rejects.toThrow(ray.TaskCancelledError);
  });

  const both = [
    ["map", ray.map],
    ["mapUnordered", ray.mapUnordered],
  ] as const;
  test.each(both)("%s holds nothing back for a value", async (_name, mapped) => {
    const [actor] = workers(1) as [Worker];
    const results: number[] = [];
    const [ended, never] = [Promise.withResolvers<void>(), Promise.withResolvers<never>().promise];
    let isTaken = Promise.withResolvers<void>();
    const fed = async function* (): AsyncGenerator<number> {
      try {
        for (yield 1; ; yield results.at(-1) ?? 0) {
          await isTaken.promise;
          isTaken = Promise.withResolvers();
        }
      } finally {
        ended.resolve();
      }
    };
    for await (const value of mapped(actor.double, fed(), { inFlight: 8 })) {
      if (results.push(value) === 3) break;
      isTaken.resolve();
    }
    expect(results).toEqual([2, 4, 8]);
    isTaken.resolve();
    await ended.promise;
    const quiet = async function* (...values: readonly number[]): AsyncGenerator<number> {
      yield* values;
      await never;
    };
    await expect(all(mapped(actor.fail, quiet(1)))).rejects.toThrow("no 1");
    // Who leaves is served, whether a value, a call or both are waited for.
    for (const values of [quiet(), quiet(1), [1, never as never], [1, 2]]) {
      const left = mapped(actor.gated, values, { inFlight: 2 });
      const asked = left.next();
      expect(await left.return()).toEqual({ done: true, value: undefined });
      expect(await asked).toEqual({ done: true, value: undefined });
    }
  });

  test("read a list of promises, and end values as `for await` does", async () => {
    const read: unknown[] = [];
    const listed = function* (...values: readonly unknown[]): Generator<never> {
      try {
        yield* values as never[];
      } finally {
        read.push(values);
      }
    };
    expect(await all(ray.map(addOne, listed(Promise.resolve(1), 2)))).toEqual([2, 3]);
    const failing = listed(1, Promise.reject(new RangeError("late")));
    await expect(all(ray.map(addOne, failing))).rejects.toThrow("late");
    for await (const _ of ray.map(addOne, listed(5, 6), { inFlight: 1 })) break;
    expect(read).toHaveLength(3);
    const broken = { next: () => 5, [Symbol.asyncIterator]: () => broken };
    await expect(all(ray.map(addOne, broken as never))).rejects.toThrow("5 is not an object");
  });
});
