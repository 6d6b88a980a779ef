/**
 * Encodes one record as the bytes of one line. Owns the rules for records: a value that JSON would
 * silently change is refused.
 *
 * NaN and infinities are refused, not written as null: in a reward log null means "no score", so a
 * silent null would turn a numeric failure into a missing sample. The writer of the record decides
 * what replaces them. So are an invalid Date, and any other value whose toJSON says null. Typed
 * arrays become arrays of numbers. Values that JSON.stringify drops by rule (undefined and
 * functions in objects) are dropped.
 */
import { describe, JsonlError } from "../errors.ts";
import { reasonOf } from "../shared/file-problem.ts";

/**
 * Returns the JSON of a value by the rules of a record, for other targets than a file. Throws
 * JsonlError JSONL_BAD_VALUE, naming the place inside the value.
 */
export function jsonText(value: unknown): string {
  const text = stringify(value, "");
  if (text === undefined) throw badValue("", `a record cannot be ${typeof value}`);
  return text;
}

/** Throws JSONL_BAD_VALUE, naming the place inside the record, or JSONL_LINE_TOO_LONG. */
export function encodeRecord(value: unknown, path: string, maxLineBytes: number): Buffer {
  const text = stringify(value, path);
  if (text === undefined) throw badValue(path, `a record cannot be ${typeof value}`);
  const bytes = Buffer.from(`${text}\n`);
  if (bytes.length - 1 <= maxLineBytes) return bytes;
  throw new JsonlError("JSONL_LINE_TOO_LONG", {
    path,
    reason: `a record of ${bytes.length - 1} bytes is longer than ${maxLineBytes} bytes`,
  });
}

function stringify(record: unknown, path: string): string | undefined {
  // The path from the root to the holder of the current value: JSON.stringify goes depth first.
  const trail: { readonly holder: unknown; readonly key: string }[] = [];
  function check(this: unknown, key: string, value: unknown): unknown {
    while (trail.length > 0 && trail.at(-1)?.holder !== this) trail.pop();
    const place = (): string => {
      const keys = trail.slice(1).map((step) => step.key);
      return trail.length === 0 ? "$" : ["$", ...keys, key].join(".");
    };
    if (typeof value === "number" && !Number.isFinite(value))
      throw badValue(path, `${place()} is ${value}, which JSON cannot represent`);
    if (typeof value === "bigint")
      throw badValue(path, `${place()} is a bigint, which JSON cannot represent`);
    // A value that says null of itself, as an invalid Date does, is no missing one.
    const given: unknown = value === null ? Reflect.get(Object(this), key) : null;
    if (typeof given === "object" && given !== null)
      throw badValue(path, `${place()} is ${shown(given)}, which JSON would write as null`);
    if (typeof value !== "object" || value === null) return value;
    if (losesAll(value))
      throw badValue(path, `${place()} is ${describe(value)}, whose content JSON would drop`);
    const held: unknown = isTypedArray(value) ? Array.from(value) : value;
    trail.push({ holder: held, key });
    return held;
  }
  try {
    return JSON.stringify(record, check);
  } catch (cause) {
    if (cause instanceof JsonlError) throw cause;
    throw badValue(path, `the record cannot be written as JSON: ${reasonOf(cause)}`, cause);
  }
}

function shown(value: object): string {
  return value instanceof Date ? "an invalid Date" : describe(value);
}

function isTypedArray(value: object): value is object & ArrayLike<unknown> {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/**
 * Whether JSON would write {} for the value: a Map, Set, Error, RegExp, ArrayBuffer and their like.
 */
function losesAll(value: object): boolean {
  if (value instanceof Error) return true;
  if (Array.isArray(value) || isTypedArray(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype !== null && prototype !== Object.prototype && Object.keys(value).length === 0;
}

function badValue(path: string, reason: string, cause?: unknown): JsonlError {
  return new JsonlError("JSONL_BAD_VALUE", { path, reason, cause });
}
