/**
 * Which answers of a validation are shown: verl's choice, so that the same ones are seen here and
 * there, and the same prompts again and again.
 */

import { createMt19937 } from "../metrics/mt19937.ts";
import type { Generation } from "./tracking-logger.ts";
import { present } from "../values/present.ts";

/**
 * As verl: sorted, put into an order by numpy's legacy `RandomState(42).shuffle`, the first `count`
 * of them.
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

/** By code points, as Python compares text. */
function compared(left: string, right: string): number {
  const [a, b] = [Buffer.from(left), Buffer.from(right)];
  return Buffer.compare(a, b);
}
