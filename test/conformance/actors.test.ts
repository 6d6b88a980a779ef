import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { Arguments, ArgumentsClass, Counter, PlainBase } from "../fixtures/conformance.ts";
import { initIn, isolations } from "../fixtures/isolations.ts";

describe.each(isolations)("defining and calling actors: %s", (isolation) => {
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
});
