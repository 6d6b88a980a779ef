/**
 * DECIMAL columns. The library multiplies doubles, which rounds: here it reads the unscaled whole
 * numbers as columns without a type, and this module puts the point in.
 *
 * A whole number is a number, or a bigint where a double cannot hold it. Another one is the number
 * whose shortest text says the same, else its text. Nothing is rounded.
 */
import type { FileMetaData, SchemaElement, SchemaTree } from "hyparquet";

/** The digits behind the point, by leaf of the schema. */
export type Decimals = ReadonlyMap<SchemaElement, number>;

/** Takes the type of decimal columns out of the footer, in place, and returns their scales. */
export function hideDecimals({ schema }: FileMetaData): Decimals {
  const found = new Map<SchemaElement, number>();
  for (const element of schema) {
    const { converted_type: converted, logical_type: logical, scale } = element;
    if (converted !== "DECIMAL" && logical?.type !== "DECIMAL") continue;
    found.set(element, (logical?.type === "DECIMAL" ? logical.scale : scale) ?? 0);
    delete element.converted_type;
    delete element.logical_type;
  }
  return found;
}

/** Returns a function that puts the decimals into a row, in place; undefined without decimals. */
export function decimalReader(
  { children }: SchemaTree,
  decimals: Decimals,
): ((row: Record<string, unknown>) => void) | undefined {
  const columns = children.filter((child) => hasDecimals(child, decimals));
  if (columns.length === 0) return undefined;
  return (row) => {
    fill(row, columns, decimals);
  };
}

function hasDecimals({ element, children }: SchemaTree, decimals: Decimals): boolean {
  return decimals.has(element) || children.some((child) => hasDecimals(child, decimals));
}

function fill(
  parts: Record<string, unknown>,
  children: readonly SchemaTree[],
  decimals: Decimals,
): void {
  for (const child of children) {
    const { name } = child.element;
    if (Object.hasOwn(parts, name)) parts[name] = filled(parts[name], child, decimals);
  }
}

function filled(value: unknown, node: SchemaTree, decimals: Decimals): unknown {
  if (value === null || value === undefined) return value;
  if (Array.isArray(value)) {
    const item = itemOf(node);
    return value.map((one) => filled(one, item, decimals));
  }
  const scale = decimals.get(node.element);
  if (scale !== undefined) return isUnscaled(value) ? decimalOf(unscaledOf(value), scale) : value;
  if (!isParts(value)) return value;
  const [pairs] = node.children;
  if (node.element.converted_type === "MAP" && pairs !== undefined) {
    return mapOf(value, pairs, decimals);
  }
  fill(value, node.children, decimals);
  return value;
}

/** Returns what the items of a list are, as the library takes lists; else the repeated node. */
function itemOf(node: SchemaTree): SchemaTree {
  const [repeated] = node.children;
  if (node.element.converted_type !== "LIST" || repeated === undefined) return node;
  const [only, ...more] = repeated.children;
  return only === undefined || more.length > 0 ? repeated : only;
}

function mapOf(
  value: Record<string, unknown>,
  { children: [key, item] }: SchemaTree,
  decimals: Decimals,
): Record<string, unknown> {
  const scale = key === undefined ? undefined : decimals.get(key.element);
  const isBytes = key?.element.type?.endsWith("BYTE_ARRAY") === true;
  // The library has made a text of a key: of bytes as of a list.
  const keyOf = (name: string): bigint =>
    isBytes ? unscaledOf(Uint8Array.from(name.split(","), Number)) : BigInt(name);
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [
      scale === undefined ? name : String(decimalOf(keyOf(name), scale)),
      item === undefined ? one : filled(one, item, decimals),
    ]),
  );
}

function isParts(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !(value instanceof Uint8Array);
}

type Unscaled = Uint8Array | number | bigint;

function isUnscaled(value: unknown): value is Unscaled {
  return value instanceof Uint8Array || typeof value === "number" || typeof value === "bigint";
}

/** @param value a whole number, or its bytes, the highest one first */
function unscaledOf(value: Unscaled): bigint {
  if (!(value instanceof Uint8Array)) return BigInt(value);
  if (value.length === 0) return 0n;
  const hex = Buffer.from(value.buffer, value.byteOffset, value.length).toString("hex");
  return BigInt.asIntN(value.length * 8, BigInt(`0x${hex}`));
}

function decimalOf(unscaled: bigint, scale: number): number | bigint | string {
  const unit = 10n ** BigInt(Math.max(0, scale));
  if (unscaled % unit === 0n) return unscaled / unit;
  const sign = unscaled < 0n ? "-" : "";
  const digits = String(unscaled)
    .replace("-", "")
    .padStart(scale + 1, "0");
  const text = `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  const number = Number(text);
  return isExact(number, text) ? number : text;
}

/** Whether the shortest text of a number has the digits of a text with a point. */
function isExact(number: number, text: string): boolean {
  const [mantissa = "", exponent = ""] = Math.abs(number).toExponential().split("e");
  const [whole = "", part = ""] = text.replace("-", "").split(".");
  const digits = (whole + part).replace(/^0+/, "");
  const zeros = (whole + part).length - digits.length;
  return (
    mantissa.replace(".", "") === digits.replace(/0+$/, "") &&
    Number(exponent) === whole.length - zeros - 1
  );
}
