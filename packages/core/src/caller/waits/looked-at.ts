/**
 * Lists of refs that `wait` has looked at. A loop that waits for one ref after the other gives back
 * the list that was left each time. Its refs were looked at before, and to compare the list with a
 * copy costs less than to look at each ref again (measured: 1,000 waits for 1,000 ready refs take
 * 1.7 ms in place of 2.7).
 */

/** Its items from there on are a list that was looked at. */
export interface LookedAt {
  readonly items: unknown[];
  from: number;
}

/** A shorter list is looked at again. */
const leastItems = 16;

/** Returns the list that it is given, so that a class on top of it adds its field to that one. */
function SameList(list: readonly unknown[]): object {
  return list;
}

/**
 * A private field of a list that `wait` returned. Nobody else sees it, and no copy of the list has
 * it. A WeakMap in its place took 8 % of the driver's time in a loop of waits, and made collections
 * longer.
 */
class Mark extends (SameList as unknown as new (list: readonly unknown[]) => object) {
  readonly #lookedAt: LookedAt;

  constructor(list: readonly unknown[], known: LookedAt) {
    super(list);
    this.#lookedAt = known;
  }

  static of(list: readonly unknown[]): LookedAt | undefined {
    // A caller may have given anything.
    return Array.isArray(list) && #lookedAt in list ? list.#lookedAt : undefined;
  }
}

/** Returns undefined for a list that `wait` has not returned, or that was changed since. */
export function lookedAt(list: readonly unknown[]): LookedAt | undefined {
  const known = Mark.of(list);
  if (known === undefined) return undefined;
  const { items, from } = known;
  if (items.length - from !== list.length) return undefined;
  for (let index = 0; index < list.length; index++) {
    if (list[index] !== items[from + index]) return undefined;
  }
  return known;
}

/**
 * Notes a list that `wait` returns: what is left of the list that it was given.
 *
 * @param known as `lookedAt` found it for that list, in this turn
 * @param taken places in the list of the items that are not left, in order
 */
export function noteLeft(
  known: LookedAt | undefined,
  taken: readonly number[],
  left: readonly unknown[],
): void {
  if (left.length < leastItems) return;
  if (known === undefined) return void new Mark(left, { items: [...left], from: 0 });
  const { items } = known;
  for (let count = 0; count < taken.length; count++) {
    // The items before it move up by one: it is mostly among the first.
    const { from } = known;
    const place = from + (taken[count] ?? 0) - count;
    for (let at = place; at > from; at--) items[at] = items[at - 1];
    items[from] = undefined;
    known.from = from + 1;
  }
  void new Mark(left, known);
}
