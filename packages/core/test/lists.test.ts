/** Arrays that are more or less than their items: they cost what they hold, and a peer makes none larger than that. */
import { runInNewContext } from "node:vm";
import { Packr } from "msgpackr/pack";
import { describe, expect, test } from "vitest";
import { difference } from "../../../test/fixtures/same-value.ts";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { RaySystemError } from "../src/shared/errors.ts";

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});
const encode = (value: unknown): Encoded => codec.encode(value, "value");
const sizeOf = (value: unknown): number => {
  const { start, end } = encode(value);
  return end - start;
};
const back = <T>(value: T): T => codec.decode(encode(value)) as T;

/** Of that length, with one item at its end. */
function sparse(length: number): unknown[] {
  const list: unknown[] = [];
  list[length - 1] = { at: "the end" };
  return list;
}

/** Of that length, with no item. */
const holes = (length: number): unknown[] => Object.assign([], { length });

const tag = (strings: TemplateStringsArray, ..._parts: number[]): TemplateStringsArray => strings;

const odd: readonly [string, unknown][] = [
  ["a match", "see chapter 3.4.5".match(/(?<what>\w+) (\d+)(\.\d)*/)],
  ["a match with indices", /(?<year>\d+)-(\d+)?/d.exec("in 2026-")],
  ["all matches", [..."a1b2".matchAll(/(?<letter>\w)(\d)/g)]],
  ["texts of a template", tag`a${1}b`],
  ["holes", [1, , 3, , ,]], // oxlint-disable-line no-sparse-arrays
  ["nothing but holes", holes(1_000_000)],
  ["holes in a long list", Array.from({ length: 500 }, (_, index) => index).fill(7, 0, 9)],
  ["undefined, which is no hole", [undefined, , undefined]], // oxlint-disable-line no-sparse-arrays
  ["one item, far away", sparse(50_000_001)],
  ["the last index that there is", sparse(2 ** 32 - 1)],
  ["items removed", deleted([1, 2, 3, 4, 5], 0, 3, 4)],
  ["properties", Object.assign([1, 2], { name: "n", "-1": 0, "01": 1, "4294967295": 2 })],
  ["as many properties as holes", Object.assign(deleted([1, 2, 3], 1), { extra: "x" })],
  [
    "a long one with a property",
    Object.assign(
      Array.from({ length: 200 }, () => 1),
      { extra: { deep: [1] } },
    ),
  ],
  ["a property __proto__", Object.defineProperty([1], "__proto__", { value: 5, enumerable: true })],
  ["one of another realm", runInNewContext("Object.assign([1, , 3], { name: [2] })")],
];

function deleted(list: unknown[], ...indices: readonly number[]): unknown[] {
  for (const index of indices) Reflect.deleteProperty(list, index);
  return list;
}

describe("an array arrives as it was", () => {
  test.each(odd)("%s", (_name, list) => {
    expect(difference(list, back(list))).toBeUndefined();
    expect(difference({ in: [list, list] }, back({ in: [list, list] }))).toBeUndefined();
    expect(difference(structuredClone(list), back(list))).toBeUndefined();
  });

  test("one that contains itself, in an item, a property and a Map", () => {
    const list: unknown[] & { self?: unknown; byName?: unknown } = [1, , "three"]; // oxlint-disable-line no-sparse-arrays
    list[5] = list;
    list.self = { again: list };
    list.byName = new Map<unknown, unknown>([
      ["first", 1],
      [list, new Set([list, "last"])],
    ]);
    expect(difference(list, back(list))).toBeUndefined();
    expect(difference({ list }, back({ list }))).toBeUndefined();
  });

  test("with what nobody lists left behind", () => {
    const list = Object.defineProperty([1], "hidden", { value: () => 1 });
    const arrived = back(Object.assign(list, { [Symbol("s")]: 1 }));
    expect(Reflect.ownKeys(arrived)).toEqual(["0", "length"]);
  });
});

