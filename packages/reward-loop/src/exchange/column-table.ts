/**
 * Rows that travel together, as columns: their keys once, and for each key the values of the rows,
 * once where all are equal. Measured: a row of three texts costs a quarter of an object of its own,
 * to write and to read.
 *
 * Reading returns the written rows in order. A row that is no plain object travels unchanged, so
 * that its receiver can report it.
 */

import { isRecord, itemAt } from "@rayling/reward-manager-registry/values";

export type Table<Row extends object = object> =
  | readonly [layout: string, rows: number, columns: readonly Column[]]
  | readonly [layout: null, rows: readonly Row[]];

/** A value for each row, or one value for all. */
type Column = readonly unknown[] | Simple;

type Simple = string | number | boolean | null;

/** A key, or that of objects with equal keys of simple values in all rows, each with its column. */
type Field = string | readonly [key: string, keys: readonly string[]];

/** Rows with the same keys, one after the other, share a table. */
export function toTables<Row extends object>(rows: readonly Row[]): Table<Row>[] {
  const tables: Table<Row>[] = [];
  for (let from = 0; from < rows.length;) {
    const keys = keysOf(rows[from]);
    let to = from + 1;
    while (to < rows.length && isAlike(keys, rows[to])) to += 1;
    const alike = from === 0 && to === rows.length ? rows : rows.slice(from, to);
    tables.push(keys === undefined ? [null, alike] : tableOf(keys, alike));
    from = to;
  }
  return tables;
}

function tableOf<Row extends object>(keys: readonly string[], rows: readonly Row[]): Table<Row> {
  const fields: Field[] = [];
  const columns: Column[] = [];
  for (const key of keys) {
    const values = valuesOf(rows, key);
    const [first] = values;
    const inside = typeof first === "object" && first !== null ? keysOf(first) : undefined;
    if (inside !== undefined && values.every((one) => isSimpleInside(one, inside))) {
      fields.push([key, inside]);
      for (const one of inside) columns.push(columnOf(valuesOf(values, one)));
    } else {
      fields.push(key);
      columns.push(columnOf(values));
    }
  }
  return [JSON.stringify(fields), rows.length, columns];
}

function valuesOf(rows: readonly unknown[], key: string): unknown[] {
  return rows.map((row) => (isRecord(row) ? row[key] : undefined));
}

function columnOf(values: readonly unknown[]): Column {
  const [first] = values;
  // Zero may be -0, which is equal to it.
  const isOne = isSimple(first) && first !== 0 && values.every((value) => value === first);
  return isOne ? first : values;
}

/**
 * Returns the rows of which `toTables` made the tables.
 *
 * @param layouts those of rows that get further fields
 */
export function fromTables<Row extends object>(
  tables: readonly Table<Row>[],
  layouts: Layouts = ofRows,
): Row[] {
  const rows: object[] = [];
  for (const table of tables) {
    if (table[0] === null) rows.push(...table[1]);
    else {
      const [text, count, columns] = table;
      const layout = layouts.of(text);
      for (let index = 0; index < count; index++) rows.push(rowAt(layout, columns, index));
    }
  }
  // The columns do not say it, but their writer's type does.
  return rows as Row[];
}

interface Layout {
  readonly keys: readonly string[];
  /** For each key the layout of its objects, if its values are such. */
  readonly inside: readonly (Layout | undefined)[];
  /** A row without values. Copies of it have the memory that they need, and no more. */
  readonly empty: Readonly<Record<string, unknown>>;
}

const mostLayouts = 256;
const longestText = 1024;

/**
 * Layouts that were read, by their texts. The keys of a row are looked up once, and not for each
 * message: V8 looks up each text that it has not seen as a key.
 */
export class Layouts {
  readonly #known: Map<string, Layout> = new Map();
  readonly #further: Readonly<Record<string, unknown>>;

  /**
   * @param further fields of each row that has no such key. A field that a row is given later takes
   * 32 bytes more.
   */
  constructor(further: Readonly<Record<string, unknown>> = {}) {
    this.#further = further;
  }

  /** @param text as `tableOf` wrote it */
  of(text: string): Layout {
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const fields = JSON.parse(text) as Field[];
    const keys = fields.map((field) => (typeof field === "string" ? field : field[0]));
    const inside = fields.map((field) =>
      typeof field === "string"
        ? undefined
        : { keys: field[1], inside: [], empty: emptyOf(field[1]) },
    );
    const further = Object.entries(this.#further).filter(([key]) => !keys.includes(key));
    const empty = emptyOf([...keys, ...further.map(([key]) => key)]);
    const layout = { keys, inside, empty: Object.assign(empty, Object.fromEntries(further)) };
    if (text.length > longestText) return layout;
    if (this.#known.size === mostLayouts) this.#known.clear();
    this.#known.set(text, layout);
    return layout;
  }
}

const ofRows: Layouts = new Layouts();

/** Returns a row of these keys, whose values are null. */
function emptyOf(keys: readonly string[]): Record<string, unknown> {
  // An object that is parsed has no room for further keys: 24 bytes less than one that was filled.
  const text = `{${keys.map((key) => `${JSON.stringify(key)}:null`).join()}}`;
  const hasPlainKeys = !text.includes("\\");
  const empty: Record<string, unknown> = hasPlainKeys ? JSON.parse(text) : {};
  if (hasPlainKeys) return empty;
  // V8 13.6 reads a key that is escaped as another one that it has read in its place before.
  for (const key of keys) empty[key] = null;
  return empty;
}

function rowAt({ keys, inside, empty }: Layout, columns: readonly Column[], index: number): object {
  const row: Record<string, unknown> = { ...empty };
  let next = 0;
  for (let at = 0; at < keys.length; at++) {
    const layout = inside[at];
    if (layout === undefined) row[itemAt(keys, at)] = valueAt(columns[next++], index);
    else {
      const object: Record<string, unknown> = { ...layout.empty };
      for (const key of layout.keys) object[key] = valueAt(columns[next++], index);
      row[itemAt(keys, at)] = object;
    }
  }
  return row;
}

function valueAt(column: Column | undefined, index: number): unknown {
  return Array.isArray(column) ? column[index] : column;
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
