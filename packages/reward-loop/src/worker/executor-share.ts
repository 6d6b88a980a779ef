/**
 * How many samples of a worker each of its executors has: those at work, and some more that stand ready in its thread, so that a slot which gets free there waits for no message.
 *
 * None stand ready where a call needs more than a slot: a lease of its endpoint's limiter.
 */

import type { ExecutorSettings } from "../settings.ts";

export interface ExecutorShare {
  /** Samples at work at once. */
  readonly atOnce: number;
  /** And behind them. */
  readonly ready: number;
}

/** So much of what is at work at once. */
const READY_PER_SLOT = 0.25;

/** One for each executor. What is at work in all of them is `concurrency`; where none stands ready each takes as many as that, and the worker's slots bound them together. */
export function sharesOf({
  executors,
  concurrency,
  policy,
}: Pick<ExecutorSettings, "executors" | "concurrency" | "policy">): readonly ExecutorShare[] {
  const least = Math.floor(concurrency / executors);
  return Array.from({ length: executors }, (_, index) => {
    const atOnce = least + (index < concurrency % executors ? 1 : 0);
    const ready = Math.floor(READY_PER_SLOT * least);
    return policy.limits !== undefined || ready === 0
      ? { atOnce: concurrency, ready: 0 }
      : { atOnce, ready };
  });
}
