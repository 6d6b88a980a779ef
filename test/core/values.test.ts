import { createSecretKey, generateKeyPairSync } from "node:crypto";
import { createHistogram } from "node:perf_hooks";
import { runInNewContext } from "node:vm";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as ray from "@rayling/core";
import { sharesMemory, together } from "../fixtures/isolation.ts";
import { Counter, measure } from "../fixtures/actors.ts";
import { difference } from "../fixtures/same-value.ts";
import { Point, PointKeeper } from "../fixtures/serialized.ts";

beforeAll(() => ray.init({ numCpus: 2, prewarm: 0, ...together }));
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
    ["an undefined item", [1, undefined, 3]],
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

/** Arrays with holes are what these tests are about. */
const holed = (): unknown[] => {
  const list: unknown[] = [1, 2, 3];
  list[9] = { deep: list };
  Reflect.deleteProperty(list, 1);
  return list;
};

const fromFar: readonly [string, string, object][] = [
  ["a Map", "new Map([[{ key: 1 }, new Set([1])]])", Map],
  ["a Set", "new Set(['a', [1]])", Set],
  ["a Date", "new Date(86400000)", Date],
  ["a RegExp", "/a+(?<b>c)/giu", RegExp],
  ["an array", "[1, [2]]", Array],
  ["a plain object", "({ a: { b: 1 } })", Object],
  ["an ArrayBuffer", "new Uint8Array([1, 2]).buffer", ArrayBuffer],
  ["a large ArrayBuffer", "new Uint8Array(100000).fill(3).buffer", ArrayBuffer],
  ["a DataView", "new DataView(new ArrayBuffer(8), 2, 4)", DataView],
  ["a boxed number", "Object(-0)", Number],
  ["a boxed text", "Object('text')", String],
  ["a boxed boolean", "Object(false)", Boolean],
  ["a boxed big integer", "Object(5n)", BigInt],
  [
    "an error",
    "Object.assign(new RangeError('r', { cause: new TypeError('t') }), { code: 'C' })",
    RangeError,
  ],
  ["an AggregateError", "new AggregateError([new Error('e'), 1], 'many')", AggregateError],
  ...[
    Int8Array,
    Uint8Array,
    Uint8ClampedArray,
    Int16Array,
    Uint16Array,
    Int32Array,
    Uint32Array,
    Float32Array,
    Float64Array,
    BigInt64Array,
    BigUint64Array,
  ].flatMap((Type): [string, string, object][] => [
    [
      Type.name,
      `new ${Type.name}(new ArrayBuffer(48), 8, 3).fill(${Type.name.startsWith("Big") ? "7n" : 7})`,
      Type,
    ],
    [
      `a large ${Type.name}`,
      `new ${Type.name}(70000).fill(${Type.name.startsWith("Big") ? "7n" : 7})`,
      Type,
    ],
  ]),
];

