/**
 * Every error that core throws or rejects with, by Ray's names without the prefix "Ray".
 *
 * Identified by `code`; the fields name the culprit. A death carries a {@link DeathCause}.
 * Knows nothing of the wire: how an error travels is `protocol/failure.ts`. Families that are long have files of their own in `errors/`.
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
export { RuntimeEnvSetupError } from "./errors/runtime-env.ts";
export { RaySystemError, SessionEndedError } from "./errors/session.ts";
export {
  ActorPlacementGroupRemoved,
  ActorUnschedulableError,
  NodeDiedError,
  TaskPlacementGroupRemoved,
  TaskUnschedulableError,
} from "./errors/placement.ts";

/** Why a host or an actor ended. `message` is one line for people. */
export interface DeathCause {
  readonly kind:
    | "killed"
    | "exited"
    /** A signal ended its process: `signal` says which. */
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
    /** Its node is being emptied: it was to end there, and to go on elsewhere. */
    | "drained"
    /** Its host could not be started with the settings that it asks for. */
    | "runtime-env-failed"
    | "channel-broken"
    | "shutdown"
    | "exit-actor"
    | "out-of-scope"
    | "owner-died"
    | "restart-intensity";
  readonly message: string;
  readonly exitCode?: number;
  /** The name of the signal that ended its process. */
  readonly signal?: string;
  /** What its process wrote to stderr last: at most 20 lines and 4 KB. */
  readonly stderr?: readonly string[];
  readonly error?: Error;
}

