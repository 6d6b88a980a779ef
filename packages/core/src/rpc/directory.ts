/**
 * The second seam: questions of a runtime about the cluster. Names, actor states, workers for
 * tasks, channels to other hosts.
 *
 * The driver answers from memory (`runtime/directory.ts`), a host asks the driver over its control
 * port. Everything here is plain data, so that any transport carries it; `register` may answer at
 * once, which lets the driver throw at `.remote()`.
 */
import type { Encoded } from "../protocol/codec.ts";
import type { DeathCause } from "../shared/errors.ts";
import type { Channel } from "../transport/channel.ts";
import type { ClusterDirectory } from "./cluster-directory.ts";
import type { Demand } from "./resource-demand.ts";
import type { ForeignDirectory } from "./engine-actors.ts";
import type { RemoteKey } from "./remote-key.ts";
import type { ActorStateName, InsideDirectory } from "./state.ts";

/** Facts about an actor that every handle of it carries. */
export interface ActorInfo {
  readonly actorId: string;
  readonly className: string;
  readonly methods: readonly string[];
  /** Accessors, if it has any: they cannot be called. */
  readonly getters?: readonly string[];
  /** Options by method, where they differ from those of a plain method. */
  readonly methodOptions: Readonly<Record<string, MethodOptions>>;
  /** Calls that may run at the same time, of those in no group. */
  readonly maxConcurrency: number;
  readonly concurrencyGroups: Readonly<Record<string, number>>;
  /** Calls of one caller start in the order they were made. */
  readonly isOrdered: boolean;
  /** Unanswered calls of one caller; -1 without limit. */
  readonly maxPendingCalls: number;
  /** The runtime that created it. */
  readonly owner: string;
  /** It lives whether anybody holds it or not. */
  readonly isDetached: boolean;
  /** Retries of a call after the loss of the host; -1 without limit. */
  readonly maxTaskRetries: number;
  /** Retry what user code threw, too: all, or errors of these class names. */
  readonly retryExceptions: boolean | readonly string[];
}

/** How a method is called, unless the call says otherwise. */
export interface MethodOptions {
  readonly concurrencyGroup?: string;
  readonly numReturns?: number | "streaming";
  readonly generatorBackpressureNumObjects?: number;
  readonly detached?: boolean;
  readonly maxTaskRetries?: number;
  readonly retryExceptions?: boolean | readonly string[];
}

/** Returns the address of one life of an actor: calls to an earlier one never reach a later one. */
export function targetOf(actorId: string, incarnation: number): string {
  return incarnation === 0 ? actorId : `${actorId}~${incarnation}`;
}

/** Calls of all groups that may run at the same time. */
export function totalConcurrency(info: ActorInfo): number {
  return Object.values(info.concurrencyGroups).reduce((sum, one) => sum + one, info.maxConcurrency);
}

/** Limits of a worker thread's heap, as of `node:worker_threads`. */
export interface ResourceLimits {
  /**
   * Default, in a thread with `maxOldGenerationSizeMb`: 12. With much more, a thread that reaches
   * its limit can end the whole process.
   */
  readonly maxYoungGenerationSizeMb?: number | undefined;
  /** The heap of objects that live long, in MiB. A thread beyond it ends. */
  readonly maxOldGenerationSizeMb?: number | undefined;
  /** Memory for compiled code, in MiB. */
  readonly codeRangeSizeMb?: number | undefined;
  /** The stack, in MiB. Node's default: 4. */
  readonly stackSizeMb?: number | undefined;
}

/** More restarts than `restarts` within `withinMs` milliseconds, and the actor is dead. */
export interface RestartIntensity {
  /** How many restarts are allowed within the time. */
  readonly restarts: number;
  /** The time, in milliseconds. */
  readonly withinMs: number;
}

/**
 * Where an actor or task runs: in a thread of its own, in a process of its own, or in a thread that
 * it shares with others.
 */
export type Isolation = "thread" | "process" | "shared";

/** Where a task runs: in a thread or a process, which runs one task after the other. */
export type TaskIsolation = Exclude<Isolation, "shared">;

