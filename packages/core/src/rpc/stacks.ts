/**
 * A look at what runs in each runtime of a session right now: its calls, its waits and the
 * JavaScript stack of its thread. Plain data, made when somebody asks.
 */
import type { TaskState } from "./state.ts";

/** A call that runs in a host, or waits in a mailbox there. */
export interface CallLook {
  readonly taskId: string;
  /** The name given by `options({ name })`, or `Class.method`. */
  readonly name: string;
  /** Undefined for a task. */
  readonly actorId: string | undefined;
  readonly state: TaskState;
  /** How long it runs, or has waited in the mailbox. */
  readonly forMs: number;
  /** Whether its code holds the thread right now. */
  readonly isOnStack: boolean;
}

/** A `get`, a `wait` or the like that has not ended. */
export interface WaitLook {
  /** "get", "wait", ... */
  readonly what: string;
  /** The call that waits; undefined for code outside of calls, as the driver's own. */
  readonly taskId: string | undefined;
  readonly forMs: number;
  /** Names of what is not ready: the first of them. */
  readonly waitsFor: readonly string[];
  /** As many as are not ready. */
  readonly count: number;
}

/** The calls and waits of one runtime, and its stack. */
export interface RuntimeLook {
  /** The first to begin first; those in a mailbox come last. */
  readonly calls: readonly CallLook[];
  /** Further calls that are not shown. */
  readonly moreCalls: number;
  readonly waits: readonly WaitLook[];
  /** Frames of the running code, the innermost first; empty where the thread is free. */
  readonly stack: readonly string[];
}

/** A call as its caller knows it, to a host that does not say what it does. */
export interface SentCall {
  readonly taskId: string;
  readonly name: string;
  readonly actorId: string | undefined;
}

/** A runtime with what it does. */
export interface StackRow extends RuntimeLook {
  readonly workerId: string;
  /** DRIVER: the program that called `init`. */
  readonly workerType: "DRIVER" | "WORKER";
  /** "thread" or "process"; "process" for the driver. */
  readonly isolation: string;
  readonly nodeId: string;
  /** The process id; the driver's own for a thread. */
  readonly pid: number | undefined;
  /**
   * FREE: its thread answered between two turns. BUSY: code held its thread, and was looked at.
   * SILENT: neither within the time.
   */
  readonly thread: "FREE" | "BUSY" | "SILENT";
  /** Why a silent one has no stack. */
  readonly reason: string | undefined;
  /** Actors that live there. */
  readonly actors: readonly {
    readonly actorId: string;
    readonly className: string;
    readonly name: string;
  }[];
  /** Calls to a silent one that are not answered, as far as the others know. */
  readonly sent: readonly SentCall[];
}

export interface StackAnswer {
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  /** The driver comes first. */
  readonly rows: readonly StackRow[];
}
