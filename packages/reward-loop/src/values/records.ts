/** Objects with named fields and lists, as JSON and modules bring them. */

export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the field of an object; undefined for any other value. */
export function fieldOf(value: unknown, name: string): unknown {
  return isRecord(value) ? value[name] : undefined;
}

/** Returns the value where it is a record, and an empty one for any other value. */
export function recordIn(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {};
}

/** Returns the items of a list or of a typed array; undefined for any other value. */
export function itemsIn(value: unknown): readonly unknown[] | undefined {
  if (isList(value)) return value;
  return isTypedArray(value) ? Array.from<unknown>(value) : undefined;
}

function isTypedArray(value: unknown): value is NodeJS.TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}