/**
 * Settings of the thread or process that an actor or task gets for itself. What its code starts
 * inherits them: variables are merged, and other parts that it names take the place of these.
 */
export interface RuntimeEnv {
  /**
   * Added to the environment of the process. In a text, `${NAME}` is the variable of that name: one
   * before it, or else the one that the host would have without these; empty if there is none.
   */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Limits of its heap; reaching one ends the actor with cause "out-of-memory". */
  readonly resourceLimits?: ResourceLimits | undefined;
  /**
   * Flags for Node, each one text (`--flag=value`). A process gets them beside those of this
   * process, a thread in place of them.
   */
  readonly execArgv?: readonly string[] | undefined;
  /**
   * Permissions of its code, and of what that starts, which may name fewer; everything is allowed
   * without them.
   */
  readonly permissions?: Permissions | undefined;
  /**
   * The code that is brought to other machines, where a host runs it in place of files at the same
   * path. The driver's own machine needs none of it.
   *
   * `true`: the modules that have called `remote()`, everything they import by a name that can be
   * read in them, files named by `new URL("./file", import.meta.url)`, and the npm packages among
   * it, each whole and with its own dependencies. A folder: everything in it, too (but `.git`,
   * `node_modules` and the names in its `.gitignore` files), and the `dependencies` of its
   * package.json; hosts there have it as their current directory. Rayling itself is not brought:
   * the machine's own is used. Default: nothing is brought, and modules are imported by their path.
   */
  readonly workingDir?: string | true | undefined;
  /**
   * Files that are not brought, in the language of .gitignore, relative to the folder, or to the
   * driver's current directory.
   */
  readonly excludes?: readonly string[] | undefined;
}

/**
 * Node's permission model for one host: a forbidden access throws ERR_ACCESS_DENIED there. A guard
 * against mistakes, not against hostile code. The runtime, and the package of the module that is
 * run, may always be read.
 */
export interface Permissions {
  /** Files and directories it may read; "*" for all. */
  readonly allowFsRead?: readonly string[] | undefined;
  /** Files and directories it may write to; "*" for all. */
  readonly allowFsWrite?: readonly string[] | undefined;
  /** Starting programs. Default: false. */
  readonly allowChildProcess?: boolean | undefined;
  /** Starting worker threads. Default: false. */
  readonly allowWorker?: boolean | undefined;
  /** Native code, which may do anything. */
  readonly allowAddons?: boolean | undefined;
  /** The network; before Node 25 it cannot be limited. */
  readonly allowNet?: boolean | undefined;
}

/** The life of an actor whose code creates another one: a restart begins the next. */
export interface Creator {
  readonly actorId: string;
  readonly incarnation: number;
}

export interface ActorSpec {
  readonly info: ActorInfo;
  readonly key: RemoteKey;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly getIfExists: boolean;
  /** Undefined for a task and a driver. */
  readonly creator: Creator | undefined;
  readonly maxRestarts: number;
  readonly restartIntensity: RestartIntensity | undefined;
  readonly demand: Demand;
  /** Undefined is the default of the session. */
  readonly isolation: Isolation | undefined;
  /** The shared thread, among those with names. */
  readonly threadName: string | undefined;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The settings of the code that creates it, below its own. Only the driver can say. */
  readonly inherited?: RuntimeEnv | undefined;
}

/** A request for a worker that fits a task. */
export interface WorkerRequest {
  /** Equal for equal requests. */
  readonly key: string;
  readonly demand: Demand;
  readonly isolation: TaskIsolation | undefined;
  readonly runtimeEnv: RuntimeEnv | undefined;
  /** The settings of the code that starts the task, below its own. Only the driver can say. */
  readonly inherited?: RuntimeEnv | undefined;
  readonly moduleUrl: string;
  /** Equal for all that one worker can serve: isolation and settings. */
  readonly kind: string;
}

/** Constructor arguments as they travel: no live objects inside. */
export interface StartArguments {
  readonly values: Encoded;
  readonly dependencies: readonly Encoded[];
}

