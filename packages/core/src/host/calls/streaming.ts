/**
 * Runs the generator of a streaming call: one item at a time, as its consumer takes them.
 *
 * It ends the generator early (its `finally` runs) when the call is cancelled, its consumer has
 * left, or its caller is gone. A stream whose consumer left has ended well, with as many items as
 * were sent, even if its code was interrupted in a wait.
 */
import type { Caller } from "../../caller/caller.ts";
import { clockMs } from "../../shared/clock.ts";
import { TaskCancelledError } from "../../shared/errors.ts";
import type { Execution } from "./execution.ts";
import { timers } from "../../shared/machine/timers.ts";

type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

/** A generator that never awaits gives other work of its thread a turn after this time, in ms. */
const sliceMs = 5;

/**
 * @throws TypeError for a value that is not iterable, and the errors that the generator throws
 * while it ends early
 */
export async function runStream(
  produced: unknown,
  execution: Execution,
  caller: Caller,
): Promise<void> {
  const iterator = iteratorOf(produced, execution.functionName);
  const { session, id } = execution;
  const label = execution.functionName;
  let index = 0;
  let since = clockMs();
  try {
    while (await execution.wanted(index)) {
      const { done, value } = await iterator.next();
      if (done === true) return execution.answer(index);
      const item: unknown = await value;
      if (!execution.isWanted) continue;
      const encoded = caller.values.codec.encode(item, `item ${index} of ${label}`, true);
      session.send({ kind: "item", id, index, value: encoded });
      index += 1;
      if (clockMs() - since > sliceMs) {
        session.flush();
        await new Promise<void>((resolve) => void timers.setImmediate(resolve));
        since = clockMs();
      }
    }
  } catch (error) {
    const isStopped = execution.isLeft && error instanceof TaskCancelledError;
    if (!isStopped) execution.answerFailure(error);
  }
  // Waits in the generator's `finally` must not be interrupted.
  if (execution.isLeft) execution.takeInterruption();
  await iterator.return?.();
  if (execution.isLeft) execution.answer(index);
}

function iteratorOf(produced: unknown, functionName: string): AnyIterator {
  if (typeof produced === "object" && produced !== null) {
    const iterable = produced as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
    const iterator = iterable[Symbol.asyncIterator]?.() ?? iterable[Symbol.iterator]?.();
    if (iterator !== undefined) return iterator;
  }
  throw new TypeError(
    `${functionName} was called with numReturns "streaming" and must return an iterable; it returned ${typeof produced}`,
  );
}
