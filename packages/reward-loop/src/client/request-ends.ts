/**
 * The signal that ends one request: its caller's, its deadline, or both.
 *
 * It holds a timer and a listener, and only until it is released. `AbortSignal.any` with
 * `AbortSignal.timeout` would hold both for each request until its deadline, days after its answer.
 */

import { timerMs } from "../time/clock.ts";

export interface RequestEnds {
  /** Aborted with the caller's reason, or with a TimeoutError. Undefined: nothing ends it. */
  readonly signal: AbortSignal | undefined;
  /** Whether its deadline has ended it. */
  isLate(): boolean;
  /** Called when the request is over, whatever came of it. Idempotent. */
  release(): void;
}

/** @param timeoutMs a number; undefined: no deadline */
export function requestEnds(
  given: AbortSignal | undefined,
  timeoutMs: number | undefined,
): RequestEnds {
  if (timeoutMs === undefined) {
    return { signal: given, isLate: () => false, release: () => undefined };
  }
  const ends = new AbortController();
  let isLate = false;
  const giveUp = (): void => ends.abort(given?.reason);
  // As that of AbortSignal.timeout, it holds no process.
  const timer = setTimeout(() => {
    isLate = !ends.signal.aborted;
    ends.abort(new DOMException("The operation was aborted due to timeout", "TimeoutError"));
  }, timerMs(timeoutMs)).unref();
  if (given?.aborted === true) giveUp();
  else given?.addEventListener("abort", giveUp, { once: true });
  return {
    signal: ends.signal,
    isLate: () => isLate,
    release: () => {
      clearTimeout(timer);
      given?.removeEventListener("abort", giveUp);
    },
  };
}
