import { describe, expect, test } from "vitest";
import { copyBytes } from "../src/protocol/copy-bytes.ts";

const MiB = 1024 * 1024;

/** Bytes that differ from those at any near distance. */
function pattern(length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  for (let at = 0; at < length; at++) bytes[at] = (at * 167 + (at >>> 8) * 13 + (at >>> 16)) & 255;
  return bytes;
}

describe("a copy into shared memory", () => {
  test.for([0, 1, 4095, MiB - 1, MiB, MiB + 1, 3 * MiB + 4097])(
    "of %i bytes has all of them and nothing else",
    (length) => {
      const bytes = pattern(length);
      const memory = new Uint8Array(new SharedArrayBuffer(length + 16)).fill(7);
      copyBytes(bytes, memory);
      expect(Buffer.compare(memory.subarray(0, length), bytes)).toBe(0);
      expect([...memory.subarray(length)]).toEqual(Array.from({ length: 16 }, () => 7));
    },
  );

  test("takes a part from the middle of its memory", () => {
    const bytes = pattern(3 * MiB);
    const memory = new Uint8Array(new SharedArrayBuffer(2 * MiB));
    copyBytes(bytes.subarray(5, 5 + 2 * MiB), memory);
    expect(Buffer.compare(memory, bytes.subarray(5, 5 + 2 * MiB))).toBe(0);
  });

  test("leaves its source as it was", () => {
    const bytes = pattern(2 * MiB);
    copyBytes(bytes, new Uint8Array(new SharedArrayBuffer(2 * MiB)));
    expect(Buffer.compare(bytes, pattern(2 * MiB))).toBe(0);
  });
});
