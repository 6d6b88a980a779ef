/** Objects with named fields and lists, as JSON and modules bring them. */

/** Returns whether a value is a list. `Array.isArray` does not tell read-only lists apart. */
export function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value);
}

/** Returns whether a value is an object with named fields: no list and not null. */
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

/** Returns whether a value has a method `then`, as promises have. */
export function isThenable<Result>(
  value: Result | PromiseLike<Result>,
): value is PromiseLike<Result> {
  return hasMethod(value, "then");
}

/** Returns whether a value is an object or a function with that method. */
export function hasMethod(value: unknown, name: string): boolean {
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    typeof Reflect.get(value, name) === "function"
  );
}

/** Returns whether a value is a typed array; a DataView is none. */
export function isTypedArray(value: unknown): value is NodeJS.TypedArray {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}
