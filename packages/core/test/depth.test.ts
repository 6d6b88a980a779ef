import { Packr } from "msgpackr/pack";
import { describe, expect, test } from "vitest";
import { Codec, type Encoded } from "../src/protocol/codec.ts";
import { checkDepth, maxPackedDepth } from "../src/protocol/values/depth.ts";
import { RaySystemError } from "../src/shared/errors.ts";

const codec = new Codec({
  isReference: () => false,
  write: () => undefined,
  read: () => ({}),
  decline: () => undefined,
});

const bytesOf = ({ bytes, start, end }: Encoded): Uint8Array => bytes.slice(start, end);
const encodedOf = (bytes: Uint8Array): Encoded => ({
  bytes,
  start: 0,
  end: bytes.length,
  buffers: [],
  referenceCount: 0,
  references: undefined,
});

/** Arrays in each other. */
const nested = (depth: number): Uint8Array => Buffer.alloc(depth, 0x91).fill(0xc0, depth - 1);
const check = (bytes: Uint8Array): void => checkDepth(bytes, 0, bytes.length);

const shared = { twice: [1, 2, 3] };
const cyclic: { self?: unknown; name: string } = { name: "me" };
cyclic.self = cyclic;

/** Everything that is packed in a way of its own. */
const packed: readonly [string, unknown][] = [
  [
    "numbers",
    [0, 127, 128, 255, 65_536, 2 ** 32, 2 ** 60, -1, -32, -33, -129, -40_000, -(2 ** 40)],
  ],
  ["fractions", Array.from({ length: 300 }, (_, index) => index / 7)],
  ["big integers", [1n, -1n, 2n ** 63n, 2n ** 100n, -(2n ** 5000n)]],
  ["texts", [0, 1, 15, 16, 31, 32, 255, 256, 65_536].map((length) => "ä".repeat(length))],
  ["long lists", Array.from({ length: 70_000 }, (_, index) => [index])],
  ["records", Array.from({ length: 500 }, (_, id) => ({ id, name: `${id}`, tags: ["a"] }))],
  [
    "records of a thousand shapes",
    Array.from({ length: 1000 }, (_, id) => ({ [`key${id}`]: { [`inner${id % 40}`]: id } })),
  ],
  [
    "records with many keys",
    [16, 40, 70_000].map((count) =>
      Object.fromEntries(
        Array.from({ length: count }, (_, id) => [`${"k".repeat(id % 40)}${id}`, [id]]),
      ),
    ),
  ],
  [
    "maps",
    [new Map([[{ a: 1 }, [1]]]), new Map(Array.from({ length: 70_000 }, (_, id) => [id, id]))],
  ],
  ["sets", [new Set([1, [2], { c: 3 }]), new Set()]],
  ["dates and expressions", [new Date(0), new Date(1.5), new Date(NaN), /a+/gi]],
  ["bytes", [0, 1, 255, 256, 60_000].map((length) => new Uint8Array(length).fill(0x91))],
  ["views", [new Float64Array(10).fill(1e300), new DataView(new ArrayBuffer(8))]],
  ["errors", [new RangeError("far", { cause: new Error("deep") })]],
  ["what is there twice", [shared, shared, shared.twice, cyclic]],
  ["nothing", [undefined, null, true, false, -0, Number.NaN, Infinity]],
];

