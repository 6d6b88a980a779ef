/** The two formats of a checkpoint's files: safetensors, whose bytes others read, and plain data as JSON beside it. */

import { describe, expect, test } from "vitest";
import {
  flatten,
  jsonLines,
  jsonOfLines,
  keepable,
  unflatten,
} from "../../src/checkpoint/plain-data.ts";
import type { FlatData } from "../../src/checkpoint/plain-data.ts";
import { readSafetensors, safetensorsBytes } from "../../src/checkpoint/safetensors.ts";
import type { NamedArrays, NumberArray, WrittenArrays } from "../../src/checkpoint/safetensors.ts";

const bytesOf = (named: Partial<WrittenArrays>): Buffer =>
  Buffer.concat([...safetensorsBytes({ arrays: {}, metadata: {}, ...named })]);

const read = (bytes: Uint8Array): Promise<NamedArrays> =>
  readSafetensors(
    (start, end) => Promise.resolve(Uint8Array.from(bytes.subarray(start, end))),
    bytes.length,
    "file",
  );

/** Through a file's bytes and back. */
const throughFile = async ({ json, arrays }: FlatData): Promise<unknown> =>
  unflatten({ json, arrays: (await read(bytesOf({ arrays }))).arrays });

describe("safetensors", () => {
  const arrays: Record<string, NumberArray> = {
    bytes: Uint8Array.of(1, 2, 3),
    a: Float32Array.of(1.5, -0),
    doubles: Float64Array.of(Math.PI, Number.NaN),
    big: BigInt64Array.of(-(2n ** 60n)),
    unsigned: BigUint64Array.of(2n ** 63n),
    ints: Int32Array.of(-5),
    uints: Uint32Array.of(2 ** 32 - 1),
    shorts: Int16Array.of(-3),
    ushorts: Uint16Array.of(65_535),
    small: Int8Array.of(-1),
    none: new Float32Array(0),
  };

  test("has the bytes of the specification", () => {
    const bytes = bytesOf({ arrays: { b: Uint8Array.of(7), a: Float32Array.of(1) } });
    const length = Number(bytes.readBigUInt64LE());
    expect(length % 8).toBe(0);
    const header = bytes.subarray(8, 8 + length).toString();
    expect(header).toBe(
      '{"__metadata__":{},"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}'.padEnd(
        length,
      ),
    );
    expect([...bytes.subarray(8 + length)]).toEqual([0, 0, 128, 63, 7]);
  });

  test("gives back every type, and views of other memory", async () => {
    const view = new Float32Array(new Float32Array([9, 8, 7, 6]).buffer, 4, 2);
    const metadata = { version: "3" };
    const found = await read(bytesOf({ arrays: { ...arrays, view }, metadata }));
    expect(found).toEqual({ arrays: { ...arrays, view: Float32Array.of(8, 7) }, metadata });
  });

  test("gives back none at all", async () => {
    expect(await read(bytesOf({}))).toEqual({ arrays: {}, metadata: {} });
  });

  test("aligns every array to its elements", async () => {
    const bytes = bytesOf({ arrays });
    const length = Number(bytes.readBigUInt64LE());
    const header = JSON.parse(bytes.subarray(8, 8 + length).toString()) as Record<
      string,
      { data_offsets?: [number, number] }
    >;
    for (const [name, { data_offsets: offsets }] of Object.entries(header)) {
      if (offsets === undefined) continue;
      expect((8 + length + offsets[0]) % (arrays[name]?.BYTES_PER_ELEMENT ?? 0)).toBe(0);
    }
  });

  test("takes an array in pieces of one type, and no more names than can be read", async () => {
    const pieces = [Int32Array.of(1), new Int32Array(), Int32Array.of(2, 3)];
    expect((await read(bytesOf({ arrays: { pieces } }))).arrays).toEqual({
      pieces: Int32Array.of(1, 2, 3),
    });
    const mixed = { mixed: [Int32Array.of(1), Float32Array.of(1)] };
    expect(() => bytesOf({ arrays: mixed })).toThrow("cannot hold an array with the name mixed");
    // A name of 100 MiB stands for a million of names.
    const long = { ["x".repeat(100 * 2 ** 20)]: Int32Array.of(1) };
    expect(() => bytesOf({ arrays: long })).toThrow("the names and places of 1 arrays take 1048");
  });

  const withHeader = (header: string | object, data = 4): Buffer => {
    const text = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    return Buffer.concat([length, text, Buffer.alloc(data)]);
  };
  const good = { dtype: "F32", shape: [1], data_offsets: [0, 4] };

  test("reads what others write: another order, a shape, no metadata", async () => {
    const header = {
      second: { dtype: "F32", shape: [1], data_offsets: [8, 12] },
      first: { dtype: "F32", shape: [2, 1], data_offsets: [0, 8] },
    };
    expect(await read(withHeader(header, 12))).toEqual({
      arrays: { first: new Float32Array(2), second: new Float32Array(1) },
      metadata: {},
    });
  });

  test.each([
    [Buffer.alloc(7), "it has 7 bytes"],
    [Buffer.alloc(8, 255), "its header would have"],
    [withHeader("{"), "its header is no JSON"],
    [withHeader("[]"), "its header is no object"],
    [withHeader({ a: null }), "the place of a is null"],
    [withHeader({ a: { ...good, dtype: "BF16" } }), "BF16"],
    [withHeader({ a: { ...good, dtype: "toString" } }), "toString"],
    [withHeader({ a: { ...good, shape: [2] } }), "the place of a"],
    [withHeader({ a: { ...good, shape: [-1] } }), "the place of a"],
    [withHeader({ a: { ...good, shape: [0.5, 2] } }), "the place of a"],
    [withHeader({ a: { ...good, data_offsets: [4, 8] } }, 8), "the place of a"],
    [withHeader({ a: good, b: good }), "the place of b"],
    [withHeader({ a: good }, 3), "a ends behind the end of the file"],
    [withHeader({ a: good }, 5), "bytes, not"],
  ])("%# that is damaged is refused: %s", async (bytes, reason) => {
    await expect(read(bytes)).rejects.toMatchObject({
      code: "CHECKPOINT_DAMAGED",
      message: expect.stringContaining(reason) as string,
    });
  });
});

