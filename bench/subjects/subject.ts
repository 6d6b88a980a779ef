/**
 * Every subject of the call benchmark can do this: add two numbers on one other thread, one at a
 * time or many in flight.
 *
 * A subject answers with results, not with promises that something was sent: the benchmark checks
 * the sums. Nothing here knows how it is timed.
 */

export interface Subject {
  /**
   * The floor is what the machine allows, the peers are libraries that do the same; a blocking one
   * has no timers or I/O in its worker while that waits for a call.
   */
  readonly kind: "floor" | "own" | "peer" | "blocking peer";
  readonly name: string;
  addOne(a: number, b: number): Promise<number>;
  /**
   * Puts add(base, 0) ... add(base, count - 1) in flight at once; resolves with the sum of all
   * results.
   */
  addMany(base: number, count: number): Promise<number>;
  /** Ends its thread. */
  close(): Promise<void>;
}

/** `addMany` of anything that gives one promise per call. */
export async function sumOfPromises(
  count: number,
  call: (index: number) => Promise<number>,
): Promise<number> {
  const pending: Promise<number>[] = [];
  for (let index = 0; index < count; index++) pending.push(call(index));
  return sum(await Promise.all(pending));
}

export function sum(values: readonly number[]): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** Returns what `addMany(base, count)` must answer. */
export function expectedSum(base: number, count: number): number {
  return count * base + (count * (count - 1)) / 2;
}

/** The argument of peers whose tasks take one value. */
export interface Addends {
  readonly a: number;
  readonly b: number;
}
