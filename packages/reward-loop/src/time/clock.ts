/** The clock of limits, which tests replace by a virtual one. */
export interface Clock {
  /** Milliseconds that only grow. */
  now(): number;
  /** Calls back once, after so many milliseconds, unless the result is called before. */
  after(ms: number, run: () => void): () => void;
}

/** The machine's. Its timers keep no process alive: who waits does. */
export const realClock: Clock = {
  now: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, timerMs(ms));
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The longest delay of a timer; a longer one would fire at once. */
export const longestTimer: number = 2 ** 31 - 1;

/** Returns the whole milliseconds that a timer takes for so many. */
export function timerMs(ms: number): number {
  return Math.min(Math.max(0, Math.ceil(ms)), longestTimer);
}
