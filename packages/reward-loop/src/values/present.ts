/** Values that must be there. */

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
