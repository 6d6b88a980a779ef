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
 * none. Throws what `bad` makes of any other value.
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
  const value: unknown = Array.isArray(found) ? found[at.place] : found;
  if (value === undefined || value === null || typeof value === "boolean")
    return value ?? undefined;
  const named = `"${at.within ?? ""}${name}"`;
  if (key === undefined) throw bad(`${named} is neither true nor false`);
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw bad(`${named} is neither true nor false, nor a number`);
}
