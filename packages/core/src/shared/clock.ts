/** One clock for all threads and processes of a machine: its monotonic one. `performance.now()` counts from the start of each thread. */
const offsetMs: number = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Milliseconds since some moment that all share. */
export function clockMs(): number {
  return performance.now() + offsetMs;
}

/** The same moment as milliseconds since 1970: the same number each time. */
export function wallMs(ms: number): number {
  return ms - offsetMs + performance.timeOrigin;
}
