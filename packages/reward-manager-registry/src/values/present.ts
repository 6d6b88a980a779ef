/** Values that must be there. */

/** Returns the item of a list at a place. Throws TypeError where there is none. */
export function itemAt<Item>(list: ArrayLike<Item>, place: number): Item {
  const item = list[place];
  if (item === undefined) throw new TypeError(`${list.length} items have no place ${place}`);
  return item;
}
