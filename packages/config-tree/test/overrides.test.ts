/** Changes of a configuration by overrides, and what is said of those that cannot be. */

import { describe, expect, test } from "vitest";
import { applyOverrides, ConfigError } from "@rayling/config-tree";

function refusal(run: () => unknown): ConfigError {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return error as ConfigError;
  }
  throw new Error("it was not refused");
}

describe("overrides", () => {
  const tree = { a: { b: 1, c: null }, list: [1], text: "x" };

  test.each([
    ["a.b=2", { ...tree, a: { b: 2, c: null } }],
    ["a.c=True", { ...tree, a: { b: 1, c: true } }],
    ["a.c=0.5", { ...tree, a: { b: 1, c: 0.5 } }],
    ["a.c=null", tree],
    ["a.c=", { ...tree, a: { b: 1, c: "" } }],
    ["text='1=2'", { ...tree, text: "1=2" }],
    ["text=a/b.ts", { ...tree, text: "a/b.ts" }],
    ["list=[1,two]", { ...tree, list: [1, "two"] }],
    ["+a.d.e={f: 1}", { ...tree, a: { b: 1, c: null, d: { e: { f: 1 } } } }],
    ["a={b: 2}", { ...tree, a: { b: 2, c: null } }],
    ["+a={d: 2}", { ...tree, a: { b: 1, c: null, d: 2 } }],
    ["+list=[2]", { ...tree, list: [2] }],
    ["+d={e:1,f:{g:h},i:[1,{j:2}]}", { ...tree, d: { e: 1, f: { g: "h" }, i: [1, { j: 2 }] } }],
    ["+d={e:'a b',f:http://x:8/v1}", { ...tree, d: { e: "a b", f: "http://x:8/v1" } }],
    ["text=Score: 0 to 10", { ...tree, text: "Score: 0 to 10" }],
    ["text=a: b: c", { ...tree, text: "a: b: c" }],
    ["text=- no list", { ...tree, text: "- no list" }],
    ["++a.b=3", { ...tree, a: { b: 3, c: null } }],
    ["++z=3", { ...tree, z: 3 }],
    ["~a.b", { list: [1], text: "x", a: { c: null } }],
    ["~a.b=1", { list: [1], text: "x", a: { c: null } }],
    ["~a", { list: [1], text: "x" }],
  ])("%s", (override, result) => {
    expect(applyOverrides(tree, [override])).toEqual(result);
    expect(tree).toEqual({ a: { b: 1, c: null }, list: [1], text: "x" });
  });

  test.each([
    ["a.bb=2", "a.bb: there is no such key; +a.bb=2 would add it; did you mean a.b?"],
    ["+a.b=2", "a.b: is there already, as 1; a.b=2 changes it"],
    ["~a.x", "a.x: there is no such key to remove; did you mean a.b?"],
    ["~a.b=2", "a.b: is 1, not 2, and is not removed"],
    ["a.b", "a.b: has no value; write key=value"],
    ["=2", "=2: is no override; write key.key=value, +key=value or ~key"],
    ["a..b=2", "a..b=2: is no override; write key.key=value, +key=value or ~key"],
    ["a.b=[1", "a.b: its value [1 ends too early"],
  ])("%s is refused", (override, message) => {
    expect(refusal(() => applyOverrides(tree, [override])).message).toContain(message);
  });

  test("what has a default may be changed without being there, and null may be added to", () => {
    const known = { a: { b: 1, c: null } };
    expect(applyOverrides({}, ["a.b=2"], { known })).toEqual({ a: { b: 2 } });
    expect(applyOverrides({}, ["+a.c=2"], { known })).toEqual({ a: { c: 2 } });
    expect(applyOverrides({ a: { b: 1 } }, ["+a.b=2"], { known })).toEqual({ a: { b: 2 } });
    expect(applyOverrides({ a: { b: 3 } }, ["~a.b=3"], { known })).toEqual({ a: {} });
    expect(applyOverrides({}, ["~a.b"], { known })).toEqual({});
    expect(refusal(() => applyOverrides({ a: { b: 3 } }, ["+a.b=2"], { known })).message).toContain(
      "as 3",
    );
    expect(refusal(() => applyOverrides({}, ["a.d=2"], { known }))).toMatchObject({
      nearest: "a.b",
    });
  });

  test("__proto__ is a key like any other, and nobody's prototype", () => {
    const result = applyOverrides(tree, ["+__proto__.polluted=1"]);
    expect(Object.hasOwn(result, "__proto__")).toBe(true);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
