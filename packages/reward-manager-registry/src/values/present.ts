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

/** Returns the item of a list at a place. Throws TypeError where there is none. */
export function itemAt<Item>(list: ArrayLike<Item>, place: number): Item {
  const item = list[place];
  if (item === undefined) throw new TypeError(`${list.length} items have no place ${place}`);
  return item;
}

/** Returns an object with the key, or an empty one where the value is undefined. */
export function optional<Name extends string, Value>(
  name: Name,
  value: Value | undefined,
): Partial<Record<Name, Value>> {
  return (value === undefined ? {} : { [name]: value }) as Partial<Record<Name, Value>>;
}
