/**
 * Rows of a driver's state for people: sizes in units, times of day.
 */
import { bytes } from "../output/numbers.ts";

/** Returns the row with texts for its sizes and times. */
export function forPeople(row: object): object {
  return Object.fromEntries(
    Object.entries(row).map(([column, value]) => [column, shown(column, value)]),
  );
}

function shown(column: string, value: unknown): unknown {
  if (typeof value !== "number") return value;
  if (column.endsWith("TimeMs")) return new Date(value).toISOString();
  // -1 stands for a size that is not known.
  if (column === "objectSize") return value < 0 ? undefined : bytes(value);
  return value;
}
