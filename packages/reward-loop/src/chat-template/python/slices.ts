/** The beginning and end of a slice, as Python counts. */

import { integer } from "./arguments.ts";
import type { Value } from "./values.ts";

/** First place, and the one behind the last in the direction of `step`. */
export function slicePoints(
  size: number,
  start: Value,
  stop: Value,
  step: number,
): readonly [number, number] {
  const [least, most] = step > 0 ? [0, size] : [-1, size - 1];
  const place = (value: Value, standard: number): number => {
    if (value === null) return standard;
    const given = integer(value, "slice indices");
    return Math.max(least, Math.min(most, given < 0 ? given + size : given));
  };
  return step > 0
    ? [place(start, 0), place(stop, size)]
    : [place(start, size - 1), place(stop, -1)];
}