export type Registration =
  | { readonly state: "new" }
  | { readonly state: "existing"; readonly info: ActorInfo }
  | { readonly state: "taken"; readonly name: string; readonly namespace: string };

export type ActorLocation =
  | {
      readonly state: "alive";
      /**
       * The target of calls: the actor's own id (a handle made with getIfExists may have been given
       * another), and which life of it.
       */
      readonly target: string;
      readonly hostId: string;
      readonly incarnation: number;
    }
  | { readonly state: "dead"; readonly cause: DeathCause };

/** An actor's fate after it lost its host. */
export interface ActorLoss {
  readonly restarting: boolean;
  readonly cause: DeathCause;
}

/** An actor's present activity, for people. */
export interface ActorStatus {
  readonly actorId: string;
  readonly className: string;
  readonly state: ActorStateName;
  /** Why it waits, or why it is dead. */
  readonly reason: string | undefined;
  readonly hostId: string | undefined;
  /** Calls that run and calls in its mailbox; undefined when its host does not report them. */
  readonly load: { readonly running: number; readonly queued: number } | undefined;
  /** Why its host does not answer, as far as that is known; undefined when it answers. */
  readonly silence: string | undefined;
}

/**
 * A worker for tasks with one demand, or why there will never be one; "withdrawn" answers a request
 * that was taken back.
 */
export type WorkerLease =
  | { readonly state: "leased"; readonly hostId: string }
  | { readonly state: "withdrawn" }
  | { readonly state: "refused"; readonly cause: DeathCause };

/** Where actors are, and what becomes of them. */
export interface ActorDirectory {
  register(spec: ActorSpec): Registration | Promise<Registration>;
  /** A signal among the arguments of the constructor of an actor is aborted. */
  abortSignal(actorId: string, index: number, reason: Encoded): void;
  /** Resolves when that actor is dead for good. */
  actorEnded(actorId: string): Promise<void>;
  /**
   * Gives the registered actor its constructor arguments. From now on it is placed, started and
   * restarted.
   */
  start(actorId: string, args: StartArguments): void;
  /** The creator could not make the arguments: the actor is dead before it lived. */
  abandon(actorId: string, cause: DeathCause): void;
  find(name: string, namespace: string | undefined): Promise<ActorInfo | undefined>;
  list(allNamespaces: boolean): Promise<{ readonly name: string; readonly namespace: string }[]>;
  /** Resolves when the actor lives or is dead for good. */
  locate(info: ActorInfo): Promise<ActorLocation>;
  /** Resolves when the directory knows of the loss of that incarnation. */
  loss(actorId: string, incarnation: number): Promise<ActorLoss>;
  kill(info: ActorInfo, noRestart: boolean): Promise<void>;
  /** Nobody holds a handle of it any more: it ends when what runs has ended. */
  outOfScope(actorId: string): void;
  /** Undefined for an actor that is not known. */
  actorStatus(actorId: string): Promise<ActorStatus | undefined>;
}

/** The workers of tasks. */
export interface WorkerDirectory {
  /** Why requests for those resources wait; undefined when none does. */
  whyWaiting(demand: Demand): Promise<string | undefined>;
  /** @param ticket names the request among those of this runtime */
  leaseWorker(request: WorkerRequest, ticket: number): Promise<WorkerLease>;
  /** Takes back a request that still waits for its place. */
  withdrawWorker(ticket: number): void;
  releaseWorker(hostId: string): void;
  /** Ends a leased worker in the middle of its task. */
  endWorker(hostId: string): Promise<void>;
  /** The task on this worker waits in `get` or `wait`: its CPU is free meanwhile. */
  setBlocked(hostId: string, blocked: boolean): void;
}

/** Who is where: the driver answers from memory, and a host asks the driver. */
export interface Directory
  extends ActorDirectory, WorkerDirectory, ClusterDirectory, ForeignDirectory, InsideDirectory {
  /** Resolves when that host is dead, or is not known any more. */
  death(hostId: string): Promise<DeathCause>;
  /** A direct way to another host. */
  connect(hostId: string): Promise<Channel>;
}
