/**
 * `get` and `wait` over entries: which are ready, in what order, until when.
 *
 * `get` of a list fails with the first failure and does not wait for the rest. `wait` never fails
 * for a failed object: it is ready.
 */
import type { FailureData } from "../../protocol/failure.ts";
import { DeadlockError, GetTimeoutError } from "../../shared/errors.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import type { Caller } from "../caller.ts";
import type { Wait } from "./stuck-watch.ts";
import type { Waitable } from "./waitable.ts";
import { timers } from "../../shared/machine/timers.ts";

/**
 * A get that waits for itself is no failure of a method that awaits something else and never looks
 * at the get.
 */
function overlookDeadlock({ answer }: Wait, reason: Error): void {
  if (reason instanceof DeadlockError) answer?.catch(() => undefined);
}

/** Begins a wait with its time limit and its signal. Returns how to end it; call that once. */
function beginWait(
  caller: Caller,
  wait: Wait,
  onAbort: (reason: Error) => void,
  onTimeout: () => void,
): () => void {
  const { timeoutMs, signal } = wait;
  wait.isEndless = timeoutMs === undefined && signal === undefined;
  caller.waiting.begin(wait);
  const timer =
    timeoutMs === undefined ? undefined : timers.setTimeout(onTimeout, timerMs(timeoutMs));
  const abort = signal === undefined ? undefined : (): void => onAbort(reasonOf(signal));
  if (abort !== undefined) signal?.addEventListener("abort", abort);
  return () => {
    if (timer !== undefined) timers.clearTimeout(timer);
    if (abort !== undefined) signal?.removeEventListener("abort", abort);
    caller.waiting.ended(wait);
  };
}

/**
 * Returns the values of all entries where they are in memory, and nothing can end the wait for
 * them; undefined: `getValues` has more to do.
 *
 * @throws what `getValues` rejects with, for a value that cannot be read
 */
export function valuesHere(
  caller: Caller,
  entries: readonly ObjectEntry[],
  { signal }: Wait,
): unknown[] | undefined {
  if (signal !== undefined) return undefined;
  for (const { outcome } of entries) if (outcome?.value === undefined) return undefined;
  return entries.map((entry) => valueOf(caller, entry));
}

/** Resolves with the values of all entries. Rejects with the first failure. */
export function getValues(
  caller: Caller,
  entries: readonly ObjectEntry[],
  wait: Wait,
): Promise<unknown[]> {
  const { timeoutMs = 0, signal } = wait;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(reasonOf(signal));
    let unsettled = entries.length;
    let over = false;
    let endWaiting: (() => void) | undefined;
    const end = (): void => {
      over = true;
      endWaiting?.();
      if (unsettled > 0) for (const entry of entries) entry.unwatch(onSettled);
    };
    const fail = (reason: unknown): void => {
      end();
      reject(reason);
    };
    const finish = (): void => {
      if (over || caller.objects.bringingHere(entries, finish)) return;
      end();
      try {
        resolve(entries.map((entry) => valueOf(caller, entry)));
      } catch (error) {
        reject(error);
      }
    };
    const onSettled = (entry: ObjectEntry): void => {
      if (over) return;
      unsettled -= 1;
      if (entry.outcome?.ok === false) {
        fail(errorOf(caller, entry.outcome.failure));
        // The code that asked for all of them hears of the first failure only.
        for (const other of entries) other.overlook();
      } else if (unsettled === 0) finish();
    };
    if (unsettled === 0) return finish();
    for (const entry of entries) {
      entry.watch(onSettled);
      if (over) return;
    }
    wait.waitables = entries;
    wait.stop = (reason) => {
      overlookDeadlock(wait, reason);
      fail(reason);
      for (const entry of entries) entry.overlook();
    };
    endWaiting = beginWait(caller, wait, fail, () => fail(lateError(entries, timeoutMs)));
  });
}

function lateError(entries: readonly ObjectEntry[], timeoutMs: number): GetTimeoutError {
  const late = entries.filter(
    ({ outcome }) => outcome === undefined || (outcome.ok && outcome.away !== undefined),
  );
  return new GetTimeoutError(
    timeoutMs,
    late.map((entry) => entry.label),
  );
}

/**
 * Resolves when `numReturns` are ready, or after `timeoutMs`. Rejects when the task that waits is
 * cancelled.
 */
export function waitReady(
  caller: Caller,
  waitables: readonly Waitable[],
  numReturns: number,
  wait: Wait,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let over = false;
    let endWaiting: (() => void) | undefined;
    const end = (): void => {
      over = true;
      endWaiting?.();
      for (const one of waitables) if (!one.isReady) one.unwatch(onReady);
    };
    const fail = (reason: Error): void => {
      end();
      reject(reason);
    };
    const finish = (): void => {
      end();
      resolve();
    };
    const onReady = (): void => {
      count += 1;
      if (!over && count >= numReturns) finish();
    };
    for (const one of waitables) {
      one.watch(onReady);
      if (over) return;
    }
    wait.waitables = waitables;
    wait.numReturns = numReturns;
    wait.stop = (reason) => {
      overlookDeadlock(wait, reason);
      fail(reason);
    };
    endWaiting = beginWait(caller, wait, fail, finish);
  });
}

/** The error of a failure, or why it cannot be read. */
function errorOf(caller: Caller, failure: FailureData): unknown {
  try {
    return caller.values.codec.reviveFailure(failure);
  } catch (unreadable) {
    return unreadable;
  }
}

/**
 * The reason that a signal was aborted with, as every API that takes signals gives it: an
 * AbortError if nothing else was given.
 */
function reasonOf(signal: AbortSignal | undefined): Error {
  return signal?.reason as Error;
}

/** setTimeout takes a longer time for no time at all. */
function timerMs(timeoutMs: number): number {
  return Math.min(timeoutMs, 2 ** 31 - 1);
}

function valueOf(caller: Caller, entry: ObjectEntry): unknown {
  const outcome = entry.outcome;
  // A value that was away may have been lost on its way back.
  if (outcome?.ok === false) throw errorOf(caller, outcome.failure);
  if (outcome?.value === undefined) return undefined;
  const mutation = caller.objects.memory.mutationOf(entry);
  if (mutation !== undefined) throw mutation;
  return caller.values.codec.decode(outcome.value);
}