describe("a value arrives whole", () => {
  const arrives = async (value: unknown): Promise<void> => {
    expect(difference(value, await echo(value))).toBeUndefined();
    expect(difference(value, await ray.get(ray.put(value)))).toBeUndefined();
  };

  test.each<[string, unknown]>([
    ["the result of a match", "chapter 3.4.5".match(/(?<what>\w+) (\d+)(\.\d)*/d)],
    ["an array with holes that contains itself", holed()],
    ["an array with properties", Object.assign([1, 2], { total: 3, "odd key": [4] })],
    ["an array with one item, far away", Object.assign([], { 50_000_000: "here" })],
    ["an own key __proto__", JSON.parse('{"__proto__":{"polluted":1},"b":[{"__proto__":5}]}')],
    ["names with half a character", { "\ud800": 1, "a name that is longer \udc00": { deep: 2 } }],
    [
      "names that mean something elsewhere",
      { constructor: 1, toJSON: 2, prototype: 3, hasOwnProperty: 4 },
    ],
    ["boxed primitives", [Object(1), Object("text"), Object(true), Object(1n), Object(-0)]],
    ["dates that are none", [new Date(Number.NaN), new Date(8.64e15), new Date(-1)]],
    ["expressions, from their start", Object.assign(/a/gy, { lastIndex: 3 })],
    [
      "an object with a getter",
      {
        get now() {
          return { at: 1 };
        },
      },
    ],
    ["views of one buffer", viewsOfOne(104)],
    ["views of one large buffer", viewsOfOne(100_000)],
  ])("%s", async (_name, value) => arrives(value));

  test.each(fromFar)("of another realm: %s", async (_name, source, Class) => {
    const value = runInNewContext(source) as object;
    expect(value).not.toBeInstanceOf(Class as typeof Object);
    await arrives([value, { again: value }]);
  });

  test("many of every size between a message and memory of its own, there and back", async () => {
    const values = Array.from({ length: 200 }, (_, index) => {
      const size = 1000 + Math.floor((index * 64_000) / 200);
      return { bytes: new Uint8Array(size).fill(index), text: String(index).repeat(index % 7) };
    });
    // A second time, too, as a caller does who keeps what he sent.
    for (let round = 0; round < 2; round++) {
      const back = (await Promise.all(values.map(echo))) as typeof values;
      expect(back.map(({ text }) => text)).toEqual(values.map(({ text }) => text));
      // Not by expect, which looks at each of ten million bytes by itself.
      const others = back.filter(
        ({ bytes }, index) => Buffer.compare(bytes, values[index]?.bytes ?? new Uint8Array()) !== 0,
      );
      expect(others).toEqual([]);
      expect(back.every(({ bytes }) => bytes.constructor === Uint8Array)).toBe(true);
    }
  });

  test("errors with what is around them", async () => {
    const shared = { x: 1 };
    const cause = new TypeError("why");
    const error = new RangeError("out", { cause }) as RangeError & Record<string, unknown>;
    const value = { error, cause, shared, list: [] as unknown[] };
    Object.assign(error, { owner: value, self: error, shared, all: new Map([[cause, error]]) });
    value.list.push(error, new AggregateError([error, cause, 1], "many"));
    await arrives(value);
  });

  test("nothing of it changes what others have", async () => {
    await echo(
      JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
    );
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    const [plain] = (await echo([{}])) as [{ polluted?: number }];
    expect(plain.polluted).toBeUndefined();
  });

  test("a view of little of a large buffer brings that alone, and a Buffer its bytes", async () => {
    const [view, buffer] = (await echo([
      new Uint8Array(60_000).subarray(5, 9),
      Buffer.from("b"),
    ])) as [Uint8Array, Buffer];
    expect([view.byteOffset, view.buffer.byteLength]).toEqual([0, 4]);
    expect([buffer.byteOffset, buffer.buffer.byteLength]).toEqual([0, 1]);
  });
});

function viewsOfOne(size: number): Record<string, unknown> {
  const buffer = new ArrayBuffer(size);
  new Uint8Array(buffer).forEach((_, index, bytes) => (bytes[index] = index));
  return {
    left: new Uint16Array(buffer, 8, size / 4),
    right: [new DataView(buffer, 3, size / 2)],
    buffer,
  };
}

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

test("shared memory of the user's own is a copy in another process, which is said once, with its path", async () => {
  const warnings: string[] = [];
  const listen = ({ message }: Error): void => void warnings.push(message);
  process.on("warning", listen);
  try {
    const counter = Counter.options({ isolation: "process" }).remote();
    const cell = new Int32Array(new SharedArrayBuffer(8));
    const echoed = async (): Promise<Int32Array> => {
      const [back] = await ray.get(counter.echo.remote({ deep: [cell] }));
      return (back as { deep: [Int32Array] }).deep[0];
    };
    const copy = await echoed();
    expect(copy.buffer).toBeInstanceOf(SharedArrayBuffer);
    cell[1] = 42;
    expect(copy[1]).toBe(0);
    expect((await echoed())[1]).toBe(42);
    const said = warnings.filter((text) => text.includes("contains a SharedArrayBuffer"));
    expect(said).toEqual([
      expect.stringMatching(/^args\[0\]\.deep\[0\] contains a SharedArrayBuffer/),
    ]);
  } finally {
    process.off("warning", listen);
  }
});

class Plain {
  readonly x = 1;
}

