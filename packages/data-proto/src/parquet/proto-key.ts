/**
 * Columns, fields and keys of maps that are called `__proto__`. The library would set them on plain
 * objects as a prototype, so it gets a unique stand-in for the name.
 */
import { randomUUID } from "node:crypto";
import type { FileMetaData } from "hyparquet";

const PROTO = "__proto__";
const STAND_IN: string = `${PROTO} ${randomUUID()}`;

export function hidden(name: string): string {
  return name === PROTO ? STAND_IN : name;
}

export function shown(name: string): string {
  return name === STAND_IN ? PROTO : name;
}

/** Changes the footer in place; nobody else uses it. */
export function hideNames(metadata: FileMetaData): FileMetaData {
  for (const element of metadata.schema) element.name = hidden(element.name);
  for (const group of metadata.row_groups) {
    for (const { meta_data: column } of group.columns) {
      if (column !== undefined) column.path_in_schema = column.path_in_schema.map(hidden);
    }
  }
  return metadata;
}

/** Restores the file's names in an object of the library. */
export function shownKeys(parts: Record<string, unknown>): Record<string, unknown> {
  if (!Object.hasOwn(parts, STAND_IN)) return parts;
  return Object.fromEntries(Object.entries(parts).map(([key, part]) => [shown(key), part]));
}
