import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory } from "../fixtures/isolation.ts";
import { Counter, measure } from "../fixtures/actors.ts";
import { Point, PointKeeper } from "../fixtures/serialized.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 2 }));
afterAll(() => ray.shutdown());

let echo: (value: unknown) => Promise<unknown>;
beforeAll(() => {
  const counter = Counter.remote();
  echo = async (value) => (await ray.get(counter.echo.remote(value)))[0];
});

const cyclic: { self?: unknown; list: unknown[] } = { list: [] };
cyclic.self = cyclic;
cyclic.list.push(cyclic);

const big = new Float64Array(20_000).map((_, index) => index);

/** A buffer that was transferred. */
function detached(byteLength = 8): ArrayBuffer {
  const buffer = new ArrayBuffer(byteLength);
  structuredClone(buffer, { transfer: [buffer] });
  return buffer;
}

function detachedView(): Uint8Array {
  const view = new Uint8Array(200_000);
  structuredClone(view.buffer, { transfer: [view.buffer] });
  return view;
}

describe("a value arrives as it was sent", () => {
  test.each<[string, unknown]>([
    ["undefined", undefined],
    ["null", null],
    ["booleans", [true, false]],
    [
      "integers of every size",
      [0, 1, -1, 127, 128, -129, 65_535, 2 ** 31, -(2 ** 31), 2 ** 53 - 1, -(2 ** 53) + 1],
    ],
    ["fractions and specials", [0.1, -5.5e300, Number.NaN, Infinity, -Infinity]],
    ["big integers", [1n, -1n, 2n ** 63n, 2n ** 64n, -(2n ** 200n)]],
    ["texts", ["", "ascii", "ü", "😀 한국어", "x".repeat(100_000), "\0"]],
    ["negative zero", [-0, { deep: -0 }]],
    ["texts cut inside a character", ["\ud800", { text: "a\udc00b" }]],
    ["holes become undefined", [1, undefined, 3]],
    ["nested objects", { a: { b: [{ c: "d" }, []], "key with space": {} } }],
    [
      "objects of one shape",
      Array.from({ length: 200 }, (_, index) => ({ index, name: `n${index}` })),
    ],
    [
      "maps and sets",
      new Map<unknown, unknown>([
        ["k", new Set([1, "2", { three: 3 }])],
        [{ key: 1 }, new Map()],
      ]),
    ],
    ["dates", [new Date(0), new Date("2026-11-21T01:02:03.004Z")]],
    ["regular expressions", /a+[b]/giu],
    ["urls", new URL("https://host/path?q=1#h")],
    ["buffers", Buffer.from("bytes")],
    ["array buffers", new Uint8Array([1, 2, 3]).buffer],
    ["data views", new DataView(new Uint8Array([1, 2, 3]).buffer, 1)],
    [
      "all typed arrays",
      [
        Int8Array,
        Uint8Array,
        Uint8ClampedArray,
        Int16Array,
        Uint16Array,
        Int32Array,
        Uint32Array,
        Float32Array,
        Float64Array,
      ].map((Type) => new Type([1, 2, 3])),
    ],
    ["big integer arrays", [new BigInt64Array([-1n, 2n]), new BigUint64Array([2n ** 64n - 1n])]],
    ["large typed arrays", big],
    [
      "large buffers inside objects",
      { deep: [{ buffer: Buffer.alloc(200_000, 7), view: big.subarray(5, 15_000) }] },
    ],
    ["a large array buffer", new Uint8Array(100_000).fill(3).buffer],
    [
      "large objects",
      Array.from({ length: 20_000 }, (_, index) => ({ index, text: `row ${index}` })),
    ],
    [
      "windows of buffers",
      [new Uint8Array(1000).fill(1).subarray(5, 10), new Float32Array(50).fill(2).subarray(1, 3)],
    ],
    ["plain objects of another realm", runInNewContext("({ a: { b: [1] } })")],
    ["cycles", cyclic],
    ["keys that look special", { constructor: 1, toString: "text", length: 0 }],
  ])("%s", async (_name, value) => {
    expect(await echo(value)).toEqual(value);
    expect(await ray.get(ray.put(value))).toEqual(value);
  });

  test("with the kinds of its buffers and the identity inside it", async () => {
    const shared = { x: 1 };
    const value = (await echo({
      left: shared,
      right: shared,
      buffer: Buffer.alloc(3),
      big: Buffer.alloc(100_000),
      memory: new ArrayBuffer(70_000),
    })) as Record<string, unknown>;
    expect(value["left"]).toBe(value["right"]);
    expect(Buffer.isBuffer(value["buffer"]) && Buffer.isBuffer(value["big"])).toBe(true);
    expect(value["memory"]).toBeInstanceOf(ArrayBuffer);
  });

  test("as an Error with its class, fields and cause", async () => {
    const error = Object.assign(new RangeError("out", { cause: new Error("why") }), {
      code: "E_OUT",
    });
    const back = await echo({ error });
    const arrived = (back as { error: RangeError & { code: string } }).error;
    expect(arrived).toBeInstanceOf(RangeError);
    expect([arrived.message, arrived.code, (arrived.cause as Error).message]).toEqual([
      "out",
      "E_OUT",
      "why",
    ]);
    expect(arrived.stack).toContain("values.test.ts");
  });

  test("as an instance of a class with a serializer", async () => {
    const keeper = PointKeeper.remote(new Point(3, 4));
    expect(await ray.get(keeper.length.remote())).toBe(5);
    const moved = await ray.get(keeper.moved.remote({ by: [new Point(1, 1)] }));
    expect(moved).toBeInstanceOf(Point);
    expect(moved).toEqual(new Point(4, 5));
  });

  test("but for the prototype of null, on every transport", async () => {
    expect(Object.getPrototypeOf(await echo({ __proto__: null, a: 1 }))).toBe(Object.prototype);
  });
});

