/**
 * The order of rows in each epoch of a mini-batch iterator. Knows row numbers only. One seed gives
 * equal orders on every machine; they are not torch's orders, which come from MT19937. Generator:
 * mulberry32 (32 bits of state, public domain, Tommy Ettinger); order: Fisher-Yates.
 */
import { rowsBy } from "../tensor/row-index.ts";

/** Order of the rows in each epoch of mini-batches. */
export interface MiniBatchOptions {
  /** Whether each epoch has a new order; default false. */
  readonly shuffle?: boolean;
  /** The seed of the orders; default: Math.random. */
  readonly seed?: number;
}

/** Yields one order per epoch; null keeps the rows in order. */
export function* epochOrders(
  rows: number,
  epochs: number,
  { shuffle = false, seed }: MiniBatchOptions,
): Generator<Int32Array | null, void, undefined> {
  const random = seed === undefined ? Math.random : seededRandom(seed);
  for (let epoch = 0; epoch < epochs; epoch++) yield shuffle ? shuffledRows(rows, random) : null;
}

/** Returns a source of uniform numbers in [0, 1), with a fresh stream per call. */
function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

function shuffledRows(rows: number, random: () => number): Int32Array {
  const order = rowsBy(rows, (i) => i);
  for (let last = rows - 1; last > 0; last--) {
    const pick = Math.floor(random() * (last + 1));
    const held = order[last] ?? 0;
    order[last] = order[pick] ?? 0;
    order[pick] = held;
  }
  return order;
}
