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
import type { Waitable } from "./waitable.ts";

/**
 * How long a wait may take, what ends it early, and when it is warned of; undefined: as by default.
 */
export interface Patience {
  readonly timeoutMs?: number | undefined;
  readonly stuckWarningMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The promise that the asking code was given. */
export interface Asked {
  answer?: Promise<unknown>;
}

/**
 * A get that waits for itself is no failure of a method that awaits something else and never looks
 * at the get.
 */
function overlookDeadlock({ answer }: Asked, reason: Error): void {
  if (reason instanceof DeadlockError) answer?.catch(() => undefined);
}

export function getValues(
  caller: Caller,
  entries: readonly ObjectEntry[],
  { timeoutMs, stuckWarningMs, signal }: Patience,
  asked: Asked = {},
): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(reasonOf(signal));
    let unsettled = entries.length;
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    let endWaiting: (() => void) | undefined;
    let onAbort: (() => void) | undefined;
    const end = (): void => {
      over = true;
      if (timer !== undefined) clearTimeout(timer);
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      endWaiting?.();
      if (unsettled > 0) for (const entry of entries) entry.unwatch(onSettled);
    };
    const finish = (): void => {
      if (over || caller.objects.bringingHere(entries, finish)) return;
      end();
      // One that was away may have been lost on its way back.
      const failed = entries.find(({ outcome }) => outcome?.ok === false)?.outcome;
      if (failed?.ok === false) return reject(errorOf(caller, failed.failure));
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
        end();
        reject(errorOf(caller, entry.outcome.failure));
        // Who asked for all of them hears of the first failure only.
        for (const other of entries) other.overlook();
      } else if (unsettled === 0) {
        finish();
      }
    };
    if (unsettled === 0) return finish();
    for (const entry of entries) {
      entry.watch(onSettled);
      if (over) return;
    }
    const stop = (reason: Error): void => {
      end();
      overlookDeadlock(asked, reason);
      reject(reason);
      for (const entry of entries) entry.overlook();
    };
    const isEndless = timeoutMs === undefined && signal === undefined;
    endWaiting = caller.waiting.begin("get", entries, { stuckWarningMs, stop, isEndless });
    if (signal !== undefined) {
      onAbort = () => {
        end();
        reject(reasonOf(signal));
      };
      signal.addEventListener("abort", onAbort);
    }
    if (timeoutMs !== undefined) {
      timer = setTimeout(() => {
        end();
        const late = entries.filter(
          ({ outcome }) => outcome === undefined || (outcome.ok && outcome.away !== undefined),
        );
        reject(
          new GetTimeoutError(
            timeoutMs,
            late.map((entry) => entry.label),
          ),
        );
      }, timerMs(timeoutMs));
    }
  });
}

/**
 * Resolves when this many are ready, or after `timeoutMs`. Rejects when the task that waits is
 * cancelled.
 */
export function waitReady(
  caller: Caller,
  waitables: readonly Waitable[],
  numReturns: number,
  { timeoutMs, stuckWarningMs, signal }: Patience,
  asked: Asked = {},
): Promise<void> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    let endWaiting: (() => void) | undefined;
    let onAbort: (() => void) | undefined;
    const end = (): void => {
      over = true;
      if (timer !== undefined) clearTimeout(timer);
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      endWaiting?.();
      for (const one of waitables) if (!one.isReady) one.unwatch(onReady);
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
    const stop = (reason: Error): void => {
      end();
      overlookDeadlock(asked, reason);
      reject(reason);
    };
    const isEndless = timeoutMs === undefined && signal === undefined;
    const how = { stuckWarningMs, stop, isEndless, numReturns };
    endWaiting = caller.waiting.begin("wait", waitables, how);
    if (signal !== undefined) {
      onAbort = () => {
        end();
        reject(reasonOf(signal));
      };
      signal.addEventListener("abort", onAbort);
    }
    if (timeoutMs !== undefined) timer = setTimeout(finish, timerMs(timeoutMs));
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
  if (outcome?.ok !== true || outcome.value === undefined) return undefined;
  const mutation = caller.objects.memory.mutationOf(entry);
  if (mutation !== undefined) throw mutation;
  return caller.values.codec.decode(outcome.value);
}
