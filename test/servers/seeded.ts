/** Chance that can be repeated: numbers from a seed and a text, the same in every process. */

import { createHash } from "node:crypto";

/** In [0, 1), by seed, text and purpose. */
export function chanceOf(seed: number, text: string, purpose: string): number {
  const digest = createHash("sha256").update(`${seed}\0${purpose}\0${text}`).digest();
  return digest.readUIntBE(0, 6) / 2 ** 48;
}

/** mulberry32: in [0, 1), one after the other. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
