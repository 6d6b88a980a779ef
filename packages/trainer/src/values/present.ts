/** Values that must be there, and keys of an object that may lack. */

/**
 * Returns the value. Throws TypeError where it is undefined.
 *
 * @param what the value that is missing, for the error: "sample 3"
 */
export function present<Value>(value: Value | undefined, what: string): Value {
  if (value === undefined) throw new TypeError(`${what} is missing`);
  return value;
}

/** Returns an object with the key, or an empty one where the value is undefined. */
export function optional<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Partial<Record<Name, Value>> {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>;
}
