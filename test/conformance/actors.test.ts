import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import {
  Arguments,
  ArgumentsClass,
  Context,
  Counter,
  PlainBase,
  Returns,
  Signal,
} from "../fixtures/conformance.ts";
import { initIn, alike } from "../fixtures/isolations.ts";

describe.each(alike)("defining and calling actors: %s", (isolation) => {
  beforeAll(() => initIn(isolation));
  afterAll(() => ray.shutdown());

  test("test_actor::test_keyword_args: defaults and named options mean what they mean in a local call", async () => {
    for (const args of [[1], [1, "b"]] as const) {
      const local = new ArgumentsClass(...(args as [number]));
      const actor = Arguments.remote(...(args as [number]));
      expect(await ray.get(actor.made.remote())).toEqual(local.made());
    }
    const local = new ArgumentsClass(0);
    const actor = Arguments.remote(0);
    expect(await ray.get(actor.defaults.remote())).toEqual(local.defaults());
    expect(await ray.get(actor.defaults.remote(2, "c", { named: "m" }))).toEqual(
      local.defaults(2, "c", { named: "m" }),
    );
    // An argument left out in the middle has its default here as there.
    expect(await ray.get(actor.defaults.remote(2, undefined, {}))).toEqual([2, "b", "n"]);
  });

  test("test_actor::test_variable_number_of_args: the rest of the arguments arrives as it was given", async () => {
    const actor = Arguments.remote(1, "two", 3, [4], { five: 6 });
    expect(await ray.get(actor.made.remote())).toEqual([1, "two", 3, [4], { five: 6 }]);
    expect(await ray.get(actor.variadic.remote("a"))).toEqual(["a"]);
    const hundred = Array.from({ length: 100 }, (_, index) => index);
    expect(await ray.get(actor.variadic.remote("a", ...hundred))).toEqual(["a", ...hundred]);
  });

  test("test_actor::test_actor_inheritance: an actor class is not a class, and may be made of one that extends another", async () => {
    const NotAClass = Counter as unknown as new () => object;
    expect(() => new NotAClass()).toThrow(TypeError);
    expect(() => (Counter as unknown as () => void)()).toThrow(TypeError);
    expect(() => class extends NotAClass {}).toThrow(TypeError);
    expect(await ray.get(Arguments.remote(1).inherited.remote())).toBe(PlainBase.shared);
  });

  test("test_actor::test_decorator_args: what is no class and options that are unknown are refused", () => {
    const remote = ray.remote as (...args: unknown[]) => unknown;
    for (const target of [undefined, {}, "text", 5]) {
      expect(() => remote(target)).toThrow(ray.InvalidOptionError);
    }
    expect(() => remote(ArgumentsClass, { invalid_kwarg: 0 })).toThrow('no option "invalid_kwarg"');
    expect(() => remote(ArgumentsClass, { maxRestarts: 1, num_cpu: 0 })).toThrow("num_cpu");
    expect(() => remote(ArgumentsClass, 5)).toThrow(ray.InvalidOptionError);
  });

  test("test_actor::test_actor_static_attributes: static and inherited members are there in the actor", async () => {
    expect(await ray.get(Arguments.remote(1).statics.remote())).toEqual([5, 7, "static"]);
  });

  test("test_actor::test_one_liner_actor_method_invocation: a temporary handle is enough", async () => {
    expect(await ray.get(Counter.remote(4).increment.remote())).toBe(5);
  });

  test("test_actor::test_actor_method_deletion: a method taken from a handle that is gone still calls", async () => {
    const { increment } = Counter.remote(1);
    globalThis.gc?.();
    expect(await ray.get(increment.remote())).toBe(2);
    globalThis.gc?.();
    expect(await ray.get(increment.remote())).toBe(3);
  });

  test("test_actor::test_multiple_return_values: a method gives as many refs as its numReturns says", async () => {
    const actor = Returns.remote();
    const [first, second] = actor.two.remote();
    expect([await ray.get(first), await ray.get(second)]).toEqual([1, 2]);
    expect(await ray.get(actor.three.remote())).toEqual([1, 2, 3]);
    expect(actor.three.remote()).toHaveLength(3);
  });

  test("test_actor::test_options_num_returns: the option of a call overrides that of the method", async () => {
    const actor = Returns.remote();
    expect(await ray.get(actor.two.options({ numReturns: 1 }).remote())).toEqual([1, 2]);
    expect(await ray.get(actor.many.remote(4))).toEqual([0, 1, 2, 3]);
    const four = actor.many.options({ numReturns: 4 }).remote(4);
    expect(four).toHaveLength(4);
    expect(await ray.get(four)).toEqual([0, 1, 2, 3]);
  });

  test("test_actor::test_options_name: a call knows the name that it was given, and its function's", async () => {
    const actor = Context.remote();
    expect(await ray.get(actor.name.remote())).toEqual(["ContextClass.name", "ContextClass.name"]);
    const named = actor.name.options({ name: "my name" });
    expect(await ray.get(named.remote())).toEqual(["my name", "ContextClass.name"]);
  });

  test("test_actor::test_actor_ready: __ray_ready__ is true when the constructor has run; called directly it throws", async () => {
    const signal = Signal.remote();
    const actor = Counter.remote(signal.wait.remote(3) as ray.ObjectRef<number>);
    const ready = actor.__ray_ready__.remote();
    expect((await ray.wait([ready], { timeoutMs: 20 })).ready).toEqual([]);
    signal.send.remote();
    expect(await ray.get(ready)).toBe(true);
    expect(() => (actor.__ray_ready__ as unknown as () => void)()).toThrow(TypeError);
  });
});
