/**
 * Ends calls and tasks early.
 */
import { ObjectRefGenerator, streamOf } from "../caller/stream.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { checkOptions, flag } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import { live, liveEntryOf, ObjectRef } from "../store/object-ref.ts";
import { useCaller } from "./session.ts";

/** Options of `cancel`. */
export interface CancelOptions {
  /** Whether to end the worker of a running task. Not for calls to actors. Default false. */
  readonly force?: boolean | undefined;
  /** Whether to cancel its own calls, too. Default true. */
  readonly recursive?: boolean | undefined;
}

/**
 * Cancels the call or task that makes an object, or a stream: its refs reject with
 * TaskCancelledError, and it is not retried.
 *
 * A call that has not started never runs. A running call sees it: `getRuntimeContext().signal` is
 * aborted and `isCanceled()` is true. An async call rejects at once; a synchronous one runs to its
 * end, and its result is discarded. A finished call keeps its value.
 *
 * @throws InvalidOptionError for anything but a ref or a generator, and for `force` on a call to an
 * actor; SessionEndedError for a ref of an ended session
 */
export function cancel(target: ObjectRef | ObjectRefGenerator, options: CancelOptions = {}): void {
  checkOptions("cancel", options, { force: flag, recursive: flag });
  const { force = false, recursive = true } = options;
  const entry = entryToCancel(target);
  useCaller().calls.cancel(entry, recursive, force);
}

function entryToCancel(target: unknown): ReturnType<typeof live> {
  if (target instanceof ObjectRefGenerator) return live(streamOf(target).completion);
  if (target instanceof ObjectRef) return liveEntryOf(target);
  throw new InvalidOptionError(
    "target",
    `cancel takes an ObjectRef or an ObjectRefGenerator, not ${show(target)}`,
  );
}
