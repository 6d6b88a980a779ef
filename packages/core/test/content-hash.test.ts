import { describe, expect, test } from "vitest";
import { contentHash } from "../src/host/code/content-hash.ts";

/** Linear congruential, so that a failure comes again. */
function randomBytes(length: number, seed: number): Uint8Array {
  let state = seed;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state >>> 24;
  });
}

describe("the hash of a file", () => {
  test("is that of its bytes, wherever they lie in memory", () => {
    const bytes = randomBytes(1003, 7);
    const shifted = new Uint8Array(1010);
    shifted.set(bytes, 5);
    expect(contentHash(shifted.subarray(5, 1008))).toBe(contentHash(bytes));
  });

  test("differs when any bit does", () => {
    for (const length of [1, 4, 5, 64, 257]) {
      const bytes = randomBytes(length, length);
      const seen = new Set([contentHash(bytes)]);
      for (let bit = 0; bit < 8 * length; bit++) {
        const changed = bytes.slice();
        changed[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        seen.add(contentHash(changed));
      }
      expect(seen.size).toBe(8 * length + 1);
    }
  });

  test("differs when lines change places, and when zeros are added", () => {
    const lines = Array.from({ length: 40 }, (_, index) => `const value${index} = ${index};\n`);
    const text = (order: readonly string[]): string => contentHash(Buffer.from(order.join("")));
    const seen = new Set([text(lines)]);
    for (let at = 1; at < lines.length; at++) {
      const swapped = [...lines];
      [swapped[0], swapped[at]] = [lines[at] ?? "", lines[0] ?? ""];
      seen.add(text(swapped));
    }
    for (let zeros = 0; zeros < 9; zeros++) seen.add(contentHash(new Uint8Array(zeros)));
    expect(seen.size).toBe(lines.length + 9);
  });

  test("spreads: 50,000 short files have as many different hashes, each half by itself, too", () => {
    const hashes = Array.from({ length: 50_000 }, (_, seed) => contentHash(randomBytes(24, seed)));
    expect(new Set(hashes).size).toBe(50_000);
    for (const half of [1, 2]) {
      const values = new Set(hashes.map((hash) => hash.split("-")[half]));
      // 50,000 draws of 2 ** 32 values collide once in three such runs.
      expect(values.size).toBeGreaterThan(49_990);
    }
  });
});
