/** Measures the calls of user functions, which return a result or a promise of it. */

import { isThenable } from "../values/records.ts";

/** Told when a function begins and ends. `Call` is what it knows a call by. */
export interface CallClock<Call = unknown> {
  /** A call begins. */
  enter(): Call;
  /** The call has returned, thrown or settled. */
  leave(call: Call): void;
  /** A call has returned a promise. */
  readonly onThenable?: (() => void) | undefined;
}

/** For calls that are not measured. */
export const noClock: CallClock = { enter: () => undefined, leave: () => undefined };

/**
 * Calls `work` on the clock.
 *
 * @param verify called when the result is there; the call fails with what it throws
 */
export function onClock<Call>(
  clock: CallClock<Call>,
  work: () => unknown,
  verify: () => void = () => undefined,
): unknown {
  const call = clock.enter();
  let result: unknown;
  let isWaiting: boolean;
  try {
    result = work();
    isWaiting = isThenable(result);
    if (!isWaiting) verify();
  } catch (error) {
    clock.leave(call);
    throw error;
  }
  if (!isWaiting) {
    clock.leave(call);
    return result;
  }
  clock.onThenable?.();
  // A thenable of another library may return nothing from its `then`.
  return Promise.resolve(result).then(
    (value) => {
      clock.leave(call);
      verify();
      return value;
    },
    (error: unknown) => {
      clock.leave(call);
      throw error;
    },
  );
}
