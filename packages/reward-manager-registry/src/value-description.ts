/**
 * Describes any value in a few words, for error messages: a result of a user function, a value of a
 * field. Never throws, never prints a whole object and never more than 60 characters of a string.
 */

const LONGEST_TEXT = 60;
const MOST_KEYS = 8;

export function describeValue(value: unknown): string {
  if (typeof value === "string") return `the string ${JSON.stringify(shorten(value))}`;
  if (typeof value === "bigint") return `the bigint ${shorten(String(value))}n`;
  if (typeof value === "function")
    return `the ${isClass(value) ? "class" : "function"} ${value.name || "(anonymous)"}`;
  if (typeof value === "object" && value !== null) return describeObject(value);
  return String(value);
}

/**
 * Whether it is a `class` (or a built-in constructor): the only callables whose `prototype` cannot
 * be assigned.
 */
/** A class that takes no arguments, as far as a check can tell. */
export function isClass(value: unknown): value is new () => object {
  return (
    typeof value === "function" &&
    Object.getOwnPropertyDescriptor(value, "prototype")?.writable === false
  );
}

function describeObject(value: object): string {
  if (Array.isArray(value)) return `an array of length ${value.length}`;
  const keys = Object.keys(value);
  const shown = keys.slice(0, MOST_KEYS).map(shorten).join(", ");
  const kind = Object.prototype.toString.call(value).slice("[object ".length, -1);
  const noun = kind === "Object" ? "an object" : `a value of type ${kind}`;
  if (keys.length === 0) return `${noun} without keys`;
  return `${noun} with the keys ${shown}${keys.length > MOST_KEYS ? ", …" : ""}`;
}

function shorten(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT)}…` : text;
}

export function isFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === "function";
}