describe("shared memory", () => {
  test("carries large typed arrays: read in place, not copied out", async () => {
    const result = await ray.get(measure.remote(big));
    expect(result).toEqual({ sum: 199_990_000, shared: true });
    const ref = ray.put(big);
    const [first, second] = await ray.get([ref, ref]);
    expect(first.buffer).toBe(second.buffer);
    expect(first.buffer).not.toBe(big.buffer);
  });

  test.skipIf(!sharesMemory)("of the user's own stays shared between threads", async () => {
    const cell = new Int32Array(new SharedArrayBuffer(8));
    const back = (await echo({ cell })) as { cell: Int32Array };
    cell[1] = 42;
    expect(back.cell[1]).toBe(42);
  });
});

class Plain {
  readonly x = 1;
}

describe("what cannot travel is refused at once, with its path", () => {
  const deep = (levels: number): unknown => (levels === 0 ? 0 : [deep(levels - 1)]);
  test.each<[string, unknown, string]>([
    ["a function", { callbacks: { onDone: () => 1 } }, "args[0].callbacks.onDone is a function"],
    ["a symbol", [1, [Symbol("s")]], "args[0][1][0] is a symbol (Symbol(s))"],
    [
      "a class instance",
      { "odd key": new Plain() },
      'args[0]["odd key"] is an instance of Plain; pass plain data, or register a serializer',
    ],
    [
      "a subclass of a typed array",
      [new (class Sub extends Uint8Array {})(2)],
      "args[0][0] is an instance of Sub",
    ],
    [
      "a subclass of an array",
      { rows: new (class Rows extends Array<number> {})(2) },
      "args[0].rows is an instance of Rows",
    ],
    ["a generator", [(function* () {})()], "args[0][0] is a generator; pass a list"],
    ["a promise", [Promise.resolve(1)], "args[0][0] is a Promise; await it first"],
    ["a map value", new Map([["k", () => 1]]), 'args[0].get("k") is a function'],
    ["a set member", new Set([new WeakMap()]), "args[0].values()[0] is an instance of WeakMap"],
    [
      "a subclass of Map",
      { a: [new (class Names extends Map {})()] },
      "args[0].a[0] is an instance of Names",
    ],
    [
      "a subclass of Set",
      new Map([["k", new (class Ids extends Set {})()]]),
      'args[0].get("k") is an instance of Ids',
    ],
    ["a detached buffer", { a: [detached()] }, "args[0].a[0] is detached"],
    ["a view of one", [new Set([detachedView()])], "args[0][0].values()[0] is detached"],
    ["a class itself", Plain, "args[0] is a function"],
    ["something too deep", deep(600), "is nested deeper than 500 levels"],
  ])("%s", (_name, value, message) => {
    const counter = Counter.remote();
    expect(() => counter.echo.remote(value)).toThrow(ray.NotEncodableError);
    expect(() => counter.echo.remote(value)).toThrow(message);
    expect(() => ray.put(value)).toThrow(TypeError);
  });

  test("and the actor is none the worse for it", async () => {
    const counter = Counter.remote();
    expect(() => counter.increment.remote((() => 1) as never)).toThrow("args[0] is a function");
    expect(await ray.get(counter.increment.remote())).toBe(1);
  });
});