/** `get` ran into its `timeoutMs`. The work itself goes on. */
export class GetTimeoutError extends RayError {
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

/** Who an actor error is about. */
export interface ActorIdentity {
  readonly actorId: string;
  readonly className: string;
}

/** The actor is dead for good; the call did not finish. `deathCause` says why. */
export class ActorDiedError extends RayError {
  readonly actorId: string;
  readonly className: string;
  readonly deathCause: DeathCause;
  /** Its module, its class or its constructor failed, so the actor never lived. */
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

/** The actor lost its host and is being restarted; this call may or may not have run. `cause` is the ActorDiedError of that incarnation. */
export class ActorUnavailableError extends RayError {
  readonly actorId: string;
  readonly className: string;
  readonly deathCause: DeathCause;
  constructor(actor: ActorIdentity, deathCause: DeathCause) {
    super(
      "ACTOR_UNAVAILABLE",
      `actor ${actor.className} (${actor.actorId}) is restarting (${deathCause.message}); the call may or may not have run`,
      { cause: new ActorDiedError(actor, deathCause) },
    );
    this.actorId = actor.actorId;
    this.className = actor.className;
    this.deathCause = deathCause;
  }
}

/** The worker that ran a task died and its retries are used up. */
export class WorkerCrashedError extends RayError {
  readonly functionName: string;
  readonly deathCause: DeathCause;
  constructor(functionName: string, deathCause: DeathCause) {
    super(
      "WORKER_CRASHED",
      `the worker running task ${functionName} died: ${deathCause.message}`,
      deathCause.error === undefined ? undefined : { cause: deathCause.error },
    );
    this.functionName = functionName;
    this.deathCause = deathCause;
  }
}

/** What a call on a dead actor rejects with: the class tells what a caller could do about it. */
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

/** What a task rejects with when its worker is gone and it is not tried again. */
export function taskDeath(functionName: string, cause: DeathCause): RayError {
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
      return new WorkerCrashedError(functionName, cause);
  }
}

/** What an object fails with when its owner is gone. */
export function ownerDeath(
  objectId: string,
  { kind, message }: DeathCause,
): OwnerDiedError | SessionEndedError {
  return kind === "shutdown"
    ? new SessionEndedError(`object ${objectId} has ended with its session: ${message}`)
    : new OwnerDiedError(objectId, message);
}

/** The call or task was cancelled: before it ran, or its result was thrown away. */
export class TaskCancelledError extends RayError {
  readonly taskId: string;
  readonly taskName: string;
  constructor(taskId: string, taskName: string) {
    super("TASK_CANCELLED", `${taskName} (${taskId}) was cancelled`);
    this.taskId = taskId;
    this.taskName = taskName;
  }
}

/** As many calls as the actor's `maxPendingCalls` are unanswered; thrown by `.remote()`. */
export class PendingCallsLimitExceeded extends RayError {
  readonly actorId: string;
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

/** A streaming method was run again after its host died, and made fewer items than before. */
export class StreamingGeneratorReplayInconsistentError extends RaySystemError {
  constructor(name: string, received: number, count: number) {
    super(
      `${name} was run again and gave ${count} items, but ${received} had arrived before; a generator that is retried must give the same items`,
    );
  }
}

/** A name is taken in its namespace. */
export class ActorAlreadyExistsError extends RayError {
  readonly actorName: string;
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

/** No living actor has that name in that namespace. */
export class ActorNotFoundError extends RayError {
  readonly actorName: string;
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

/** A Queue had no room: `putNowait`, or a `put` whose time was over. */
export class Full extends RayError {
  readonly maxsize: number;
  constructor(why: string, maxsize: number) {
    super("QUEUE_FULL", `the queue is full (maxsize ${maxsize}): ${why}`);
    this.maxsize = maxsize;
  }
}

/** A Queue had no item, or not as many as asked: `getNowait`, or a `get` whose time was over. */
export class Empty extends RayError {
  constructor(why: string) {
    super("QUEUE_EMPTY", `the queue is empty: ${why}`);
  }
}

/** An ActorPool was asked for a result and nothing is submitted whose result was not taken. Ray: StopIteration. */
export class NoMoreResultsError extends RayError {
  constructor(where: string) {
    super("NO_MORE_RESULTS", `${where}: nothing is submitted that was not taken yet`);
  }
}

/** A host imported the module of a class or function, and its `remote()` call did not run. */
export class RemoteNotRegisteredError extends RayError {
  readonly remoteName: string;
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

/** A value cannot travel. `path` says where in the argument or result it is. */
export class NotEncodableError extends TypeError {
  readonly code: string = "NOT_ENCODABLE";
  readonly path: string;
  constructor(path: string, what: string, more?: ErrorOptions) {
    super(`${path} ${what}`, more);
    this.name = "NotEncodableError";
    this.path = path;
  }
}

/** An option has the wrong name, type or range. */
export class InvalidOptionError extends TypeError {
  readonly code: string = "INVALID_OPTION";
  readonly option: string;
  constructor(option: string, message: string, more?: ErrorOptions) {
    super(message, more);
    this.name = "InvalidOptionError";
    this.option = option;
  }
}

/** An actor has no such method; its fields and getters, and what every object has, are none. */
export class MethodNotFoundError extends TypeError {
  readonly code: string = "METHOD_NOT_FOUND";
  readonly className: string;
  readonly method: string;
  /** @param kind what it is instead, where that is known */
  constructor(
    className: string,
    method: string,
    methods: readonly string[],
    kind?: "field" | "getter",
  ) {
    const known = methods.join(", ") || "none";
    const why =
      kind === undefined ? "fields and getters are not methods" : `${method} is a ${kind}`;
    super(
      `${className} has no method "${method}"; it has: ${known} (${why}: a function can be called when it is a method, ${method}(...) { ... })`,
    );
    this.name = "MethodNotFoundError";
    this.className = className;
    this.method = method;
  }
}

/** An error arrived that cannot be made again here. Its own name, message and stack are kept as text; `cause` is what went wrong. */
export class UnserializableException extends RayError {
  readonly originalName: string;
  readonly originalMessage: string;
  constructor(original: { name: string; message: string; stack: string }, cause: unknown) {
    const { name, message, stack } = original;
    super("UNSERIALIZABLE_EXCEPTION", `${name}: ${message}`, { cause });
    this.originalName = name;
    this.originalMessage = message;
    Object.defineProperty(this, "stack", { value: stack, writable: true, configurable: true });
  }
}

/** Marks an error that user code threw on the other side of a call. */
const remoteSite: unique symbol = Symbol.for("rayling.remoteSite") as never;

/** Where a remote error was thrown. */
export interface RemoteSite {
  /** `Class.method` or the task's name. */
  readonly functionName: string;
  readonly hostId: string;
  readonly actorId?: string;
}

/**
 * What user code threw, seen from the caller. An error thrown as an Error object stays an instance of its own class AND is
 * `instanceof TaskError`; anything else that was thrown comes wrapped in one, as its `cause`.
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

/** Where a rejected call failed, or undefined for an error that did not come from user code over there. */
export function remoteSiteOf(error: unknown): RemoteSite | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  return (error as { [remoteSite]?: RemoteSite })[remoteSite];
}

function describe(thrown: unknown): string {
  if (typeof thrown === "string") return JSON.stringify(thrown);
  try {
    return `a non-error: ${String(thrown)}`;
  } catch {
    // A value whose conversion to text throws still needs a message.
    return `a non-error of type ${typeof thrown}`;
  }
}

/** The exhaustive end of a switch. */
export function assertNever(value: never): never {
  throw new RaySystemError(`unexpected ${JSON.stringify(value)}`);
}
