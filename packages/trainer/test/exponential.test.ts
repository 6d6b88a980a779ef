/** Pure: the exponentials of loops over tokens against `Math.exp`. */

import { describe, expect, it } from "vitest";
import { exponentialsInto } from "../src/algorithms/exponential.ts";

function exponentialsOf(powers: Float64Array): Float64Array {
  const results = new Float64Array(powers.length);
  exponentialsInto(results, powers, powers.length);
  return results;
}

const bits = new Float64Array(1);
const whole = new BigInt64Array(bits.buffer);

function bitsOf(value: number): bigint {
  bits[0] = value;
  return whole[0] ?? 0n;
}

/** Returns how many numbers of float64 lie between, at most, and where. */
function farthest(powers: Float64Array): { readonly ulp: number; readonly at: number } {
  const results = exponentialsOf(powers);
  let ulp = 0;
  let at = NaN;
  for (const [index, power] of powers.entries()) {
    const expected = Math.exp(power);
    const result = results[index] ?? NaN;
    if (Object.is(result, expected)) continue;
    const apart = Math.abs(Number(bitsOf(result) - bitsOf(expected)));
    if (apart <= ulp) continue;
    ulp = apart;
    at = power;
  }
  return { ulp, at };
}

/** Numbers from 0 to below 1, always the same. */
function drawing(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

describe("exponentials", () => {
  it.each([
    ["log ratios", -1, 1],
    ["log-probabilities", -40, 1],
    ["all powers whose exponential is a normal number", -708, 709.7],
    ["and those beyond", -760, 720],
  ])("are within 1 ulp of Math.exp, dense: %s", (_, low, high) => {
    const count = 500_000;
    const powers = Float64Array.from(
      { length: count },
      (_one, index) => low + ((high - low) * index) / (count - 1),
    );
    expect(farthest(powers).ulp).toBeLessThanOrEqual(1);
  });

  it.each([2 ** -60, 2 ** -10, 1, 20, 700])(
    "are within 1 ulp of Math.exp, at random up to %d",
    (most) => {
      const random = drawing(7);
      const powers = Float64Array.from({ length: 300_000 }, () => most * (2 * random() - 1));
      expect(farthest(powers).ulp).toBeLessThanOrEqual(1);
    },
  );

  it("are within 1 ulp where the nearest root of two changes", () => {
    const powers: number[] = [];
    for (let half = -131_000; half <= 131_000; half++) {
      const edge = (half * Math.LN2) / 128;
      powers.push(edge, edge * (1 + 2 ** -52), edge * (1 - 2 ** -52));
    }
    expect(farthest(Float64Array.from(powers)).ulp).toBeLessThanOrEqual(1);
  });

  it("are those of Math.exp for what is no normal number", () => {
    const powers = [NaN, Infinity, -Infinity, 709, 710, 1e308, -708, -745.1, -745.2, -1e308];
    const results = exponentialsOf(Float64Array.from(powers));
    expect([...results]).toEqual(powers.map(Math.exp));
  });

  it("are 1 for 0, -0 and the least numbers", () => {
    expect([...exponentialsOf(Float64Array.of(0, -0, 5e-324, -5e-324))]).toEqual([1, 1, 1, 1]);
  });

  it("leave what is behind the length", () => {
    const numbers = Float64Array.of(0, 0, 7);
    exponentialsInto(numbers, numbers, 2);
    expect([...numbers]).toEqual([1, 1, 7]);
  });
});
