/**
 * Long computations as generators, which yield where they may pause: run at once, or in slices
 * between which other work of the thread gets its turn.
 */

import { setImmediate } from "node:timers/promises";

export type Steps<T> = Generator<undefined, T, undefined>;

/** Returns what the steps return. Throws what they throw. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

export interface Slices {
  /** How long the thread works before it gives the turn back. Default 5. */
  readonly sliceMs?: number;
  /** A clock, in ms. */
  readonly now?: () => number;
}

/**
 * Resolves with what the steps return: messages, timers and calls of the thread go on meanwhile.
 * Rejects with what they throw.
 */
export async function inTurns<T>(
  steps: Steps<T>,
  { sliceMs = 5, now = () => performance.now() }: Slices = {},
): Promise<T> {
  let end = now() + sliceMs;
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (now() < end) continue;
    await setImmediate();
    end = now() + sliceMs;
  }
}
