/** Values of a record by name or path. */

export type Row = Readonly<Record<string, unknown>>;

export function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Finds a value by a key, else by a path such as "reward_model.ground_truth" or "resps.0";
 * undefined for a missing value and for null.
 */
export function valueAt(row: Row, path: string): unknown {
  if (Object.hasOwn(row, path)) return row[path] ?? undefined;
  let value: unknown = row;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = Reflect.get(value, key);
  }
  return value ?? undefined;
}