describe("plain data", () => {
  const data = {
    texts: ["a", "", "__proto__", "$"],
    numbers: [0, -0, 1e300, Number.NaN, Infinity, -Infinity],
    none: [null, undefined, true],
    big: 2n ** 70n,
    nested: { $array: "not one", $$: { $number: 1 }, deep: [[Float32Array.of(1, 2)]] },
    ids: Int32Array.of(-1),
    empty: {},
    dates: [new Date(5), { $date: 5 }],
    maps: new Map<unknown, unknown>([
      ["a", { deep: new Set([1n, -1]) }],
      [{ b: 1 }, new Map()],
    ]),
  };

  test("comes back from JSON and arrays as it was", async () => {
    const { json, arrays } = flatten(data);
    const back = await throughFile({ json: JSON.parse(JSON.stringify(json)) as unknown, arrays });
    expect(back).toEqual(data);
    expect(Object.is((back as typeof data).numbers[1], -0)).toBe(true);
  });

  test("has as many arrays in its file as there are types, however many it has itself", async () => {
    const many = Array.from({ length: 50 }, (_, at) => ({
      ids: Int32Array.of(at, -at).subarray(at % 3),
      logProbs: Float32Array.of(at / 2),
    }));
    const flat = flatten(many);
    expect(Object.keys(flat.arrays)).toEqual(["I32", "F32"]);
    const back = (await throughFile(flat)) as typeof many;
    expect(back).toEqual(many);
    // What is kept of one keeps none of the others.
    expect(back[0]!.logProbs.buffer.byteLength).toBe(4);
  });

  test("is read as earlier versions wrote it: each array by its place", () => {
    const json = { ids: { $array: "$.ids" } };
    const ids = Int32Array.of(1, 2);
    expect(unflatten({ json, arrays: { "$.ids": ids } })).toEqual({ ids });
  });

  test("may hold a thing twice, and a key like __proto__", async () => {
    const twice = { a: 1 };
    const odd = JSON.parse('{"__proto__": 1}') as unknown;
    const back = await throughFile(flatten([twice, twice, odd]));
    expect(JSON.stringify(back)).toBe('[{"a":1},{"a":1},{"__proto__":1}]');
  });

  test("has room for two whose keys make the same place", async () => {
    const same = { "a.b": Float32Array.of(1), a: { b: Float32Array.of(2) } };
    expect(await throughFile(flatten(same))).toEqual(same);
  });

  test("comes back line by line, however lists are in each other, and whatever stands in texts", async () => {
    async function* lined(json: unknown): AsyncGenerator<{ readonly value: unknown }> {
      for (const line of jsonLines(json)) {
        expect(line.indexOf("\n")).toBe(line.length - 1);
        yield await Promise.resolve({ value: JSON.parse(line) as unknown });
      }
    }
    const odd = { lists: [[{ a: [{ b: "\u2028\n" }] }], [], [1, [{ c: null }]]], $list: 3 };
    for (const one of [data, odd, [1, 2], [], "text", null]) {
      const { json, arrays } = flatten(one);
      expect(await throughFile({ json: await jsonOfLines(lined(json)), arrays })).toEqual(one);
    }
    const lines = [...jsonLines([{ text: "long" }, { text: "longer" }])];
    expect(lines).toEqual([
      '[0,{"text":"long"}]\n',
      '[0,{"text":"longer"}]\n',
      '{"whole":{"$list":0}}\n',
    ]);
    const cut = (async function* () {
      yield await Promise.resolve({ value: [0, {}] });
    })();
    await expect(jsonOfLines(cut)).rejects.toThrow("ends before its last line");
  });

  const circle: { self?: unknown } = {};
  circle.self = [circle];
  test.each([
    [{ a: [new WeakMap()] }, "$.a[0] is an instance of WeakMap"],
    [new Map([["run", () => 1]]), "$[0][1] is a function"],
    [() => 1, "$ is a function"],
    [{ s: Symbol("x") }, "$.s is a symbol"],
    [new ArrayBuffer(2), "$ is an instance of ArrayBuffer"],
    [circle, "$.self[0] is one of the objects that it is in"],
  ])("%# that would not is refused: %s", (bad, message) => {
    expect(() => flatten(bad)).toThrow(new TypeError(message));
  });

  test("of others' making can be kept, as far as it has words", async () => {
    const odd = {
      error: new RangeError("too far"),
      at: new URL("http://judge.test/v1"),
      like: /a+/u,
      bytes: new ArrayBuffer(2),
      run: () => 1,
      circle,
      deep: new Map<unknown, unknown>([["s", new Set([new URL("http://x.test/"), 1n])]]),
      ids: Int32Array.of(1),
    };
    const kept = keepable(odd);
    expect(kept).toEqual({
      error: "RangeError: too far",
      at: "http://judge.test/v1",
      like: "/a+/u",
      bytes: null,
      run: null,
      circle: { self: [null] },
      deep: new Map([["s", new Set(["http://x.test/", 1n])]]),
      ids: Int32Array.of(1),
    });
    expect(await throughFile(flatten(kept))).toEqual(kept);
  });

  test("with an array that is not there is refused", () => {
    expect(() => unflatten({ json: { $array: "x" }, arrays: {} })).toThrow("there is no $array x");
    const json = { $array: ["I32", 1, 2] };
    expect(() => unflatten({ json, arrays: { I32: Int32Array.of(1, 2) } })).toThrow(
      "I32 has 2 numbers, and $array ends at 3",
    );
  });
});
