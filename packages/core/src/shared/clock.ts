/**
 * One clock for all threads and processes of a machine: its monotonic clock. It costs what
 * `performance.now()` costs, which counts from the start of each thread, and whose module takes 0.7
 * ms to load in every thread.
 */

/** Returns milliseconds since a moment that all threads and processes of the machine share. */
export function clockMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
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
