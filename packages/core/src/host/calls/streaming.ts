/**
 * Runs the generator of a streaming call: one item at a time, as its consumer takes them.
 *
 * Ends the generator early (its `finally` runs) when the call was cancelled, its consumer has left the stream, or its caller is gone. A stream that was left has ended well,
 * with as many items as were sent, also where its code was stopped in what it waited for.
 */
import { setImmediate } from "node:timers/promises";
import type { Caller } from "../../caller/caller.ts";
import { TaskCancelledError } from "../../shared/errors.ts";
import type { Execution } from "./execution.ts";

type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

/** A generator that never awaits gives other work of its thread a turn after this time. */
const sliceMs = 5;

/** @throws TypeError for what is no iterable, and what the generator throws while it is ended early */
export async function runStream(
  produced: unknown,
  execution: Execution,
  caller: Caller,
): Promise<void> {
  const iterator = iteratorOf(produced, execution.functionName);
  const { session, id } = execution;
  const label = execution.functionName;
  let index = 0;
  let since = performance.now();
  try {
    while (await execution.wanted(index)) {
      const { done, value } = await iterator.next();
      if (done === true) return execution.answer(index);
      const item: unknown = await value;
      if (!execution.isWanted) continue;
      const encoded = caller.values.codec.encode(item, `item ${index} of ${label}`);
      session.send({ kind: "item", id, index, value: encoded });
      index += 1;
      if (performance.now() - since > sliceMs) {
        session.flush();
        await setImmediate();
        since = performance.now();
      }
    }
  } catch (error) {
    const isStopped = execution.isLeft && error instanceof TaskCancelledError;
    if (!isStopped) execution.answerFailure(error);
  }
  // What its end awaits is not to be stopped.
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