describe("an array costs what it holds", () => {
  test("in bytes", () => {
    expect(sizeOf(sparse(50_000_001))).toBeLessThan(64);
    expect(sizeOf(holes(4_000_000_000))).toBeLessThan(64);
    expect(sizeOf({ rows: [sparse(10_000_000), "x"] })).toBeLessThan(100);
    const one = deleted(
      Array.from({ length: 10_000 }, () => 1),
      5000,
    );
    expect(sizeOf(one)).toBeLessThan(sizeOf(Array.from({ length: 10_000 }, () => 1)) + 32);
  });

  test("in looks at it", () => {
    let looks = 0;
    const counted = new Proxy(sparse(50_000_001), {
      get: (target, key) => ((looks += 1), Reflect.get(target, key) as unknown),
      getOwnPropertyDescriptor: (target, key) => (
        (looks += 1),
        Reflect.getOwnPropertyDescriptor(target, key)
      ),
    });
    expect(back(counted)).toHaveLength(50_000_001);
    expect(looks).toBeLessThan(100);
  });

  test("in memory where it arrives", () => {
    const encoded = encode([holes(30_000_000), sparse(31_000_000)]);
    const before = process.memoryUsage().heapUsed;
    const arrived = codec.decode(encoded) as unknown[][];
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(16 * 1024 * 1024);
    expect(arrived.map((list) => list.length)).toEqual([30_000_000, 31_000_000]);
    expect(Object.keys(arrived[1] as unknown[])).toEqual(["30999999"]);
  });
});

describe("parts that no array has are refused", () => {
  const packr = new Packr({ structuredClone: true, useRecords: true });
  const special = (content: unknown): Encoded => {
    const bytes = Buffer.concat([Buffer.of(0xd4, 0x52, 0), packr.pack(content)]);
    const rest = { buffers: [], referenceCount: 0, references: undefined };
    return { bytes, start: 0, end: bytes.length, ...rest };
  };

  test.each<[string, unknown]>([
    ["more items than rows have", ["list", 9, [0, 1], [1, 2], [], []]],
    ["fewer", ["list", 9, [0, 3], [1, 2], [], []]],
    ["rows that lie in each other", ["list", 9, [2, 2, 3, 1], [1, 2, 3], [], []]],
    ["rows beyond the end", ["list", 2, [1, 2], [1, 2], [], []]],
    ["a row without a length", ["list", 9, [1], [1], [], []]],
    ["a row of nothing but a claim", ["list", 2 ** 32 - 1, [0, 2 ** 32 - 1], [], [], []]],
    ["rows at fractions", ["list", 9, [0.5, 1], [1], [], []]],
    ["rows below zero", ["list", 9, [-1, 1], [1], [], []]],
    ["a length that is none", ["list", -1, [], [], [], []]],
    ["a length that is too large", ["list", 2 ** 32, [], [], [], []]],
    ["a length that is a text", ["list", "9", [], [], [], []]],
    ["names without values", ["list", 1, [], [], ["a"], []]],
    ["a name that is an index", ["list", 1, [], [], ["0"], [1]]],
    ["a name that is the length", ["list", 1, [], [], ["length"], [2 ** 31]]],
    ["a name that is a number", ["list", 1, [], [], [5], [1]]],
    ["rows that are no list", ["list", 1, { length: 2 ** 31 }, [], [], []]],
    ["an object whose names are none", ["object", [5], [1]]],
    ["an object with names without values", ["object", ["a"], []]],
    ["an object of no lists", ["object", "names", "values"]],
    ["a mention of what is not there", ["list", 1, [0, 1], [], [], []]],
    ["a box around an object", ["boxed", { valueOf: 1 }]],
    ["a view over what is no buffer", ["over", { byteLength: 2 ** 31 }, "Uint8Array", 0, 8]],
    ["a view beyond its buffer", ["over", new ArrayBuffer(4), "Uint8Array", 0, 8]],
    ["a buffer that is none", ["memory", { byteLength: 8 }]],
    ["a pattern that is none", ["pattern", "(", ""]],
  ])("%s", (_name, content) => {
    expect(() => codec.decode(special(content))).toThrow(RaySystemError);
  });

  test("and a mention of what never comes", () => {
    const later = Buffer.concat([Buffer.of(0xd4, 0x52, 0), packr.pack(["later", 7])]);
    const bytes = Buffer.concat([Buffer.of(0x91), later]);
    const rest = { buffers: [], referenceCount: 0, references: undefined };
    expect(() => codec.decode({ bytes, start: 0, end: bytes.length, ...rest })).toThrow(
      "part 7 of a value did not arrive",
    );
  });

  test("a key __proto__ becomes one of the object's own, and changes no prototype", () => {
    const value = codec.decode(
      special(["object", ["__proto__", "constructor"], [{ polluted: 1 }, { prototype: 2 }]]),
    ) as Record<string, unknown>;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(Object.keys(value)).toEqual(["__proto__", "constructor"]);
    expect(value["polluted"]).toBeUndefined();
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });
});