describe("what cannot travel is refused at once, with its path", () => {
  const revived = (key: string, value: unknown): unknown =>
    key === "__proto__" ? Symbol("s") : value;
  const { privateKey } = generateKeyPairSync("ed25519");
  const outOfBounds = (): DataView => {
    const buffer = new ArrayBuffer(8, { maxByteLength: 16 });
    const view = new DataView(buffer, 4);
    const fixed = new DataView(buffer, 4, 4);
    buffer.resize(2);
    expect(() => view.byteLength).toThrow(TypeError);
    return fixed;
  };
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
    [
      "a class itself",
      Plain,
      "args[0] is a class; pass data, or the actor class that remote() makes of it",
    ],
    [
      "a property of an array",
      [Object.assign([1], { run: () => 1 })],
      "args[0][0].run is a function",
    ],
    [
      "behind holes",
      { rows: Object.assign([], { 3: { fn: () => 1 } }) },
      "args[0].rows[3].fn is a function",
    ],
    [
      "below a key __proto__",
      JSON.parse('{"a":{"__proto__":{}}}', revived),
      "args[0].a.__proto__ is a symbol",
    ],
    ["a key of a Map", new Map([[{ k: Symbol("s") }, 1]]), "args[0].keys(…).k is a symbol"],
    ["a symbol in an object", { s: Object(Symbol("s")) }, "args[0].s is a symbol in an object"],
    [
      "a WeakRef",
      [new WeakRef({})],
      "args[0][0] is an instance of WeakRef; pass what it refers to",
    ],
    [
      "arguments",
      [
        (function (..._rest: unknown[]) {
          return arguments;
        })(1),
      ],
      "args[0][0] is an arguments object; pass [...arguments]",
    ], // oxlint-disable-line prefer-rest-params
    ["an iterator", { i: [1].values() }, "args[0].i is an instance of"],
    [
      "a getter that throws",
      {
        a: [
          {
            get b() {
              throw new RangeError("no");
            },
          },
        ],
      },
      "args[0].a[0].b cannot be read: RangeError: no",
    ],
    ["a Blob", [new Blob(["b"])], "args[0][0] is an instance of Blob; pass its bytes"],
    ["a File", { f: new File(["b"], "n") }, "args[0].f is an instance of File; pass its bytes"],
    [
      "a port",
      [new MessageChannel().port1],
      "args[0][0] is an instance of MessagePort; pass a handle",
    ],
    [
      "a key",
      { k: createSecretKey(Buffer.alloc(8)) },
      "args[0].k is an instance of SecretKeyObject; pass what it exports",
    ],
    [
      "a private key",
      [privateKey],
      "args[0][0] is an instance of PrivateKeyObject; pass what it exports",
    ],
    ["a histogram", [createHistogram()], "args[0][0] is an instance of RecordableHistogram"],
    [
      "parameters of a URL",
      { q: new URLSearchParams("a=1") },
      "args[0].q is an instance of URLSearchParams; pass its text",
    ],
    [
      "a stream",
      [new ReadableStream()],
      "args[0][0] is an instance of ReadableStream; have a method yield its chunks",
    ],
    [
      "a proxy of a Map",
      { p: new Proxy(new Map(), {}) },
      "args[0].p is a proxy of an instance of Map",
    ],
    [
      "a class instance of another realm",
      [runInNewContext("new (class Far {})()")],
      "args[0][0] is an instance of Far",
    ],
    [
      "a subclass of another realm",
      [runInNewContext("new (class FarMap extends Map {})()")],
      "args[0][0] is an instance of FarMap",
    ],
    [
      "a promise of another realm",
      { p: runInNewContext("Promise.resolve()") },
      "args[0].p is a Promise; await it first",
    ],
    ["a function of another realm", [runInNewContext("() => 1")], "args[0][0] is a function"],
    [
      "a subclass of ArrayBuffer",
      [new (class Memory extends ArrayBuffer {})(4)],
      "args[0][0] is an instance of Memory",
    ],
    ["a view out of bounds", [outOfBounds()], "args[0][0] is out of bounds"],
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

test("what cannot travel is told with its path and its reason, and nothing is sent", () => {
  expect(ray.inspectSerializability({ list: [1, new Map([["a", Buffer.from("b")]])] })).toBe(
    undefined,
  );
  expect(ray.inspectSerializability(ray.put([1]))).toBe(undefined);
  const refused = ray.inspectSerializability({ extra: [{ callback: () => 1 }] }, "result");
  expect(refused).toBeInstanceOf(ray.NotEncodableError);
  expect(refused).toMatchObject({ path: "result.extra[0].callback", code: "NOT_ENCODABLE" });
  expect(refused?.message).toContain("is a function");
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  expect(ray.inspectSerializability({ proxy })?.path).toBe("value.proxy");
  const trap = {
    get never(): number {
      throw new Error("trap");
    },
  };
  expect(ray.inspectSerializability(trap)?.message).toContain("trap");
});
