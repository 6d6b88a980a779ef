/** The values that the codec packs by hand: msgpackr reads and writes the same. */
import { Packr } from "msgpackr/pack";
import { describe, expect, test } from "vitest";
import { notSmall, SmallPacker, unpackSmall } from "../src/protocol/small-values.ts";

const packr = new Packr({ useRecords: true, moreTypes: true });

const integers = [0x20, 0x40, 0x80, 0x100, 0x8000, 0x10000, 2 ** 31, 2 ** 32, 2 ** 53].flatMap(
  (power) => [power - 1, power, power + 1, -power + 1, -power, -power - 1],
);
const numbers = [0, 1, ...integers, 0.1, -1.5, 5e-324, 1.797e308, Infinity, -Infinity, NaN];
const others = [true, false, null, "", "a", "a{}~\u007f", "x".repeat(31)];

const packer = new SmallPacker();

interface Window {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

function taken(isPacked: boolean): Window | undefined {
  if (!isPacked) return undefined;
  const { bytes, start, end } = packer;
  return { bytes, start, end };
}

const packSmall = (value: unknown): Window | undefined => taken(packer.value(value));
const packSmallList = (list: unknown[]): Window | undefined => taken(packer.list(list));

/** A copy of what is packed by hand. */
function bytesOf(packed: Window | undefined): Buffer {
  if (packed === undefined) throw new Error("not small");
  return Buffer.from(packed.bytes.slice(packed.start, packed.end));
}

const unpack = (bytes: Uint8Array): unknown => unpackSmall(bytes, 0, bytes.length);

describe("one value", () => {
  test.for([...numbers, ...others, undefined])("%o is read by msgpackr", (value) => {
    expect(packr.unpack(bytesOf(packSmall(value)))).toBe(value);
  });

  test.for([...numbers, true, false, null, undefined])("%o of msgpackr is read", (value) => {
    expect(unpack(packr.pack(value))).toBe(value);
    expect(unpack(bytesOf(packSmall(value)))).toBe(value);
  });

  test("of another kind is left to msgpackr", () => {
    const left = [-0, 1n, "x".repeat(32), "é", "\ud800", {}, [], Symbol("s"), () => 1];
    for (const value of left) expect(packSmall(value)).toBeUndefined();
    const written = [1n, "text", { a: 1 }, new Map(), new Date(0), [[1]], [{ a: 1 }]];
    for (const value of written) expect(unpack(packr.pack(value))).toBe(notSmall);
  });
});

describe("a few bytes", () => {
  const lengths = [1, 2, 63, 64];
  const view = (length: number): Uint8Array =>
    Uint8Array.from({ length }, (_, index) => 255 - index);

  test.for(lengths)("%i go both ways, alone and in a list", (length) => {
    const bytes = view(length);
    for (const packed of [bytesOf(packSmall(bytes)), packr.pack(bytes)]) {
      expect(packr.unpack(packed)).toEqual(bytes);
      const read = unpack(packed);
      expect(read).toEqual(bytes);
      expect(read).toBeInstanceOf(Uint8Array);
      expect((read as Uint8Array).buffer.byteLength).toBe(length);
    }
    const list = [null, bytes, 7];
    expect(packr.unpack(bytesOf(packSmallList(list)))).toEqual(list);
    expect(unpack(bytesOf(packSmallList(list)))).toEqual(list);
  });

  test("are a copy on both sides", () => {
    const bytes = view(3);
    const packed = bytesOf(packSmall(bytes));
    bytes.fill(0);
    const read = unpack(packed) as Uint8Array;
    packed.fill(0);
    expect(read).toEqual(view(3));
  });

  test("of another class, of a part, of shared memory, or of none, are left to msgpackr", () => {
    class Mine extends Uint8Array {}
    const gone = view(8);
    structuredClone(gone.buffer, { transfer: [gone.buffer as ArrayBuffer] });
    const resizable = new Uint8Array(new ArrayBuffer(4, { maxByteLength: 8 }), 0, 2);
    const left = [
      new Uint8Array(0),
      view(65),
      view(8).subarray(2),
      new Uint8Array(new SharedArrayBuffer(8)),
      Buffer.from([1, 2]),
      new Mine(2),
      new Int8Array(2),
      new Uint8ClampedArray(2),
      new Uint16Array(2),
      Object.create(Uint8Array.prototype, {
        length: { value: 2 },
        buffer: { value: new ArrayBuffer(2) },
      }),
      gone,
      resizable,
      Object.setPrototypeOf(new Int8Array([-1]), Uint8Array.prototype),
      Object.setPrototypeOf(new DataView(new ArrayBuffer(2)), Uint8Array.prototype),
      new Uint8Array(
        Object.setPrototypeOf(new SharedArrayBuffer(2), ArrayBuffer.prototype) as ArrayBuffer,
      ),
    ];
    for (const one of left) {
      expect(packSmall(one)).toBeUndefined();
      expect(packSmallList([one])).toBeUndefined();
    }
    for (const one of [new Int8Array(2), new Float64Array(2), view(65), new ArrayBuffer(2)]) {
      expect(unpack(packr.pack(one))).toBe(notSmall);
    }
  });

  test("are what they are, whatever own properties say", () => {
    const bytes = view(8);
    Object.defineProperties(bytes, {
      length: { value: 1.5 },
      buffer: {
        get() {
          throw new Error("not to be read");
        },
      },
    });
    expect(unpack(bytesOf(packSmall(bytes)))).toEqual(view(8));
  });

  test("that may show one memory twice are left to msgpackr", () => {
    const bytes = view(4);
    expect(packSmallList([bytes, bytes])).toBeUndefined();
    expect(packSmallList([bytes, new Uint8Array(bytes.buffer)])).toBeUndefined();
  });

  test("that are cut off, or followed by more, are no small value", () => {
    const packed = packr.pack(view(5));
    for (let end = 0; end < packed.length; end++) {
      expect(unpackSmall(packed, 0, end)).toBe(notSmall);
      expect(unpackSmall(packed.subarray(0, end), 0, end)).toBe(notSmall);
    }
    expect(unpack(Buffer.concat([packed, Buffer.of(0)]))).toBe(notSmall);
  });

  test("beside the longest texts have room", () => {
    const list = [...Array<string>(14).fill("x".repeat(31)), view(64)];
    for (let times = 0; times < 100; times++) {
      expect(packr.unpack(bytesOf(packSmallList(list)))).toEqual(list);
    }
    expect(unpack(bytesOf(packSmallList([...Array<number>(14).fill(0.5), view(64)])))).toHaveLength(
      15,
    );
  });
});

describe("a list", () => {
  test("of up to 15 of them goes both ways", () => {
    for (let length = 0; length <= 15; length++) {
      const list = numbers.slice(0, length);
      expect(packr.unpack(bytesOf(packSmallList(list)))).toEqual(list);
      expect(unpack(packr.pack(list))).toEqual(list);
    }
    expect(packr.unpack(bytesOf(packSmallList(others)))).toEqual(others);
  });

  test("with more, with a hole or with anything else is left to msgpackr", () => {
    // oxlint-disable-next-line no-sparse-arrays
    for (const list of [Array(16).fill(0), [1, , 2], [undefined], [-0], [1, "é"], [[1]]]) {
      expect(packSmallList(list)).toBeUndefined();
    }
    expect(unpack(packr.pack(Array(16).fill(0)))).toBe(notSmall);
  });

  test("that was left in its middle leaves nothing behind", () => {
    const before = packSmallList([1, 2, 3]);
    expect(packSmallList([7, 8, {}])).toBeUndefined();
    const after = packSmallList([4, 5]);
    expect(packr.unpack(bytesOf(before))).toEqual([1, 2, 3]);
    expect(packr.unpack(bytesOf(after))).toEqual([4, 5]);
  });

  test("is not written again, however many follow", () => {
    const texts = Array.from({ length: 14 }, (_, index) => String.fromCharCode(97 + index));
    const lists = Array.from({ length: 2_000 }, (_, index) => [index, ...texts.slice(index % 14)]);
    const packed = lists.map((list) => packSmallList(list));
    expect(packed.map((one) => packr.unpack(bytesOf(one)))).toEqual(lists);
  });
});

test("bytes that are cut off, or followed by more, are no small value", () => {
  for (const value of [[300, 70_000, -200, -40_000, 2 ** 31, 0.5, null, true], 70_000, 0.5]) {
    const bytes = packr.pack(value);
    for (let end = 0; end < bytes.length; end++) {
      expect(unpackSmall(bytes.subarray(0, end), 0, end)).toBe(notSmall);
      expect(unpackSmall(bytes, 0, end)).toBe(notSmall);
    }
    expect(unpackSmall(bytes, 0, bytes.length + 1)).toBe(notSmall);
    expect(unpack(Buffer.concat([bytes, Buffer.of(0)]))).toBe(notSmall);
  }
});