describe("the depth of a packed value", () => {
  test.each(packed)("is found behind %s", (_name, value) => {
    const before = bytesOf(codec.encode(value, "value"));
    const list = (depth: number): Uint8Array =>
      Buffer.concat([Buffer.from([0x92]), before, nested(depth)]);
    check(list(maxPackedDepth));
    expect(() => check(list(maxPackedDepth + 1))).toThrow("nested deeper than 2500 containers");
  });

  test("leaves everything readable that may be sent", () => {
    for (const [, value] of packed) {
      const encoded = codec.encode([value, "x".repeat(3000)], "value");
      expect(codec.decode(encoded)).toEqual([value, "x".repeat(3000)]);
    }
    let deepest: unknown = "x".repeat(5000);
    for (let level = 0; level < 500; level++) deepest = level % 2 === 0 ? [deepest] : { deepest };
    expect(codec.decode(codec.encode(deepest, "value"))).toEqual(deepest);
  });

  const level = (bytes: readonly number[]): Uint8Array =>
    Buffer.concat([...Array.from({ length: 100_000 }, () => Buffer.from(bytes)), Buffer.of(0xc0)]);
  test.each<[string, Uint8Array]>([
    ["lists", level([0x91])],
    ["long lists", level([0xdd, 0, 0, 0, 1])],
    ["maps", level([0x81, 0x01])],
    ["records", level([0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61])],
    [
      "records of a known shape",
      Buffer.concat([level([0xd4, 0x72, 0x40, 0x91, 0xa1, 0x61]).subarray(0, 6), level([0x40])]),
    ],
    ["sets", level([0xd4, 0x73, 0])],
    ["sets with a payload", level([0xc7, 3, 0x73, 1, 2, 3])],
    ["numbered values", level([0xd6, 0x69, 0, 0, 0, 1])],
    ["errors", level([0xd4, 0x65, 0])],
    ["special values", level([0xd4, 0x52, 0])],
  ])(
    "of 100,000 %s is refused, however they are packed, and the next value is read",
    (_name, bytes) => {
      expect(() => codec.decode(encodedOf(bytes))).toThrow(RaySystemError);
      expect(() => codec.decode(encodedOf(bytes))).toThrow("nested deeper");
      expect(codec.decode(codec.encode({ a: [1] }, "value"))).toEqual({ a: [1] });
    },
  );

  test.each<[string, readonly number[]]>([
    ["bundled strings", [0xd6, 0x62, 0, 0, 0, 1]],
    ["records with numbers of two bytes", [0xd5, 0x72, 0x40, 0]],
    ["records whose keys are no list", [0xd4, 0x72, 0x40, 0x80]],
    ["records whose keys are no names", [0xd4, 0x72, 0x40, 0x91, 0x91]],
  ])("cannot be hidden by %s", (_name, bytes) => {
    const hidden = Buffer.concat([Buffer.from(bytes), Buffer.alloc(5000, 0xc0)]);
    expect(() => codec.decode(encodedOf(hidden))).toThrow(RaySystemError);
  });

  test("does not matter where a packer counts otherwise: what it reads is never deeper than what is found", () => {
    // Random bytes that are mostly containers: whatever unpacking makes of them is within the limit, or refused.
    let state = 7;
    const random = (count: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * count);
    };
    const tokens = [
      0x91, 0x92, 0x81, 0x40, 0x41, 0xd4, 0x72, 0x73, 0x69, 0xd6, 0xa1, 0x61, 0xc0, 0xdc, 0x00,
      0x01,
    ];
    const packr = new Packr({ structuredClone: true, useRecords: true });
    let read = 0;
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.from(
        Array.from({ length: 4000 }, () => tokens[random(tokens.length)] as number),
      );
      try {
        check(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(RaySystemError);
        continue;
      }
      try {
        packr.unpack(bytes);
      } catch (error) {
        expect(String(error)).not.toContain("call stack");
      }
      read += 1;
    }
    expect(read).toBeGreaterThan(0);
  });
});

describe("a value that lies about its length", () => {
  test.each<[string, readonly number[]]>([
    ["a list", [0xdd, 0xff, 0xff, 0xff, 0xff]],
    ["a map", [0xdf, 0xff, 0xff, 0xff, 0xff]],
    ["a text", [0xdb, 0xff, 0xff, 0xff, 0xff]],
    ["bytes", [0xc6, 0xff, 0xff, 0xff, 0xff]],
    ["an extension", [0xc9, 0xff, 0xff, 0xff, 0xff, 0x74]],
    ["a view that only says how long it is", viewOfLength()],
  ])("is refused before anything is made that long: %s", (_name, bytes) => {
    const before = process.memoryUsage().arrayBuffers;
    for (const length of [20, 5000]) {
      const value = Buffer.concat([Buffer.from(bytes), Buffer.alloc(length)]);
      expect(() => codec.decode(encodedOf(value))).toThrow(RaySystemError);
    }
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(10e6);
  });
});

/** `["view", "Uint8Array", { length: 2 ** 32 - 1 }]` where the bytes should be. */
function viewOfLength(): readonly number[] {
  const content = new Packr({ useRecords: true }).pack([
    "view",
    "Uint8Array",
    { length: 2 ** 32 - 1 },
  ]);
  return [0xd4, 0x52, 0, ...content];
}
