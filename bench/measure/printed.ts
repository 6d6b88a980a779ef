/** Values that other processes print as JSON: each is checked as it is read. */

/** Returns the value of a name; undefined where there is no object, or no such name. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** @throws TypeError for anything but a list of numbers */
export function numbers(value: unknown): readonly number[] {
  if (Array.isArray(value)) {
    const all: readonly unknown[] = value;
    const found = all.filter((one) => typeof one === "number");
    if (found.length === all.length) return found;
  }
  throw new TypeError(`a list of numbers was expected, and not ${JSON.stringify(value)}`);
}

/** @throws TypeError for anything but a text */
export function text(value: unknown): string {
  if (typeof value === "string") return value;
  throw new TypeError(`a text was expected, and not ${JSON.stringify(value)}`);
}
