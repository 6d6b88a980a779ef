/**
 * The choice of a validation's answers to show: verl's choice, so that verl and this trainer show
 * the same ones, and each validation the same prompts.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { createMt19937 } from "../metrics/mt19937.ts";
import type { Generation } from "./tracking-logger.ts";

/**
 * Chooses as verl does: sorts, shuffles with numpy's legacy `RandomState(42).shuffle`, and takes
 * the first `count`.
 */
export function chosenGenerations(
  generations: readonly Generation[],
  count: number,
): readonly Generation[] {
  if (count <= 0) return [];
  const rows = generations.toSorted((a, b) => compared(a.input, b.input));
  const random = createMt19937(42);
  for (let last = rows.length - 1; last > 0; last -= 1) {
    const pick = random.below(last + 1);
    const held = present(rows[last], `row ${last}`);
    rows[last] = present(rows[pick], `row ${pick}`);
    rows[pick] = held;
  }
  return rows.slice(0, count);
}

/** Compares by code points, as Python compares text. */
function compared(left: string, right: string): number {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return Buffer.compare(a, b);
}
