/**
 * Every error that core throws or rejects with. Names are Ray's without the prefix "Ray".
 *
 * An error is identified by its `code`; its fields name the culprit. A death carries a
 * {@link DeathCause}. This file does not know how an error travels: protocol/failure.ts does. Long
 * families have files of their own in `errors/`.
 */
import { RayError } from "./errors/base.ts";
import {
  ActorPlacementGroupRemoved,
  ActorUnschedulableError,
  NodeDiedError,
  TaskPlacementGroupRemoved,
  TaskUnschedulableError,
} from "./errors/placement.ts";
import { OwnerDiedError } from "./errors/objects.ts";
import { RuntimeEnvSetupError } from "./errors/runtime-env.ts";
import { RaySystemError, SessionEndedError } from "./errors/session.ts";
import { show } from "./text/show.ts";

export { RayError } from "./errors/base.ts";
export {
  ObjectFetchTimedOutError,
  ObjectLostError,
  ObjectMutatedError,
  ObjectReconstructionFailedError,
  ObjectStoreFullError,
  OutOfDiskError,
  OwnerDiedError,
  ReferenceCountingError,
} from "./errors/objects.ts";
export type { ReconstructionFailure } from "./errors/objects.ts";
export {
  AuthenticationError,
  CertificateError,
  ProtocolVersionError,
} from "./errors/connection.ts";
export { DeadlockError } from "./errors/deadlock.ts";
export { PythonError, PythonTaskError } from "./errors/python.ts";
export { RuntimeEnvSetupError } from "./errors/runtime-env.ts";
export { RaySystemError, SessionEndedError } from "./errors/session.ts";
export {
  ActorPlacementGroupRemoved,
  ActorUnschedulableError,
  NodeDiedError,
  TaskPlacementGroupRemoved,
  TaskUnschedulableError,
} from "./errors/placement.ts";

/** The reason why a host or an actor ended. `message` is one line for people. */
export interface DeathCause {
  /** The kind of end, for programs. */
  readonly kind:
    | "killed"
    | "exited"
    /** A signal ended the process: `signal` names it. */
    | "signal"
    | "uncaught-exception"
    | "out-of-memory"
    | "load-failed"
    | "init-failed"
    | "not-registered"
    | "unreachable"
    | "unschedulable"
    | "placement-group-removed"
    | "node-died"
    /** The node is being drained: the actor ends there and goes on elsewhere. */
    | "drained"
    /** The host cannot start with the settings that it asks for. */
    | "runtime-env-failed"
    | "channel-broken"
    | "shutdown"
    | "exit-actor"
    | "out-of-scope"
    | "owner-died"
    | "restart-intensity";
  /** Why it ended, in words. */
  readonly message: string;
  /** The exit code of the process, if it exited. */
  readonly exitCode?: number;
  /** The name of the signal that ended the process. */
  readonly signal?: string;
  /** The last lines that the process wrote to stderr: at most 20 lines and 4 KB. */
  readonly stderr?: readonly string[];
  /** The error that ended it, if one did. */
  readonly error?: Error;
}

/**
 * A `get` did not have its values within `timeoutMs` milliseconds. The work itself goes on. Code
 * "GET_TIMEOUT".
 */
export class GetTimeoutError extends RayError {
  /** The time that has passed, in milliseconds. */
  readonly timeoutMs: number;
  constructor(timeoutMs: number, waitingFor: readonly string[]) {
    const shown = waitingFor.slice(0, 3).join(", ") + (waitingFor.length > 3 ? ", …" : "");
    super(
      "GET_TIMEOUT",
      `get timed out after ${timeoutMs} ms; ${waitingFor.length} not ready: ${shown}`,
    );
    this.timeoutMs = timeoutMs;
  }
}

/** The actor that an error is about. */
export interface ActorIdentity {
  readonly actorId: string;
  readonly className: string;
}

/**
 * The actor is dead for good, and the call did not finish. `deathCause` says why. Code
 * "ACTOR_DIED".
 */
export class ActorDiedError extends RayError {
  /** The actor's id. */
  readonly actorId: string;
  /** The name of the actor's class. */
  readonly className: string;
  /** Why it ended. */
  readonly deathCause: DeathCause;
  /** Whether the actor never lived, because its module, class or constructor failed. */
  readonly actorInitFailed: boolean;
  constructor(actor: ActorIdentity, deathCause: DeathCause, options?: ErrorOptions) {
    super(
      "ACTOR_DIED",
      `actor ${actor.className} (${actor.actorId}) died: ${deathCause.message}`,
      options ?? (deathCause.error === undefined ? undefined : { cause: deathCause.error }),
    );
    this.actorId = actor.actorId;
    this.className = actor.className;
    this.deathCause = deathCause;
    this.actorInitFailed = ["init-failed", "load-failed", "not-registered"].includes(
      deathCause.kind,
    );
  }
}

