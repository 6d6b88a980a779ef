/**
 * Columns, fields and keys of maps that are called `__proto__`. The library sets them on plain
 * objects, where they would become a prototype, so that it gets another name in its place, which
 * nothing else has.
 */
import { randomUUID } from "node:crypto";
import type { FileMetaData } from "hyparquet";

const PROTO = "__proto__";
const STAND_IN: string = `${PROTO} ${randomUUID()}`;
const decoder = new TextDecoder();

export function hidden(name: string): string {
  return name === PROTO ? STAND_IN : name;
}

export function shown(name: string): string {
  return name === STAND_IN ? PROTO : name;
}

/** For the library: texts may be keys of maps. */
export const parsers: { readonly stringFromBytes: (bytes: Uint8Array | undefined) => string } = {
  stringFromBytes: (bytes) => hidden(decoder.decode(bytes)),
};

/** In place: the footer is ours. */
export function hideNames(metadata: FileMetaData): FileMetaData {
  for (const element of metadata.schema) element.name = hidden(element.name);
  for (const group of metadata.row_groups) {
    for (const { meta_data: column } of group.columns) {
      if (column !== undefined) column.path_in_schema = column.path_in_schema.map(hidden);
    }
  }
  return metadata;
}

/** Gives an object of the library the names that the file has. */
export function shownKeys(parts: Record<string, unknown>): Record<string, unknown> {
  if (!Object.hasOwn(parts, STAND_IN)) return parts;
  return Object.fromEntries(Object.entries(parts).map(([key, part]) => [shown(key), part]));
}
