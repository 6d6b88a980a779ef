/**
 * Runs the generator of a call: for a stream one item at a time, as its consumer takes them; for
 * several values until it has given them.
 *
 * A stream ends its generator early (its `finally` runs) when the call is cancelled, its consumer
 * has left, or its caller is gone. A stream whose consumer left has ended well, with as many items
 * as were sent, even if its code was interrupted in a wait.
 */
import type { Caller } from "../../caller/caller.ts";
import { clockMs } from "../../shared/clock.ts";
import { RaySystemError, TaskCancelledError } from "../../shared/errors.ts";
import type { Encoded } from "../../protocol/codec.ts";
import type { Route } from "../../protocol/message.ts";
import { warn } from "../../shared/text/warning.ts";
import { type Execution, SeveralValues } from "./execution.ts";
import { timers } from "../../shared/machine/timers.ts";

type AnyIterator = Iterator<unknown> | AsyncIterator<unknown>;

/**
 * After a step of this time, in ms, items leave as they are made, and so do the first ones: the
 * next step may take long, too.
 */
const slowStepMs = 1;
const promptItems = 8;

/** A generator that never awaits gives other work of its thread a turn after this time, in ms. */
const sliceMs = 5;

/** Whether a generator is to be run for the answer of a call that returned `produced`. */
export function givesItems({ shape }: Route, produced: unknown): boolean {
  const returns = shape?.returns;
  if (returns === undefined || returns === 0) return false;
  return returns === "streaming" || isGenerator(produced);
}

/**
 * Answers a call whose numReturns says that it gives several values, or a stream of them.
 *
 * @throws TypeError for a stream's value that is not iterable, and the errors that its generator
 * throws while it ends early
 */
export async function answerItems(
  produced: unknown,
  execution: Execution,
  caller: Caller,
): Promise<void> {
  const { returns } = execution.route.shape ?? {};
  if (returns === "streaming") return runStream(produced, execution, caller);
  if (returns === undefined || !givesItems(execution.route, produced)) {
    return execution.answer(produced);
  }
  const generator = iteratorOf(produced, execution.functionName);
  await runSeveral(generator, returns, execution, caller);
}

/**
 * Runs the generator of a call that gives `count` values. As in Ray, one that fails or ends sooner
 * leaves its values to the first refs, and its failure to the rest; one that goes on has said all
 * that is wanted.
 */
async function runSeveral(
  generator: AnyIterator,
  count: number,
  execution: Execution,
  caller: Caller,
): Promise<void> {
  const { session, id, functionName } = execution;
  const label = `result of ${functionName}`;
  const values: Encoded[] = [];
  let since = clockMs();
  try {
    for (;;) {
      if (execution.isCancelled() || !session.isOpen) {
        execution.answerFailure(new RaySystemError(`nobody waits for the ${label}`));
        break;
      }
      const { done, value } = await generator.next();
      const item: unknown = await value;
      if (done === true) {
        if (values.length === count) break;
        throw new RangeError(
          `${label} must be a list of ${count} values, as its numReturns says; its generator gave ${values.length}`,
        );
      }
      if (values.length === count) {
        warn(
          `${functionName} gives more than ${count} values, as its numReturns says: the surplus is dropped`,
        );
        break;
      }
      values.push(caller.values.codec.encode(item, `${label}[${values.length}]`));
      since = await turnAfter(since, execution);
    }
  } catch (error) {
    if (values.length === count) {
      warn(`${functionName} threw after its ${count} values: ${String(error)}`);
    } else {
      for (const [index, value] of values.entries()) {
        session.send({ kind: "item", id, index, value });
      }
      execution.answerFailure(error);
    }
  }
  execution.answer(new SeveralValues(values));
  try {
    await generator.return?.();
  } catch (error) {
    // Its values are on their way.
    warn(`${functionName} threw while its generator was ended: ${String(error)}`);
  }
}

async function runStream(produced: unknown, execution: Execution, caller: Caller): Promise<void> {
  const iterator = iteratorOf(produced, execution.functionName);
  const { session, id } = execution;
  const label = execution.functionName;
  let index = 0;
  let since = clockMs();
  let last = since;
  let prompt = promptItems;
  try {
    while (await execution.wanted(index)) {
      const { done, value } = await iterator.next();
      if (done === true) return execution.answer(index);
      const item: unknown = await value;
      if (!execution.isWanted) continue;
      const encoded = caller.values.codec.encode(item, `item ${index} of ${label}`, true);
      session.send({ kind: "item", id, index, value: encoded });
      index += 1;
      const now = clockMs();
      if (now - last > slowStepMs) prompt = promptItems;
      last = now;
      if (prompt > 0) {
        prompt -= 1;
        session.flush();
      }
      since = await turnAfter(since, execution);
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

/** Gives other work a turn if this one has lasted. Returns when the turn after it began. */
async function turnAfter(since: number, { session }: Execution): Promise<number> {
  if (clockMs() - since <= sliceMs) return since;
  session.flush();
  await new Promise<void>((resolve) => void timers.setImmediate(resolve));
  return clockMs();
}

/** Whether a value gives its items one by one. A list has its own, and a set. */
function isGenerator(produced: unknown): boolean {
  if (typeof produced !== "object" || produced === null) return false;
  const has = (method: PropertyKey): boolean => typeof Reflect.get(produced, method) === "function";
  return has(Symbol.asyncIterator) || (has(Symbol.iterator) && has("next"));
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
