/**
 * The rest of a run that is over: a function may end while requests of it are still under way. The
 * signal of the run is aborted then, which ends those that have it. The function that would have
 * awaited them has ended, so that their rejections end no thread.
 */

import { partOf, textPartOf, withinError } from "../faults/error-tree.ts";
import type { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run.ts";

/**
 * The reason of each signal that is aborted when its function has ended. One error for all: a new
 * one takes 30 us, most of it for its stack (measured).
 */
const hasEnded: DOMException = new DOMException("the call has ended", "AbortError");

/**
 * Ends what the function of a run has left under way: it would be paid for, and no limit and no cap
 * would see it.
 */
export function endLeftovers(run: Run, tracker: Pick<RunTracker, "follow">): void {
  const { abort } = run;
  if (abort !== undefined && !run.isAborted) tracker.follow(run, () => abort.abort(hasEnded));
  run.isAborted = true;
}

/** Keeps the thread where a request that was aborted with its run rejects and nobody awaits it. */
export function forgiveLeftovers(tracker: Pick<RunTracker, "current">): void {
  const forgive = (rejection: unknown): void => {
    if (isLeftover(tracker.current, rejection)) return;
    // The host's listener ends the thread, and does so only where no other one is there.
    process.off("unhandledRejection", forgive);
    process.nextTick(() => process.prependListener("unhandledRejection", forgive));
  };
  process.prependListener("unhandledRejection", forgive);
}

/** Clients reject with the signal's reason, or with an abort error of their own. */
function isLeftover(run: Run | undefined, rejection: unknown): boolean {
  if (run?.isAborted !== true) return false;
  const reason: unknown = run.abort?.signal.reason;
  return withinError(rejection).some((one) => {
    const names = [textPartOf(one, "name"), textPartOf(partOf(one, "constructor"), "name")];
    return one === reason || names.some((name) => /Abort/.test(name));
  });
}
