/**
 * Rows that travel together, as columns: their keys once, and for each key the values of the rows,
 * once where all are equal. Measured: a row of three texts costs a quarter of an object of its own,
 * to write and to read.
 *
 * Reading returns the written rows in order. A row that is no plain object travels unchanged, so
 * that its receiver can report it.
 */

import { isRecord } from "@rayling/reward-manager-registry/values";

export type Table<Row extends object = object> =
  | { readonly keys: readonly string[]; readonly rows: number; readonly columns: readonly Column[] }
  | { readonly whole: readonly Row[] };

/**
 * A value for each row, one value for all, or objects of simple values with equal keys in all rows.
 */
type Column =
  | readonly unknown[]
  | { readonly same: Simple }
  | { readonly keys: readonly string[]; readonly columns: readonly Column[] };

type Simple = string | number | boolean | null;

/** Rows with the same keys, one after the other, share a table. */
export function toTables<Row extends object>(rows: readonly Row[]): Table<Row>[] {
  const tables: Table<Row>[] = [];
  for (let from = 0; from < rows.length;) {
    const keys = keysOf(rows[from]);
    let to = from + 1;
    while (to < rows.length && isAlike(keys, rows[to])) to += 1;
    const alike = from === 0 && to === rows.length ? rows : rows.slice(from, to);
    tables.push(
      keys === undefined
        ? { whole: alike }
        : { keys, rows: alike.length, columns: columnsOf(keys, alike, columnOf) },
    );
    from = to;
  }
  return tables;
}

/** Returns the rows of which `toTables` made the tables. */
export function fromTables<Row extends object>(tables: readonly Table<Row>[]): Row[] {
  const rows: object[] = [];
  for (const table of tables) {
    if ("whole" in table) rows.push(...table.whole);
    else for (let index = 0; index < table.rows; index++) rows.push(rowAt(table, index));
  }
  // The columns do not say it, but their writer's type does.
  return rows as Row[];
}

function rowAt(
  { keys, columns }: { readonly keys: readonly string[]; readonly columns: readonly Column[] },
  index: number,
): object {
  const row: Record<string, unknown> = {};
  for (let at = 0; at < keys.length; at++) {
    const [key, column] = [keys[at], columns[at]];
    if (key !== undefined && column !== undefined) row[key] = valueAt(column, index);
  }
  return row;
}

function valueAt(column: Column, index: number): unknown {
  if (isList(column)) return column[index];
  return "same" in column ? column.same : rowAt(column, index);
}

function isList(column: Column): column is readonly unknown[] {
  return Array.isArray(column);
}

function columnsOf(
  keys: readonly string[],
  rows: readonly unknown[],
  made: (values: readonly unknown[]) => Column,
): Column[] {
  return keys.map((key) => made(rows.map((row) => (isRecord(row) ? row[key] : undefined))));
}

function columnOf(values: readonly unknown[]): Column {
  const [first] = values;
  if (typeof first !== "object" || first === null) return simpleColumn(values);
  const keys = keysOf(first);
  const isNested = keys !== undefined && values.every((one) => isSimpleInside(one, keys));
  return isNested ? { keys, columns: columnsOf(keys, values, simpleColumn) } : values;
}

function simpleColumn(values: readonly unknown[]): Column {
  const [first] = values;
  // Zero may be -0, which is equal to it.
  const isOne = isSimple(first) && first !== 0 && values.every((value) => value === first);
  return isOne && values.length > 1 ? { same: first } : values;
}

/**
 * Such a value is in no circle, and shares no object with others: objects that share something must
 * travel unchanged to keep it.
 */
function isSimpleInside(value: unknown, keys: readonly string[]): boolean {
  if (!isRecord(value) || !isAlike(keys, value)) return false;
  for (const key of keys) if (!isSimple(value[key])) return false;
  return true;
}

function isSimple(value: unknown): value is Simple {
  return (
    typeof value === "string" ||
    typeof value === "number" ||
    typeof value === "boolean" ||
    value === null
  );
}

/** Undefined for what has to travel as it is. */
function keysOf(row: unknown): string[] | undefined {
  if (!isPlain(row)) return undefined;
  const keys = Object.keys(row);
  return keys.includes("__proto__") ? undefined : keys;
}

/** Compares in place: a list of a row's keys would be made for each of them. */
function isAlike(keys: readonly string[] | undefined, row: unknown): boolean {
  if (!isPlain(row)) return keys === undefined;
  let at = 0;
  for (const key in row) {
    if (key === "__proto__") return keys === undefined;
    if (keys !== undefined && key !== keys[at]) return false;
    at += 1;
  }
  return at === keys?.length;
}

/** Whether it is an object without a class. Throws for a proxy that was revoked. */
export function isPlain(row: unknown): row is object {
  if (typeof row !== "object" || row === null) return false;
  const prototype: unknown = Object.getPrototypeOf(row);
  return prototype === Object.prototype || prototype === null;
}
