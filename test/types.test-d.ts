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
  __ray_shutdown__(): void {}
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

  test("gets the value of a ref, so that a parameter that is a ref takes one to it", () => {
    const number = ray.put(1);
    const either = ray.remote((value: ray.ObjectRef<number> | string): unknown => value);
    const nested = ray.remote((refs: readonly ray.ObjectRef<number>[]): unknown => refs);
    expectTypeOf(
      either.remote(ray.put<ray.ObjectRef<number>>(number)),
    ).toEqualTypeOf<ray.ObjectRef>();
    either.remote("text");
    either.remote(ray.put("text"));
    nested.remote([number]);
    // @ts-expect-error the function would get a number
    either.remote(number);
  });

  test("has the options that there are, also beside one that is right", () => {
    // @ts-expect-error maxConcurrency
    ray.remote(Counter, { maxRestarts: 1, maxConcurency: 3 });
    // @ts-expect-error concurrencyGroup
    ray.remote(Counter, { methods: { name: { maxTaskRetries: 1, concurencyGroup: "io" } } });
    // @ts-expect-error no such method
    ray.remote(Counter, { maxRestarts: 1, methods: { names: { maxTaskRetries: 1 } } });
    // @ts-expect-error not a method
    ray.remote(Counter, { methods: { field: { maxTaskRetries: 1 } } });
    // @ts-expect-error name
    handle.name.options({ maxTaskRetries: 1, nmae: "x" });
    // @ts-expect-error generatorBackpressureNumObjects
    results.generator.options({ numReturns: "streaming", generatorBackpressure: 3 });
    const concurrencyGroups = { io: 2 };
    ray.remote(Counter, {
      concurrencyGroups,
      methods: { name: { concurrencyGroup: "io", retryExceptions: [TypeError] } },
      module: import.meta.url,
      exportName: "Counter",
    });
    const options: ray.ActorOptions = { maxRestarts: 1, methods: { name: { maxTaskRetries: 1 } } };
    expectTypeOf(ray.remote(Counter, options).remote(1)).toEqualTypeOf<ray.ActorHandle<Counter>>();
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
    // @ts-expect-error numGpus
    add.options({ maxRetries: 0, numGPUs: 1 });
    // @ts-expect-error numCpus
    ray.remote((value: number) => value, { maxRetries: 1, numCpu: 2 });
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

describe("options in a variable", () => {
  test("give each shape that their type leaves open", () => {
    const pair = ray.remote((): [string, number] => ["a", 1]);
    type Whole = ray.ObjectRef<[string, number]>;
    type Parts = [ray.ObjectRef<string>, ray.ObjectRef<number>];
    type Stream = ray.ObjectRefGenerator<string | number>;
    const call: ray.TaskOptions = { numReturns: 2 };
    expectTypeOf(pair.options(call).remote()).toEqualTypeOf<Whole | Parts | Stream | undefined>();
    const perhaps: { numReturns?: 2 } = {};
    expectTypeOf(pair.options(perhaps).remote()).toEqualTypeOf<Whole | Parts>();
    expectTypeOf(pair.options({ numReturns: 2 }).options(perhaps).remote()).toEqualTypeOf<Parts>();
    const many: number = 2;
    expectTypeOf(pair.options({ numReturns: many }).remote()).toEqualTypeOf<
      Whole | Parts | undefined
    >();
    const fixed = { numReturns: 2, maxRetries: 1 } as const satisfies ray.TaskOptions;
    expectTypeOf(pair.options(fixed).options({ name: "a" }).remote()).toEqualTypeOf<Parts>();
    const of: ray.CallOptions = {};
    const given = results.list.options(of).remote();
    expectTypeOf(given).toEqualTypeOf<
      ray.ObjectRef<number[]> | ray.ObjectRef<number>[] | ray.ObjectRefGenerator<number> | undefined
    >();
  });

  test("may be undefined, as if they were not given", () => {
    const signal: AbortSignal | undefined = undefined as AbortSignal | undefined;
    const some: { readonly count?: number; readonly name?: string } = {};
    const { count, name } = some;
    void ray.get(ray.put(1), { signal, timeoutMs: count });
    void ray.wait([ray.put(1)], { signal, numReturns: count });
    expectTypeOf(ActorClass.options({ name, maxRestarts: count, runtimeEnv: { env: undefined } }));
    expectTypeOf(add.options({ name, numReturns: undefined }).remote(1, 2)).toEqualTypeOf<
      ray.ObjectRef<number>
    >();
    void ray.init({ numCpus: count, runtimeEnv: undefined });
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

  test("take objects of refs by their names, of any type", async () => {
    interface Refs {
      readonly text: ray.ObjectRef<string>;
      count: ray.ObjectRef<number>;
    }
    const refs: Refs = { text: ray.put("a"), count: ray.put(1) };
    expectTypeOf(await ray.get(refs)).toEqualTypeOf<{ readonly text: string; count: number }>();
    // @ts-expect-error one of them is no ref
    void ray.get({ text: ray.put("a"), count: 1 });
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
