/**
 * One clock for all threads and processes of a machine: its monotonic clock. A reading costs what
 * one of `performance.now()` does, which counts from the start of each thread, and for which Node
 * loads eleven modules in every thread: 0.7 ms.
 */

// The global of that name is replaced by fake timers.
import { performance } from "node:perf_hooks";
import { timers } from "./machine/timers.ts";

/** Returns milliseconds since a moment that all threads and processes of the machine share. */
export function clockMs(): number {
  return msOf(timers.hrtime());
}

/** Returns a reading of `process.hrtime` in milliseconds. */
export function msOf([seconds, nanoseconds]: readonly [number, number]): number {
  return seconds * 1e3 + nanoseconds / 1e6;
}

let offsetMs: number | undefined;

/**
 * Converts a moment of the shared clock to milliseconds since 1970. One moment gives one number,
 * every time.
 */
export function wallMs(ms: number): number {
  offsetMs ??= performance.timeOrigin - measuredOriginMs();
  return ms + offsetMs;
}

/**
 * Returns where `performance.now()` begins. A thread that is held up between the two readings
 * measures too little, so the largest of several readings is right.
 */
function measuredOriginMs(): number {
  let mostMs = -Infinity;
  for (let reading = 0; reading < 8; reading++) {
    mostMs = Math.max(mostMs, clockMs() - performance.now());
  }
  return mostMs;
}
