/**
 * How long a run will go on, from what its latest steps took; and spans of time as people read
 * them.
 */

/** Steps that are looked at: enough for one validation every few, few enough to follow a change. */
const window = 10;

/** Steps before the first estimate. */
const leastSteps = 3;

export class TimeLeft {
  /**
   * When steps ended. The first step is left out of the average: what starts and compiles in it, or
   * a warm-up before it, never comes again.
   */
  #ends: readonly number[] = [];
  #finished = 0;

  finished(nowMs: number): void {
    this.#ends = [...this.#ends, nowMs].slice(-window - 1);
    this.#finished += 1;
  }

  /** Whether the last step has made the first estimate possible. */
  get isNew(): boolean {
    return this.#finished === leastSteps;
  }

  /**
   * Returns the remaining time, which counts down within a step; undefined before three steps have
   * ended.
   *
   * @param steps remaining steps, with the current one
   */
  leftMs(steps: number, nowMs: number): number | undefined {
    const [first] = this.#ends;
    const last = this.#ends.at(-1);
    if (first === undefined || last === undefined) return undefined;
    if (this.#ends.length < leastSteps) return undefined;
    const eachMs = (last - first) / (this.#ends.length - 1);
    return Math.max(0, steps * eachMs - Math.min(eachMs, nowMs - last));
  }
}

/** Formats an expected time in whole seconds: 4 s, 3m 20s, 2h 05m. */
export function leftText(ms: number): string {
  const wholeMs = 1000 * Math.ceil(ms / 1000);
  return wholeMs < 60_000 ? `${wholeMs / 1000} s` : spanText(wholeMs);
}

/** Formats a measured time, always in seconds below a minute: 0.25 s, 42.1 s, 3m 20s, 2h 05m. */
export function spanText(ms: number): string {
  if (ms < 9995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${twoDigits(seconds % 60)}s`;
  const rounded = Math.round(seconds / 60);
  return `${Math.floor(rounded / 60)}h ${twoDigits(rounded % 60)}m`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, "0");
}
