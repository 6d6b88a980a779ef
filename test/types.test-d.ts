import { describe, expectTypeOf, test } from "vitest";
import * as ray from "@rayling/core";

class Counter {
  #secret = 0;
  readonly field = 1;
  constructor(start: number, label?: string) {
    this.#secret = start + (label?.length ?? 0);
  }
  increment(by = 1): number {
    return (this.#secret += by);
  }
  async name(prefix: string, suffix?: string): Promise<string> {
    return prefix + (suffix ?? "");
  }
  ref(): ray.ObjectRef<Date> {
    return ray.put(new Date());
  }
  async asyncRef(): Promise<ray.ObjectRef<Date>> {
    return ray.put(new Date());
  }
  use(other: ray.ActorHandle<Counter>, ...rest: readonly number[]): ray.ActorHandle<Counter> {
    void rest;
    return other;
  }
  protected hidden(): void {}
}

const ActorClass = ray.remote(Counter);
const handle = ActorClass.remote(1);
const add = ray.remote((left: number, right: number): number => left + right);
const later = ray.remote(async (text: string): Promise<{ text: string }> => ({ text }));

describe("an actor", () => {
  test("is created with the arguments of its constructor, or refs to them", () => {
    expectTypeOf(ActorClass.remote(1, "label")).toEqualTypeOf<ray.ActorHandle<Counter>>();
    expectTypeOf(ActorClass.remote(ray.put(1))).toEqualTypeOf<ray.ActorHandle<Counter>>();
    // @ts-expect-error the constructor takes a number
    ActorClass.remote("one");
    // @ts-expect-error the constructor takes an argument
    ActorClass.remote();
    // @ts-expect-error no such option
    ActorClass.options({ maxRestart: 1 });
  });

  test("has methods that give refs to what they return or resolve with", () => {
    expectTypeOf(handle.increment.remote(2)).toEqualTypeOf<ray.ObjectRef<number>>();
    expectTypeOf(handle.increment.remote()).toEqualTypeOf<ray.ObjectRef<number>>();
    expectTypeOf(handle.name.remote("a")).toEqualTypeOf<ray.ObjectRef<string>>();
    expectTypeOf(handle.asyncRef.remote()).toEqualTypeOf<ray.ObjectRef<ray.ObjectRef<Date>>>();
    expectTypeOf(handle.name.options({ maxTaskRetries: 1 }).remote("a")).toEqualTypeOf<
      ray.ObjectRef<string>
    >();
  });

  test("takes a ref wherever a value may stand at the top level, and nowhere else", () => {
    expectTypeOf(handle.increment.remote(ray.put(2))).toEqualTypeOf<ray.ObjectRef<number>>();
    handle.name.remote(handle.name.remote("a"), "b");
    handle.use.remote(handle, 1, ray.put(2));
    // @ts-expect-error a ref to the wrong type
    handle.increment.remote(ray.put("2"));
    // @ts-expect-error the wrong type
    handle.increment.remote("2");
    // @ts-expect-error too many arguments
    handle.increment.remote(1, 2);
    // @ts-expect-error the first argument is missing
    handle.name.remote();
    // @ts-expect-error a ref to a handle's sister type
    handle.use.remote(ray.put(5));
  });

  test("has no unknown, private or protected methods, and no fields", () => {
    // @ts-expect-error no such method
    void handle.decrement;
    // @ts-expect-error protected
    void handle.hidden;
    // @ts-expect-error a field is not a method
    void handle.field;
    // @ts-expect-error call increment.remote()
    handle.increment(1);
    expectTypeOf<keyof typeof handle & string>().toEqualTypeOf<
      | "increment"
      | "name"
      | "ref"
      | "asyncRef"
      | "use"
      | "__ray_call__"
      | "__ray_ready__"
      | "__ray_terminate__"
    >();
  });

  test("found by name has the methods of the class that is named", async () => {
    expectTypeOf(await ray.getActor<Counter>("c")).toEqualTypeOf<ray.ActorHandle<Counter>>();
  });
});

describe("a task", () => {
  test("has the arguments and the result of its function", () => {
    expectTypeOf(add.remote(1, ray.put(2))).toEqualTypeOf<ray.ObjectRef<number>>();
    expectTypeOf(later.remote("a")).toEqualTypeOf<ray.ObjectRef<{ text: string }>>();
    // @ts-expect-error the wrong type
    add.remote(1, "2");
    // @ts-expect-error no such option for tasks
    add.options({ maxRestarts: 1 });
  });
});

/** Iterates by itself, and travels as itself when it has a serializer. */
declare class Pages implements AsyncIterable<string> {
  readonly title: string;
  [Symbol.asyncIterator](): AsyncIterator<string>;
}

/** Is `any`, as what many functions of JavaScript return. */
type Anything = ReturnType<typeof JSON.parse>;

declare class Results {
  any(text?: string): Anything;
  asyncAny(): Promise<Anything>;
  unknown(): unknown;
  never(): never;
  list(): number[];
  iterable(): Iterable<number>;
  pages(): Pages;
  either(): Generator<number> | number[];
  generator(): Generator<number>;
  generatorOfNext(): Generator<number, string, boolean>;
  iterableIterator(): IterableIterator<number>;
  iterator(): Iterator<number>;
  iteratorObject(): IteratorObject<number>;
  asyncGenerator(): AsyncGenerator<string>;
  asyncIterable(): AsyncIterable<string>;
  asyncIterableIterator(): AsyncIterableIterator<string>;
  asyncIterator(): AsyncIterator<string>;
  asyncIteratorObject(): AsyncIteratorObject<string>;
  generatorOfAny(): Generator<Anything>;
}
declare const results: ray.ActorHandle<Results>;
declare const parse: ray.RemoteFunction<(text: string) => Anything>;

describe("a result", () => {
  test("of any is a ref that can be used as any other", async () => {
    expectTypeOf(results.any.remote()).toEqualTypeOf<ray.ObjectRef<Anything>>();
    expectTypeOf(results.asyncAny.remote()).toEqualTypeOf<ray.ObjectRef<Anything>>();
    expectTypeOf(parse.remote("1")).toEqualTypeOf<ray.ObjectRef<Anything>>();
    expectTypeOf(await ray.get(parse.remote("1"))).toBeAny();
    expectTypeOf(await ray.get([parse.remote("1"), add.remote(1, 2)])).toEqualTypeOf<
      [Anything, number]
    >();
    expectTypeOf(add.remote(parse.remote("1"), results.any.remote())).toEqualTypeOf<
      ray.ObjectRef<number>
    >();
    for await (const value of ray.map(parse, ["1"])) expectTypeOf(value).toBeAny();
    const pool = new ray.ActorPool([results]);
    for await (const value of pool.map((actor, text: string) => actor.any.remote(text), ["1"])) {
      expectTypeOf(value).toBeAny();
    }
    const [one, two] = results.any.options({ numReturns: 2 }).remote();
    expectTypeOf([one, two]).toEqualTypeOf<(ray.ObjectRef<Anything> | undefined)[]>();
    const streamed = results.any.options({ numReturns: "streaming" }).remote();
    expectTypeOf(streamed).toEqualTypeOf<ray.ObjectRefGenerator<Anything>>();
    expectTypeOf(results.generatorOfAny.remote()).toEqualTypeOf<ray.ObjectRefGenerator<Anything>>();
  });

  test("of unknown or never is a ref", () => {
    expectTypeOf(results.unknown.remote()).toEqualTypeOf<ray.ObjectRef>();
    expectTypeOf(results.unknown.options({ numReturns: 2 }).remote()).toEqualTypeOf<
      ray.ObjectRef[]
    >();
    expectTypeOf(
      results.unknown.options({ numReturns: "streaming" }).remote(),
    ).toEqualTypeOf<ray.ObjectRefGenerator>();
    expectTypeOf(results.never.remote()).toEqualTypeOf<ray.ObjectRef<never>>();
    expectTypeOf(results.never.options({ numReturns: 2 }).remote()).toEqualTypeOf<
      ray.ObjectRef<never>[]
    >();
  });

  test("of a generator is a stream, whichever type of iterator it is declared as", () => {
    type Numbers = ray.ObjectRefGenerator<number>;
    expectTypeOf(results.generator.remote()).toEqualTypeOf<Numbers>();
    expectTypeOf(results.generatorOfNext.remote()).toEqualTypeOf<Numbers>();
    expectTypeOf(results.iterableIterator.remote()).toEqualTypeOf<Numbers>();
    expectTypeOf(results.iterator.remote()).toEqualTypeOf<Numbers>();
    expectTypeOf(results.iteratorObject.remote()).toEqualTypeOf<Numbers>();
    type Texts = ray.ObjectRefGenerator<string>;
    expectTypeOf(results.asyncGenerator.remote()).toEqualTypeOf<Texts>();
    expectTypeOf(results.asyncIterable.remote()).toEqualTypeOf<Texts>();
    expectTypeOf(results.asyncIterableIterator.remote()).toEqualTypeOf<Texts>();
    expectTypeOf(results.asyncIterator.remote()).toEqualTypeOf<Texts>();
    expectTypeOf(results.asyncIteratorObject.remote()).toEqualTypeOf<Texts>();
  });

  test("that may be a value is a ref", () => {
    expectTypeOf(results.list.remote()).toEqualTypeOf<ray.ObjectRef<number[]>>();
    expectTypeOf(results.iterable.remote()).toEqualTypeOf<ray.ObjectRef<Iterable<number>>>();
    expectTypeOf(results.pages.remote()).toEqualTypeOf<ray.ObjectRef<Pages>>();
    expectTypeOf(results.either.remote()).toEqualTypeOf<
      ray.ObjectRef<Generator<number> | number[]>
    >();
  });
});

describe("get, put and wait", () => {
  test("keep the types of values, lists and tuples", async () => {
    expectTypeOf(await ray.get(ray.put("text"))).toEqualTypeOf<string>();
    const numbers = [1, 2].map((by) => handle.increment.remote(by));
    expectTypeOf(await ray.get(numbers)).toEqualTypeOf<number[]>();
    expectTypeOf(await ray.get([add.remote(1, 2), later.remote("a"), ray.put(true)])).toEqualTypeOf<
      [number, { text: string }, boolean]
    >();
    const { ready } = await ray.wait(numbers, { numReturns: 1, timeoutMs: 50 });
    expectTypeOf(ready).toEqualTypeOf<ray.ObjectRef<number>[]>();
  });

  test("take refs only", () => {
    // @ts-expect-error not a ref
    void ray.get(5);
    // @ts-expect-error not a list of refs
    void ray.wait(ray.put(1));
  });

  test("a ref is not thenable, so an async function may return one", async () => {
    const give = async (): Promise<ray.ObjectRef<number>> => ray.put(1);
    expectTypeOf(await give()).toEqualTypeOf<ray.ObjectRef<number>>();
    expectTypeOf<ray.ObjectRef<number>>().not.toHaveProperty("then");
  });

  test("a ref to a narrower type is one to a wider type, not the other way round", () => {
    expectTypeOf<ray.ObjectRef<1>>().toExtend<ray.ObjectRef<number>>();
    expectTypeOf<ray.ObjectRef<string>>().not.toExtend<ray.ObjectRef<number>>();
  });
});
