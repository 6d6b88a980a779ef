/**
 * The labels of data: what people (or another judge) say of a response, to compare scores with. No
 * reward function gets them.
 */

import type { SampleLabel } from "@rayling/reward-loop";
import { valueAt } from "@rayling/reward-loop/rows";
import type { Row } from "@rayling/reward-loop/rows";
import type { CliError } from "../cli-error.ts";

/** The key of labels where no flag names another: that of GSM8K's solutions. */
export const standardLabelKey = "is_correct";

/**
 * Returns the label of one response: true or false; a number, too, where a flag names the key. A
 * row with several responses has a label for all, or a list with one for each. Undefined: it has
 * none. Throws what `bad` makes of any other value at a key that a flag names. Without a flag 0 and
 * 1 are false and true, as pandas and Parquet have them, and anything else is a column of the
 * user's that only has this name.
 *
 * @param at the place of the response in its row, from 0, and how an error names the row
 */
export function labelOf(
  row: Row,
  key: string | undefined,
  at: { readonly place: number; readonly within?: string },
  bad: (reason: string) => CliError,
): SampleLabel | undefined {
  const name = key ?? standardLabelKey;
  const found = key === undefined ? row[name] : valueAt(row, key);
  const value = labelIn(Array.isArray(found) ? found[at.place] : found);
  if (value === undefined || typeof value === "boolean") return value;
  if (key === undefined) return value === 0 || value === 1 ? value === 1 : undefined;
  if (value !== "other") return value;
  throw bad(`"${at.within ?? ""}${name}" is neither true nor false, nor a number`);
}

function labelIn(value: unknown): boolean | number | "other" | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "boolean") return value;
  // A bigint that no number can hold is no grade.
  const number = typeof value === "bigint" ? Number(value) : value;
  const isNumber = typeof number === "number" && Number.isFinite(number);
  return isNumber && (number === value || Number.isSafeInteger(number)) ? number : "other";
}
