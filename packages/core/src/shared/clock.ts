/** One clock for all threads and processes of a machine: its monotonic one. `performance.now()` counts from the start of each thread. */
const offsetMs: number = measuredOffsetMs();

/** Milliseconds since some moment that all share. */
export function clockMs(): number {
  return performance.now() + offsetMs;
}

/** A reading of this thread's `performance.now()` on that clock. */
export function sharedMs(nowMs: number): number {
  return nowMs + offsetMs;
}

/** The same moment as milliseconds since 1970: the same number each time. */
export function wallMs(ms: number): number {
  return ms - offsetMs + performance.timeOrigin;
}

/** A thread that is held up between the two readings finds too little: the most of several is right. */
function measuredOffsetMs(): number {
  let mostMs = -Infinity;
  for (let reading = 0; reading < 8; reading++) {
    mostMs = Math.max(mostMs, Number(process.hrtime.bigint()) / 1e6 - performance.now());
  }
  return mostMs;
}
