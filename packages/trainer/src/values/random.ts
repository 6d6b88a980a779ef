/**
 * Random numbers as functions of a few whole numbers. A draw depends on its own place alone, never
 * on earlier draws, and there is no state to keep.
 */

/** Returns a number from 0 to below 1. Equal keys give equal numbers. */
export function uniformOf(...keys: readonly number[]): number {
  let hash = 0;
  for (const key of keys) {
    hash = mixed(hash + 0x9e3779b9 + (key | 0));
    // The bits of the key beyond the 32nd.
    hash = mixed(hash + 0x85ebca6b + Math.floor(key / 2 ** 32));
  }
  return hash / 2 ** 32;
}

/**
 * 0 to count - 1 in another order (Fisher and Yates).
 *
 * @param draw for each place, from 0 to below 1
 */
export function shuffled(count: number, draw: (place: number) => number): number[] {
  const order: number[] = [];
  for (let place = 0; place < count; place++) order.push(place);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(draw(last) * (last + 1));
    const moved = order[other] ?? NaN;
    order[other] = order[last] ?? NaN;
    order[last] = moved;
  }
  return order;
}

/**
 * The first `wanted` of 0 to count - 1 in another order, without the rest of it.
 *
 * @param draw for each place, from 0 to below 1
 */
export function firstShuffled(
  count: number,
  wanted: number,
  draw: (place: number) => number,
): number[] {
  const moved = new Map<number, number>();
  return Array.from({ length: Math.min(wanted, count) }, (_, place) => {
    const other = place + Math.floor(draw(place) * (count - place));
    const first = moved.get(other) ?? other;
    moved.set(other, moved.get(place) ?? place);
    return first;
  });
}

/** Normally distributed, around 0 with deviation 1 (Box and Muller). */
export function normalOf(...keys: readonly number[]): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniformOf(...keys, 0)));
  return radius * Math.cos(2 * Math.PI * uniformOf(...keys, 1));
}

/** Murmur3's last step: each bit of what comes in turns half of what goes out. */
function mixed(value: number): number {
  let hash = value | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
