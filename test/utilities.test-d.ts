import { describe, expectTypeOf, test } from "vitest";
import * as ray from "@rayling/core";

class Other {
  half(value: number): number {
    return value / 2;
  }
}

class Worker {
  double(value: number): number {
    return 2 * value;
  }
  async name(value: number): Promise<string> {
    return String(value);
  }
}

const pool = new ray.ActorPool([ray.remote(Worker).remote()]);

describe("an actor pool", () => {
  test("knows its actors, and what a map gives", async () => {
    expectTypeOf(pool).toEqualTypeOf<ray.ActorPool<ray.ActorHandle<Worker>>>();
    const doubled = pool.map((actor, value) => actor.double.remote(value), [1, 2]);
    for await (const one of doubled) expectTypeOf(one).toEqualTypeOf<number>();
    const named = pool.mapUnordered((actor, value) => actor.name.remote(value), new Set([1]));
    for await (const one of named) expectTypeOf(one).toEqualTypeOf<string>();
    const both = pool.map(
      (actor, value) => [actor.double.remote(value), actor.name.remote(value)] as const,
      [1],
    );
    for await (const one of both) expectTypeOf(one).toEqualTypeOf<[number, string]>();
    expectTypeOf(pool.popIdle()).toEqualTypeOf<ray.ActorHandle<Worker> | undefined>();
    expectTypeOf(await pool.getNext<number>()).toEqualTypeOf<number>();
    expectTypeOf(await pool.getNextUnordered()).toEqualTypeOf<unknown>();
  });

  test("refuses the wrong values, methods and results", () => {
    // @ts-expect-error double takes a number
    pool.map((actor, value) => actor.double.remote(value), ["1"]);
    // @ts-expect-error no such method
    pool.submit((actor, value) => actor.half.remote(value), 1);
    // @ts-expect-error the value of a call, not its ref
    pool.submit((_actor, value) => value, 1);
    // @ts-expect-error an actor of another class
    pool.push(ray.remote(Other).remote());
    // @ts-expect-error not an actor
    void new ray.ActorPool([5]);
  });
});

describe("a queue", () => {
  const queue = new ray.Queue<string>({ maxsize: 2 });

  test("has the type of its items", async () => {
    expectTypeOf(await queue.get({ timeoutMs: 1 })).toEqualTypeOf<string>();
    expectTypeOf(await queue.getNowait()).toEqualTypeOf<string>();
    expectTypeOf(await queue.getNowaitBatch(2)).toEqualTypeOf<string[]>();
    expectTypeOf(queue.put("a", { block: false })).toEqualTypeOf<Promise<void>>();
    // @ts-expect-error the wrong type
    void queue.put(1);
    // @ts-expect-error the wrong type
    void queue.putNowaitBatch([1]);
    // @ts-expect-error seconds are Ray's
    void queue.get({ timeout: 1 });
    // @ts-expect-error a queue limits itself
    void new ray.Queue({ actorOptions: { maxConcurrency: 5 } });
  });

  test("passes to actors and tasks as what it is", () => {
    const consume = ray.remote((from: ray.Queue<string>): Promise<string> => from.get());
    expectTypeOf(consume.remote(queue)).toEqualTypeOf<ray.ObjectRef<string>>();
    // @ts-expect-error a queue of other items
    consume.remote(new ray.Queue<number>());
  });
});
