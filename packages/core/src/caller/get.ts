/**
 * `get` and `wait` over entries: who is ready, in what order, until when.
 *
 * `get` of a list fails with the first failure and does not wait for the rest. `wait` never fails for a failed object: it is ready.
 */
import type { FailureData } from "../protocol/failure.ts";
import { DeadlockError, GetTimeoutError } from "../shared/errors.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import type { Caller } from "./caller.ts";
import type { Waitable } from "./waitable.ts";

/** How long a wait may take, what ends it before, from when on it is told of (undefined: as all others), and who hears that it waits for itself. */
export interface Patience {
  readonly timeoutMs?: number | undefined;
  readonly stuckWarningMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** It waits for itself, and rejects; the code may never look at that, because it awaits something else. */
  readonly onDeadlock?: () => void;
}

export function getValues(
  caller: Caller,
  entries: readonly ObjectEntry[],
  { timeoutMs, stuckWarningMs, signal, onDeadlock }: Patience,
): Promise<unknown[]> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(reasonOf(signal));
    let unsettled = entries.length;
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    let endWaiting: (() => void) | undefined;
    const end = (): void => {
      over = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      endWaiting?.();
      if (unsettled > 0) for (const entry of entries) entry.unwatch(onSettled);
    };
    const onAbort = (): void => {
      end();
      reject(reasonOf(signal));
    };
    const fail = (failure: FailureData): void => {
      try {
        reject(caller.codec.reviveFailure(failure));
      } catch (unreadable) {
        reject(unreadable);
      }
    };
    const finish = (): void => {
      if (over || caller.bringingHere(entries, finish)) return;
      end();
      // One that was away may have been lost on its way back.
      const failed = entries.find(({ outcome }) => outcome?.ok === false)?.outcome;
      if (failed?.ok === false) return fail(failed.failure);
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
        fail(entry.outcome.failure);
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
      if (reason instanceof DeadlockError) onDeadlock?.();
      reject(reason);
      for (const entry of entries) entry.overlook();
    };
    const isEndless = timeoutMs === undefined && signal === undefined;
    endWaiting = caller.waiting.begin("get", entries, { stuckWarningMs, stop, isEndless });
    signal?.addEventListener("abort", onAbort);
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

/** Resolves when so many of them are ready, or after `timeoutMs`. Rejects when the task that waits is cancelled. */
export function waitReady(
  caller: Caller,
  waitables: readonly Waitable[],
  numReturns: number,
  { timeoutMs, stuckWarningMs, signal, onDeadlock }: Patience,
): Promise<void> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let timer: NodeJS.Timeout | undefined;
    let over = false;
    let endWaiting: (() => void) | undefined;
    const end = (): void => {
      over = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
      endWaiting?.();
      for (const one of waitables) if (!one.isReady) one.unwatch(onReady);
    };
    const finish = (): void => {
      end();
      resolve();
    };
    const onAbort = (): void => {
      end();
      reject(reasonOf(signal));
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
      if (reason instanceof DeadlockError) onDeadlock?.();
      reject(reason);
    };
    const isEndless = timeoutMs === undefined && signal === undefined;
    const how = { stuckWarningMs, stop, isEndless, numReturns };
    endWaiting = caller.waiting.begin("wait", waitables, how);
    signal?.addEventListener("abort", onAbort);
    if (timeoutMs !== undefined) timer = setTimeout(finish, timerMs(timeoutMs));
  });
}

/** What a signal was aborted with, as everything says it that takes signals: an AbortError if nothing else was given. */
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
  const mutation = caller.memory.mutationOf(entry);
  if (mutation !== undefined) throw mutation;
  return caller.codec.decode(outcome.value);
}
