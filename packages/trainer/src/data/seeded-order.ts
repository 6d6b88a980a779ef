/**
 * The order of rows in an epoch: equal for equal seeds and epochs on every machine, and computed
 * without the epochs before, so that a run can resume anywhere. Fisher-Yates over sfc32 (Chris
 * Doty-Humphrey, PractRand), which starts from the SHA-256 of (seed, epoch).
 */

import { createHash } from "node:crypto";

/** Returns the row numbers 0 to rows - 1, each once. */
export function seededOrder(rows: number, seed: number, epoch: number): Uint32Array {
  const order = Uint32Array.from({ length: rows }, (_, row) => row);
  const below = seededIntegers(`order/${seed}/${epoch}`);
  for (let last = rows - 1; last > 0; last--) {
    const pick = below(last + 1);
    const held = order[last] ?? NaN;
    order[last] = order[pick] ?? NaN;
    order[pick] = held;
  }
  return order;
}

/** Returns `count` of the row numbers 0 to rows - 1, ascending: a sample that the seed chooses. */
export function seededSubset(rows: number, count: number, seed: number): Uint32Array {
  return seededOrder(rows, seed, -1).subarray(0, count).toSorted();
}

/** Returns a generator of whole numbers from 0 to below `limit`, one stream for each name. */
function seededIntegers(name: string): (limit: number) => number {
  const digest = createHash("sha256").update(name).digest();
  const state = Uint32Array.from({ length: 4 }, (_, at) => digest.readUInt32LE(4 * at));
  const next = (): number => {
    const [a = 0, b = 0, c = 0, counter = 0] = state;
    const value = (a + b + counter) >>> 0;
    state.set([b ^ (b >>> 9), c + (c << 3), ((c << 21) | (c >>> 11)) + value, counter + 1]);
    return value;
  };
  // Numbers above the last whole multiple of the limit would favour some results: they are drawn
  // again.
  return (limit) => {
    const top = 2 ** 32 - (2 ** 32 % limit);
    let value = next();
    while (value >= top) value = next();
    return value % limit;
  };
}
