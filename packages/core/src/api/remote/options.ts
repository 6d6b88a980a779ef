/** The options of actor classes, of their methods, and of tasks, with their defaults. */
import type { CallOptions, CallOptionsOfMethod } from "../../caller/call-options.ts";
import type {
  Isolation,
  RestartIntensity,
  RuntimeEnv,
  TaskIsolation,
} from "../../rpc/directory.ts";
import type { SchedulingOptions } from "../scheduling/scheduling.ts";

/** Options of an actor class. */
export interface ActorOptions extends SchedulingOptions {
  /** The name by which `getActor` finds it; unique in its namespace. Default: none. */
  readonly name?: string | undefined;
  /** The namespace of its name. Default: the namespace of the session. */
  readonly namespace?: string | undefined;
  /** Whether to return the existing actor of that name, if there is one. Default false. */
  readonly getIfExists?: boolean | undefined;
  /** How often it restarts after it lost its host; -1 without limit. Default 0. */
  readonly maxRestarts?: number | undefined;
  /**
   * The most restarts within a time, whatever `maxRestarts` says; one more ends the actor for good.
   * Default: no such limit.
   */
  readonly restartIntensity?: RestartIntensity | undefined;
  /**
   * "detached" and "session" live until they are killed or the session ends; on a Ray cluster, a
   * "detached" one is an actor of the cluster and outlives the session. Default "non_detached": it
   * ends when no handle of it is left, or its creator dies. Handles of `getActor` do not count.
   */
  readonly lifetime?: "detached" | "session" | "non_detached" | undefined;
  /** How often a call is retried after such a loss; -1 without limit. Default 0: at most once. */
  readonly maxTaskRetries?: number | undefined;
  /**
   * Whether a call is retried when its method throws: always, or for these error classes (or names
   * of them). Default false.
   */
  readonly retryExceptions?: CallOptions["retryExceptions"] | undefined;
  /**
   * The most calls outside of groups that run at a time. Default: 1000 if the class has an async
   * method, else 1.
   */
  readonly maxConcurrency?: number | undefined;
  /** Groups of calls with a limit and an order of their own, by name: `{ io: 2, compute: 4 }`. */
  readonly concurrencyGroups?: Readonly<Record<string, number>> | undefined;
  /** Options of methods, by name. */
  readonly methods?: Readonly<Record<string, CallOptionsOfMethod>> | undefined;
  /**
   * Whether later calls may pass a call whose argument is not ready. Default: true for async actors
   * and those with a maxConcurrency above 1, else false.
   */
  readonly allowOutOfOrderExecution?: boolean | undefined;
  /**
   * The most unanswered calls of one caller; one more throws PendingCallsLimitExceeded. Default -1:
   * no limit.
   */
  readonly maxPendingCalls?: number | undefined;
  /**
   * The isolation of the actor: a "thread" of its own; a "process" of its own, for native code,
   * hard limits and code that may crash; or "shared": a thread with other actors, for many that
   * mostly wait. Default: the `isolation` of `init`.
   */
  readonly isolation?: Isolation | undefined;
  /**
   * With isolation "shared": it shares a thread only with actors of its node that have the same
   * threadName, so that others cannot block or end it. The thread ends with the last of them.
   * Default: the threads of all shared actors without one.
   */
  readonly threadName?: string | undefined;
  /** Settings of its thread or process, over those of the code that creates it and of `init`. */
  readonly runtimeEnv?: RuntimeEnv | undefined;
}

/** Options of a task. */
export interface TaskOptions extends SchedulingOptions {
  /** A name for messages to people. Default: the function's name. */
  readonly name?: string | undefined;
  /** The isolation of the task: a "thread" or a "process". Default: the `isolation` of `init`. */
  readonly isolation?: TaskIsolation | undefined;
  /**
   * Settings of its worker, over those of the code that starts it and of `init`; tasks with equal
   * settings share workers.
   */
  readonly runtimeEnv?: RuntimeEnv | undefined;
  /** How often it is retried when its worker dies. Default 3. */
  readonly maxRetries?: number | undefined;
  /**
   * Whether it is retried when its function throws: always, or for these error classes (or names of
   * them). Default false.
   */
  readonly retryExceptions?: CallOptions["retryExceptions"] | undefined;
  /** The number of values that the function returns, or "streaming", as for a method. */
  readonly numReturns?: CallOptions["numReturns"] | undefined;
  /** A generator pauses while this many of its items are not taken. Default: no limit. */
  readonly generatorBackpressureNumObjects?: number | undefined;
  /** Whether a generator runs to its end when nobody takes its items any more. Default false. */
  readonly detached?: CallOptions["detached"] | undefined;
}

/** The defaults of an actor class, as the comments on its options say. */
export const actorDefaults: Defaults<
  ActorOptions,
  "getIfExists" | "maxRestarts" | "maxTaskRetries" | "retryExceptions" | "maxPendingCalls"
> = {
  getIfExists: false,
  maxRestarts: 0,
  maxTaskRetries: 0,
  retryExceptions: false,
  maxPendingCalls: -1,
};

/** The default of maxConcurrency where the class has an async method. */
export const asyncConcurrency = 1000;

/** The defaults of a task, as the comments on its options say. */
export const taskDefaults: Defaults<TaskOptions, "maxRetries" | "retryExceptions"> = {
  maxRetries: 3,
  retryExceptions: false,
};

type Defaults<Options, Name extends keyof Options> = {
  readonly [Key in Name]-?: NonNullable<Options[Key]>;
};
