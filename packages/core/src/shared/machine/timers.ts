/**
 * Node's timers and clock, as they are when the runtime is loaded.
 *
 * Tests put others in their place (`vi.useFakeTimers`, `mock.timers` of node:test, jest). The
 * runtime keeps Node's own: a step that stands still with a test's clock, or a callback that the
 * fake clock drops with its end, would hang a call of the user's. So nothing else of core names the
 * globals. Tests of core itself move its time by replacing members of `timers`.
 */

/** The functions that wait, and the clock that deadlines are compared with. */
export interface Timers {
  setTimeout: typeof globalThis.setTimeout;
  clearTimeout: typeof globalThis.clearTimeout;
  setInterval: typeof globalThis.setInterval;
  clearInterval: typeof globalThis.clearInterval;
  setImmediate: typeof globalThis.setImmediate;
  clearImmediate: typeof globalThis.clearImmediate;
  queueMicrotask: typeof globalThis.queueMicrotask;
  nextTick: typeof process.nextTick;
  hrtime: typeof process.hrtime;
}

const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
const { setImmediate, clearImmediate, queueMicrotask } = globalThis;
const { hrtime } = process;
const nextTick: typeof process.nextTick = process.nextTick.bind(process);

export const timers: Timers = {
  setTimeout,
  clearTimeout,
  setInterval,
  clearInterval,
  setImmediate,
  clearImmediate,
  queueMicrotask,
  nextTick,
  hrtime,
};

export interface PauseOptions {
  /** Whether the pause keeps the process alive. */
  readonly ref?: boolean;
  /** Its abort ends the pause. */
  readonly signal?: AbortSignal;
}

/** Resolves after `ms` milliseconds, or at the abort of `signal`. */
export function pause(ms: number, { ref = true, signal }: PauseOptions = {}): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      timers.clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = timers.setTimeout(end, ms);
    if (!ref) timer.unref();
    signal?.addEventListener("abort", end, { once: true });
  });
}
