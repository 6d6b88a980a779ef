/**
 * One clock for all threads and processes of a machine: its monotonic clock. `performance.now()` is
 * not that clock, because it counts from the start of each thread.
 */
const offsetMs: number = measuredOffsetMs();

/** Returns milliseconds since a moment that all threads and processes of the machine share. */
export function clockMs(): number {
  return performance.now() + offsetMs;
}

/** Converts a reading of this thread's `performance.now()` to the shared clock. */
export function sharedMs(nowMs: number): number {
  return nowMs + offsetMs;
}

/**
 * Converts a moment of the shared clock to milliseconds since 1970. One moment gives one number,
 * every time.
 */
export function wallMs(ms: number): number {
  return ms - offsetMs + performance.timeOrigin;
}

/**
 * A thread that is held up between the two readings measures too little, so the largest of several
 * readings is right.
 */
function measuredOffsetMs(): number {
  let mostMs = -Infinity;
  for (let reading = 0; reading < 8; reading++) {
    mostMs = Math.max(mostMs, Number(process.hrtime.bigint()) / 1e6 - performance.now());
  }
  return mostMs;
}
