/** Settings as loggers get them: free ones may have numbers that JSON cannot carry. */

import { isList, isRecord } from "@rayling/reward-manager-registry/values";
import { writtenNumber } from "../tracking/files/run-lines.ts";

/** Numbers that are not finite become their texts, as in metrics, and bigints theirs. */
export function writtenSettings(
  settings: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [name, writtenSetting(value)]),
  );
}

function writtenSetting(value: unknown): unknown {
  if (typeof value === "number") return writtenNumber(value);
  if (typeof value === "bigint") return String(value);
  if (isList(value)) return value.map(writtenSetting);
  // A Map or a Date is no tree of settings: each logger says what it does with it.
  const isTree = isRecord(value) && Object.prototype.toString.call(value) === "[object Object]";
  return isTree ? writtenSettings(value) : value;
}
