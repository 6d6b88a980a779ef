/**
 * metaInfo: a free record that travels with a batch and is shared by reference between a batch and
 * its slices, chunks and repeats. Owns merges of two or more of them, and the auto-padding mark.
 * Must not know columns.
 */
import { deepEqual } from "../deep-equal.ts";
import { DataProtoError } from "../errors.ts";

/** Values of the whole batch by name (verl `meta_info`). */
export type MetaInfo = Record<string, unknown>;

/**
 * verl's DataProtoConfig.auto_padding_key: when it is set, chunk() accepts row counts that do not
 * divide.
 */
export const AUTO_PADDING_KEY = "_verl_auto_padding";

export function hasAutoPadding(metaInfo: MetaInfo): boolean {
  return metaInfo[AUTO_PADDING_KEY] === true;
}

/** Throws CONFLICT for the first shared key with different values. */
export function checkMetaUnion(mine: MetaInfo, theirs: MetaInfo): void {
  for (const [key, value] of Object.entries(theirs)) {
    if (Object.hasOwn(mine, key) && !deepEqual(mine[key], value))
      throw conflict(key, mine[key], value);
  }
}

/**
 * Merges like verl's DataProto.concat: `metrics` (a record, or a list of records) become one record
 * of lists; other repeated keys must be equal.
 */
export function concatMetaInfo(list: readonly MetaInfo[]): MetaInfo {
  const merged: MetaInfo = {};
  const metrics: Readonly<Record<string, unknown>>[] = [];
  for (const { metrics: own, ...rest } of list) {
    checkMetaUnion(merged, rest);
    Object.assign(merged, rest);
    for (const record of Array.isArray(own) ? own : [own]) {
      if (record === null || record === undefined) continue;
      if (typeof record !== "object") {
        throw new DataProtoError(
          "BAD_VALUE",
          `concat: metaInfo "metrics" must hold records, got ${String(record)}`,
          { key: "metrics", actual: record },
        );
      }
      metrics.push({ ...record });
    }
  }
  if (metrics.length > 0) merged["metrics"] = listsOf(metrics);
  return merged;
}

function listsOf(records: readonly Readonly<Record<string, unknown>>[]): Record<string, unknown[]> {
  const [first = {}] = records;
  const lists: Record<string, unknown[]> = Object.fromEntries(
    Object.keys(first).map((key) => [key, []]),
  );
  for (const record of records) {
    for (const [key, value] of Object.entries(record)) {
      const list = Object.hasOwn(lists, key) ? lists[key] : undefined;
      if (list === undefined) {
        const message = `concat: metric "${key}" is not among the keys of the first metrics (${Object.keys(first).join(", ")})`;
        throw new DataProtoError("KEY_NOT_FOUND", message, { key, expected: Object.keys(first) });
      }
      list.push(value);
    }
  }
  return lists;
}

function conflict(key: string, expected: unknown, actual: unknown): DataProtoError {
  return new DataProtoError("CONFLICT", `metaInfo "${key}" has two different values`, {
    key,
    expected,
    actual,
  });
}