/**
 * The actor lost its host and is being restarted, or cannot be reached from here. The call may have
 * run, unless the message says that it was not sent. `cause` is the ActorDiedError of the lost
 * incarnation, where one was lost. Code "ACTOR_UNAVAILABLE".
 */
export class ActorUnavailableError extends RayError {
  /** The actor's id. */
  readonly actorId: string;
  /** The name of the actor's class. */
  readonly className: string;
  /** Why it ended, or cannot be reached. */
  readonly deathCause: DeathCause;
  /** @param isSent whether any attempt of the call may have arrived */
  constructor(actor: ActorIdentity, deathCause: DeathCause, isSent: boolean = true) {
    const { kind, message, error } = deathCause;
    const isAway = isUnreached(kind);
    const state = isAway ? "cannot be reached from here" : "is restarting";
    const call = isSent ? "the call may or may not have run" : "the call was not sent";
    const cause = isAway ? error : new ActorDiedError(actor, deathCause);
    super(
      "ACTOR_UNAVAILABLE",
      `actor ${actor.className} (${actor.actorId}) ${state} (${message}); ${call}`,
      cause === undefined ? undefined : { cause },
    );
    this.actorId = actor.actorId;
    this.className = actor.className;
    this.deathCause = deathCause;
  }
}

/** Whether a task was sent to a worker: at the last attempt, only before that, or never. */
type TaskAttempts = "sent" | "sent-before" | "unsent";

/**
 * The worker that ran a task died or cannot be reached and its retries are used up, or no worker
 * could be started. The task may have run, unless the message says that it was not sent. Code
 * "WORKER_CRASHED".
 */
export class WorkerCrashedError extends RayError {
  /** The name of the task's function. */
  readonly functionName: string;
  /** Why it ended. */
  readonly deathCause: DeathCause;
  /** @param attempts whether the task was sent to a worker */
  constructor(functionName: string, deathCause: DeathCause, attempts: TaskAttempts = "sent") {
    super(
      "WORKER_CRASHED",
      workerLoss(functionName, deathCause, attempts),
      deathCause.error === undefined ? undefined : { cause: deathCause.error },
    );
    this.functionName = functionName;
    this.deathCause = deathCause;
  }
}

/** Returns what became of a task and its worker, as far as that is known. */
function workerLoss(
  functionName: string,
  { kind, message }: DeathCause,
  attempts: TaskAttempts,
): string {
  switch (attempts) {
    case "unsent":
      return `task ${functionName} has no worker: ${message}; the task was not sent`;
    case "sent-before":
      return `task ${functionName} has no worker for another attempt: ${message}; an earlier attempt may or may not have run`;
    case "sent":
      return isUnreached(kind)
        ? `the worker of task ${functionName} cannot be reached from here: ${message}; the task may or may not have run`
        : `the worker running task ${functionName} died: ${message}`;
    default:
      return assertNever(attempts);
  }
}

/** Whether nobody here knows of an end: what cannot be reached may well live. */
function isUnreached(kind: DeathCause["kind"]): boolean {
  return kind === "unreachable" || kind === "channel-broken";
}

/**
 * Returns the error that a call on a dead actor rejects with. Its class depends on what a caller
 * can do about the death.
 */
export function actorDeath(actor: ActorIdentity, cause: DeathCause): RayError {
  const { actorId, className } = actor;
  switch (cause.kind) {
    case "unschedulable":
      return new ActorUnschedulableError(actorId, className, cause.message);
    case "placement-group-removed":
      return new ActorPlacementGroupRemoved(actorId, className, cause.message);
    case "runtime-env-failed":
      return new RuntimeEnvSetupError(`actor ${className} (${actorId})`, cause.message);
    case "shutdown":
      return new SessionEndedError(
        `actor ${className} (${actorId}) has ended with its session: ${cause.message}`,
      );
    default:
      return new ActorDiedError(actor, cause);
  }
}

/**
 * Returns the error that a task rejects with when its worker is gone and no retry is left, or when
 * no worker is to be had.
 */
export function taskDeath(
  functionName: string,
  cause: DeathCause,
  attempts?: TaskAttempts,
): RayError {
  switch (cause.kind) {
    case "unschedulable":
      return new TaskUnschedulableError(functionName, cause.message);
    case "placement-group-removed":
      return new TaskPlacementGroupRemoved(functionName, cause.message);
    case "runtime-env-failed":
      return new RuntimeEnvSetupError(`task ${functionName}`, cause.message);
    case "node-died":
      return new NodeDiedError(functionName, cause.message);
    case "shutdown":
      return new SessionEndedError(
        `task ${functionName} has ended with its session: ${cause.message}`,
      );
    default:
      return new WorkerCrashedError(functionName, cause, attempts);
  }
}

