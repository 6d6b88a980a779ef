/** Measures the calls of user functions, which return a result or a promise of it. */

import { isThenable } from "../values/records.ts";

/** Told when a function begins and ends, in the async context of its caller both times. */
export interface CallClock {
  /** A call begins. */
  enter(): void;
  /** The call has returned, thrown or settled. */
  leave(): void;
  /** A call has returned a promise. */
  readonly onThenable?: (() => void) | undefined;
}

/** For calls that are not measured. */
export const noClock: CallClock = { enter: () => undefined, leave: () => undefined };

/** Leaves the clock of a call that has failed. One for all calls: many wait at once. */
export type CallFailed = (error: unknown) => never;

export function failedOn(clock: CallClock): CallFailed {
  return (error) => {
    clock.leave();
    throw error;
  };
}

/**
 * Calls `work` on the clock. Returns what `ended` returns, or a promise of it.
 *
 * @param ended called with the result; it leaves the clock
 *
 * @param failed that of the clock
 */
export function onClock(
  clock: CallClock,
  work: () => unknown,
  ended: (result: unknown) => unknown,
  failed: CallFailed,
): unknown {
  clock.enter();
  let result: unknown;
  let isWaiting: boolean;
  try {
    result = work();
    isWaiting = isThenable(result);
  } catch (error) {
    return failed(error);
  }
  if (!isWaiting) return ended(result);
  clock.onThenable?.();
  // A thenable of another library may return nothing from its `then`.
  return Promise.resolve(result).then(ended, failed);
}

/** Wraps a function so that each of its calls is on the clock. */
export function timedBy<Args extends unknown[], Result>(
  clock: CallClock,
  work: (...args: Args) => Result | PromiseLike<Result>,
): (...args: Args) => Result | Promise<Result> {
  const failed = failedOn(clock);
  const ended = (result: unknown): unknown => {
    clock.leave();
    return result;
  };
  return (...args) =>
    onClock(clock, () => work(...args), ended, failed) as Result | Promise<Result>;
}
