/**
 * Columns, fields and keys of maps that are called `__proto__`. The library would set them on plain
 * objects as a prototype, so it gets a unique stand-in for the name.
 */
import { randomUUID } from "node:crypto";
import type { FileMetaData } from "hyparquet";

const PROTO = "__proto__";
let known: string | undefined;

/** Made when a file is read or written: the module for it takes threads that do neither 8 ms. */
function standIn(): string {
  known ??= `${PROTO} ${randomUUID()}`;
  return known;
}

export function hidden(name: string): string {
  return name === PROTO ? standIn() : name;
}

export function shown(name: string): string {
  return name === known ? PROTO : name;
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
  if (known === undefined || !Object.hasOwn(parts, known)) return parts;
  return Object.fromEntries(Object.entries(parts).map(([key, part]) => [shown(key), part]));
}