/** Returns the error that an object fails with when its owner is gone. */
export function ownerDeath(
  objectId: string,
  { kind, message }: DeathCause,
): OwnerDiedError | SessionEndedError {
  return kind === "shutdown"
    ? new SessionEndedError(`object ${objectId} has ended with its session: ${message}`)
    : new OwnerDiedError(objectId, message);
}

/**
 * The call or task was cancelled, either before it ran or with its result discarded. Code
 * "TASK_CANCELLED".
 */
export class TaskCancelledError extends RayError {
  /** The call or task, as the state API gives it. */
  readonly taskId: string;
  /** The call or task, by its name. */
  readonly taskName: string;
  constructor(taskId: string, taskName: string) {
    super("TASK_CANCELLED", `${taskName} (${taskId}) was cancelled`);
    this.taskId = taskId;
    this.taskName = taskName;
  }
}

/**
 * `.remote()` throws this error when the actor already has `maxPendingCalls` unanswered calls. Code
 * "PENDING_CALLS_LIMIT_EXCEEDED".
 */
export class PendingCallsLimitExceeded extends RayError {
  /** The actor's id. */
  readonly actorId: string;
  /** The limit that was reached. */
  readonly maxPendingCalls: number;
  constructor(actor: ActorIdentity, maxPendingCalls: number) {
    super(
      "PENDING_CALLS_LIMIT_EXCEEDED",
      `actor ${actor.className} (${actor.actorId}) has ${maxPendingCalls} calls of this caller pending, which is its maxPendingCalls; wait for some of them`,
    );
    this.actorId = actor.actorId;
    this.maxPendingCalls = maxPendingCalls;
  }
}

/**
 * A streaming method ran again, as a retry, and yielded fewer items than before. Code "SYSTEM".
 */
export class StreamingGeneratorReplayInconsistentError extends RaySystemError {
  constructor(name: string, received: number, count: number) {
    super(
      `${name} was run again and gave ${count} items, but ${received} had arrived before; a generator that is retried must give the same items`,
    );
  }
}

/** The name of a new actor is taken in its namespace. Code "ACTOR_ALREADY_EXISTS". */
export class ActorAlreadyExistsError extends RayError {
  /** The name that was asked for. */
  readonly actorName: string;
  /** The namespace of that name. */
  readonly namespace: string;
  constructor(actorName: string, namespace: string) {
    super(
      "ACTOR_ALREADY_EXISTS",
      `an actor named "${actorName}" exists in namespace "${namespace}"`,
    );
    this.actorName = actorName;
    this.namespace = namespace;
  }
}

/** No living actor has that name in that namespace. Code "ACTOR_NOT_FOUND". */
export class ActorNotFoundError extends RayError {
  /** The name that was asked for. */
  readonly actorName: string;
  /** The namespace of that name. */
  readonly namespace: string;
  constructor(actorName: string, namespace: string) {
    super(
      "ACTOR_NOT_FOUND",
      `no actor named "${actorName}" in namespace "${namespace}"; it was never created, or it died`,
    );
    this.actorName = actorName;
    this.namespace = namespace;
  }
}

/** A Queue has no room: `putNowait` found it full, or a `put` timed out. Code "QUEUE_FULL". */
export class Full extends RayError {
  /** How many items the queue holds. */
  readonly maxsize: number;
  constructor(why: string, maxsize: number) {
    super("QUEUE_FULL", `the queue is full (maxsize ${maxsize}): ${why}`);
    this.maxsize = maxsize;
  }
}

/** A Queue has too few items: `getNowait` found none, or a `get` timed out. Code "QUEUE_EMPTY". */
export class Empty extends RayError {
  constructor(why: string) {
    super("QUEUE_EMPTY", `the queue is empty: ${why}`);
  }
}

/**
 * An ActorPool was asked for a result, but every submitted result is taken. Ray raises
 * StopIteration. Code "NO_MORE_RESULTS".
 */
export class NoMoreResultsError extends RayError {
  constructor(where: string) {
    super("NO_MORE_RESULTS", `${where}: every submitted result is taken`);
  }
}

/**
 * A host imported the module of a class or function, but the module did not run its `remote()`
 * call. Code "REMOTE_NOT_REGISTERED".
 */
export class RemoteNotRegisteredError extends RayError {
  /** The class or function. */
  readonly remoteName: string;
  /** The module that was imported to find it. */
  readonly moduleUrl: string;
  constructor(remoteName: string, moduleUrl: string, why: string, options?: ErrorOptions) {
    super(
      "REMOTE_NOT_REGISTERED",
      `${remoteName} cannot be found by a worker: ${why} (module ${moduleUrl})`,
      options,
    );
    this.remoteName = remoteName;
    this.moduleUrl = moduleUrl;
  }
}

