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

  test.each([
    ["b.y=0", '{"a":1,"b":{"x":1,"y":0,"z":3},"c":[]}'],
    ["a=0", '{"a":0,"b":{"x":1,"y":2,"z":3},"c":[]}'],
    ["b={x:0,w:4}", '{"a":1,"b":{"x":0,"y":2,"z":3,"w":4},"c":[]}'],
    ["+b.w.v=4", '{"a":1,"b":{"x":1,"y":2,"z":3,"w":{"v":4}},"c":[]}'],
    ["~b.y", '{"a":1,"b":{"x":1,"z":3},"c":[]}'],
  ])("%s leaves the other keys in their order", (override, result) => {
    const changed = applyOverrides({ a: 1, b: { x: 1, y: 2, z: 3 }, c: [] }, [override]);
    expect(JSON.stringify(changed)).toBe(result);
  });

  describe("of items of a list", () => {
    const lists = { l: [1, { k: 1, m: 2 }, [3, { z: 1 }]] };

    // As in Hydra 1.3, but for l.2.0=4, which changes nothing there.
    test.each([
      ["l.0=4", { l: [4, { k: 1, m: 2 }, [3, { z: 1 }]] }],
      ["l.1.k=4", { l: [1, { k: 4, m: 2 }, [3, { z: 1 }]] }],
      ["+l.1.n=4", { l: [1, { k: 1, m: 2, n: 4 }, [3, { z: 1 }]] }],
      ["l.1={k:4}", { l: [1, { k: 4, m: 2 }, [3, { z: 1 }]] }],
      ["l.2.0=4", { l: [1, { k: 1, m: 2 }, [4, { z: 1 }]] }],
      ["l.2.1.z=4", { l: [1, { k: 1, m: 2 }, [3, { z: 4 }]] }],
      ["~l.1.k", { l: [1, { m: 2 }, [3, { z: 1 }]] }],
      ["~l.2.1.z=1", { l: [1, { k: 1, m: 2 }, [3, {}]] }],
    ])("%s", (override, result) => {
      expect(applyOverrides(lists, [override])).toEqual(result);
    });

    test.each([
      ["~l.0", "l.0: is an item of a list, which is not removed by its number; l=[...] gives"],
      ["~l.0=1", "l.0: is an item of a list"],
      ["~l.2.1", "l.2.1: is an item of a list, which is not removed by its number; l.2=[...]"],
      ["~l.1.q", "l.1.q: there is no such key to remove"],
      ["~l.7", "l.7: there is no such key to remove"],
      ["+l.3=1", "l.3: names an item of l, a list of 3, that does not exist"],
      ["++l.0.x=1", "l.0.x: names an item of l, a list of 3, that does not exist"],
      ["++l.2.2.x=1", "l.2.2.x: names an item of l.2, a list of 2, that does not exist"],
    ])("%s is refused", (override, message) => {
      expect(refusal(() => applyOverrides(lists, [override])).message).toContain(message);
    });

    test("an item of a default is not removed by its number either", () => {
      expect(refusal(() => applyOverrides({}, ["~l.0"], { known: lists })).message).toContain(
        "l.0: is an item of a list",
      );
    });
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
