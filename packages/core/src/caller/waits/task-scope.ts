/**
 * Which call or task the running code belongs to.
 *
 * Code that goes on after its method has returned is known by its async context; a synchronous
 * method by a plain variable, which costs next to nothing.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { Assignment } from "../../rpc/resource-demand.ts";
import type { ActorInfo } from "../../rpc/directory.ts";
import type { DeathCause, TaskCancelledError } from "../../shared/errors.ts";
import { threadSlot } from "../../shared/thread-slot.ts";

/** A call or task as the code that runs in it sees it. */
export interface TaskScope {
  readonly taskId: string;
  /** The call's own name, or `Class.method`. */
  readonly taskName: string;
  readonly functionName: string;
  /** Undefined for a task that no actor runs. */
  readonly actor: ActorScope | undefined;
  readonly assignment: Assignment;
  /** Aborted when the call is cancelled. */
  readonly signal: AbortSignal;
  /** For how much it waits: `Waiting` counts. */
  waitCount: number;
  /** Looks now, even while this thread was not free to hear of it. */
  isCancelled(): boolean;
  /**
   * Its code waits for the runtime: `stop` is called when it is cancelled. Returns how to end that
   * wait.
   */
  waits(stop: Stop): () => void;
  /** Calls `leave` when its caller is gone, and nobody can receive its answer. */
  whenCallerLost(leave: () => void): void;
  /** A cancellation that came while its code waited for nothing: given once, to the next wait. */
  takeInterruption(): TaskCancelledError | undefined;
  /** Ends its actor when what runs has ended; this call has no value then. */
  exitActor(message: string): void;
}

/** Ends a wait early: its task was cancelled, or the session has ended. */
export type Stop = (reason: Error) => void;

/** The actor that runs a call. */
export interface ActorScope {
  readonly info: ActorInfo;
  readonly name: string | undefined;
  readonly namespace: string;
  /** How often it was restarted. */
  readonly incarnation: number;
  /** Ends it when what runs has ended; no call starts any more. */
  exit(cause: DeathCause): void;
}

/**
 * A call that runs right now and is over when its function returns; its scope is made when somebody
 * asks.
 */
export interface SyncTask {
  /** The call, for those who look; nothing is made for it. */
  readonly running: RunningCall | undefined;
  scope(): TaskScope;
}

/** A call that holds the thread. */
export interface RunningCall {
  readonly taskId: string;
  readonly name: string;
  readonly actorId: string | undefined;
  /** As of clockMs(). */
  readonly sinceMs: number;
}

interface CurrentTask {
  sync: SyncTask | undefined;
  /** The scope that `enterScope` has entered, until the turn leaves it. */
  entered: TaskScope | undefined;
  readonly storage: AsyncLocalStorage<TaskScope>;
}

const current: CurrentTask = threadSlot("task", () => ({
  sync: undefined,
  entered: undefined,
  storage: new AsyncLocalStorage<TaskScope>(),
}));

/** The call or task that the calling code belongs to, if it is one. */
export function currentTask(): TaskScope | undefined {
  return current.sync === undefined ? current.storage.getStore() : current.sync.scope();
}

/** Returns whose the running code is, without making a scope for it. */
export function runningTask(): {
  readonly sync: SyncTask | undefined;
  readonly scope: TaskScope | undefined;
} {
  return { sync: current.sync, scope: current.storage.getStore() };
}

/**
 * Call it before a wait, also where nothing has to be waited for.
 *
 * @throws TaskCancelledError when the task was cancelled while it waited for nothing
 */
export function checkInterrupted(): void {
  // The method that holds the thread was not cancelled, or has heard of it.
  if (current.sync !== undefined) return;
  const interruption = current.storage.getStore()?.takeInterruption();
  if (interruption !== undefined) throw interruption;
}

/** Runs `work` so that all code it starts, now or later, belongs to that task. */
export function asTask<T>(scope: TaskScope, work: () => T): T {
  return current.storage.run(scope, work);
}

/**
 * Everything that this turn does and starts belongs to that scope, until `leaveScope`. Returns
 * false if it did already.
 */
export function enterScope(scope: TaskScope): boolean {
  // Looked up in a variable, which is free: each call asks.
  if (current.entered === scope) return false;
  current.entered = scope;
  current.storage.enterWith(scope);
  return true;
}

export function leaveScope(): void {
  current.entered = undefined;
  current.storage.enterWith(undefined as never);
}

/**
 * Runs `work` so that what it starts belongs to no task: it is the runtime's own, and must not hold
 * a task in memory.
 */
export function outsideTasks<T>(work: () => T): T {
  return current.storage.exit(work);
}

/**
 * For a function that is over when it returns: work that it starts for later does not belong to the
 * task. Much cheaper than `asTask`.
 */
export function setSyncTask(task: SyncTask | undefined): void {
  current.sync = task;
}