/**
 * A value cannot travel. `path` says where in the argument or result it is. Code "NOT_ENCODABLE".
 */
export class NotEncodableError extends TypeError {
  /** Stays the same when the text changes: compare this. */
  readonly code: string = "NOT_ENCODABLE";
  /** Where in the value it stands, as `args[0].name`. */
  readonly path: string;
  constructor(path: string, what: string, more?: ErrorOptions) {
    super(`${path} ${what}`, more);
    this.name = "NotEncodableError";
    this.path = path;
  }
}

/** An option has an unknown name, a wrong type or a value out of range. Code "INVALID_OPTION". */
export class InvalidOptionError extends TypeError {
  /** Stays the same when the text changes: compare this. */
  readonly code: string = "INVALID_OPTION";
  /** The option that is wrong. */
  readonly option: string;
  constructor(option: string, message: string, more?: ErrorOptions) {
    super(message, more);
    this.name = "InvalidOptionError";
    this.option = option;
  }
}

/**
 * An actor has no such method. Fields, getters and the methods of Object are not methods of an
 * actor. Code "METHOD_NOT_FOUND".
 */
export class MethodNotFoundError extends TypeError {
  /** Stays the same when the text changes: compare this. */
  readonly code: string = "METHOD_NOT_FOUND";
  /** The name of the actor's class. */
  readonly className: string;
  /** The method that was called. */
  readonly method: string;
  /** @param kind what the name is instead, when that is known */
  constructor(
    className: string,
    method: string,
    methods: readonly string[],
    kind?: "field" | "getter" | "elsewhere",
  ) {
    const known = methods.join(", ") || "none";
    super(
      kind === "elsewhere"
        ? `${className} has a method "${method}", and its object has not; that has: ${known} (the constructor returned another object, or the module is another one where the actor is)`
        : `${className} has no method "${method}"; it has: ${known} (${kind === undefined ? "fields and getters are not methods" : `${method} is a ${kind}`}: a function can be called when it is a method, ${method}(...) { ... })`,
    );
    this.name = "MethodNotFoundError";
    this.className = className;
    this.method = method;
  }
}

/**
 * An error arrived that cannot be rebuilt here. It keeps its original name, message and stack as
 * text; `cause` says why the rebuild failed. Code "UNSERIALIZABLE_EXCEPTION".
 */
export class UnserializableException extends RayError {
  /** The name of the error that could not be read. */
  readonly originalName: string;
  /** Its message. */
  readonly originalMessage: string;
  constructor(original: { name: string; message: string; stack: string }, cause: unknown) {
    const { name, message, stack } = original;
    super("UNSERIALIZABLE_EXCEPTION", `${name}: ${message}`, { cause });
    this.originalName = name;
    this.originalMessage = message;
    Object.defineProperty(this, "stack", { value: stack, writable: true, configurable: true });
  }
}

/** Marks an error that user code threw on the remote side of a call. */
const remoteSite: unique symbol = Symbol.for("rayling.remoteSite") as never;

/** The place where a remote error was thrown. */
export interface RemoteSite {
  /** `Class.method` or the task's name. */
  readonly functionName: string;
  /** The runtime, as the state API gives it. */
  readonly hostId: string;
  /** The actor; undefined for a task. */
  readonly actorId?: string;
}

/**
 * An error that user code threw, seen from the caller. An Error object stays an instance of its own
 * class AND is `instanceof TaskError`. Any other thrown value comes wrapped in a TaskError, as its
 * `cause`.
 */
export class TaskError extends RayError {
  constructor(functionName: string, thrown: unknown) {
    super("TASK_ERROR", `${functionName} threw ${describe(thrown)}`, { cause: thrown });
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === "object" && value !== null && remoteSite in value;
  }
}

export function markRemote(error: Error, site: RemoteSite): void {
  Object.defineProperty(error, remoteSite, { value: site, enumerable: false, configurable: true });
}

/**
 * Returns the place where a rejected call failed, or undefined when the error did not come from
 * remote user code.
 */
export function remoteSiteOf(error: unknown): RemoteSite | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  return (error as { [remoteSite]?: RemoteSite })[remoteSite];
}

function describe(thrown: unknown): string {
  return typeof thrown === "string" ? JSON.stringify(thrown) : `a non-error: ${show(thrown)}`;
}

/** Ends an exhaustive switch: a value that reaches it throws. */
export function assertNever(value: never): never {
  throw new RaySystemError(`unexpected ${JSON.stringify(value)}`);
}
