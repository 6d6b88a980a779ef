/**
 * Time limits on others that are fair to them: a thread that was held meanwhile, by what it computes, could not have heard of them, and listens first.
 */

export interface Deadline {
  /** It is not waited for any longer. Idempotent. */
  end(): void;
}

/** A timer that is so late was held up by this thread. */
const lateMs = 1000;
/** What the others get then, at most: time enough for a few turns of both sides. */
const graceMs = 5000;
/** What came while this thread was held for less is heard within that. */
const lookMs = 100;

/** Calls back once so much time has passed, in ms, unless it is ended first. Does not keep the process alive. */
export function deadline(ms: number, onOver: () => void): Deadline {
  let timer: NodeJS.Timeout;
  const wait = (waitMs: number, onTime: () => void): void => {
    const dueAt = performance.now() + waitMs;
    timer = setTimeout(() => {
      if (performance.now() > dueAt + lateMs) limit(Math.min(ms, graceMs));
      else onTime();
    }, waitMs).unref();
  };
  const limit = (limitMs: number): void => wait(limitMs, () => wait(lookMs, onOver));
  limit(ms);
  return { end: () => clearTimeout(timer) };
}
