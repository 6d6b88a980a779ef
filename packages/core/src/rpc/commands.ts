/**
 * Commands that a running driver takes from outside, over its control socket: plain data, and
 * nothing but these methods.
 *
 * The side that asks has the user's own rights on the machine (runtime/control/), and is checked
 * all the same: it may be of another release.
 */
import type { Amounts } from "./resource-demand.ts";
import type { StackAnswer } from "./stacks.ts";
import type { ActorStateName, Listed, ObjectRow, StateAnswer, TraceEvent } from "./state.ts";
import type { ListOptions, Summarized, Summary } from "./state-query.ts";

/** Which driver it is. */
export interface DriverAbout {
  readonly driverId: string;
  readonly jobId: string;
  readonly namespace: string;
  readonly pid: number;
  /** The file that its process runs, or what stands for it. */
  readonly script: string;
  /** When the runtime was started: milliseconds since 1970. */
  readonly startTimeMs: number;
}

export interface ResourceUse {
  readonly used: number;
  readonly total: number;
}

export interface NodeStatus {
  readonly nodeId: string;
  readonly nodeName: string;
  /** The machine's own name for itself. */
  readonly hostname: string;
  readonly state: "ALIVE" | "DEAD";
  readonly isHeadNode: boolean;
  /** Nothing of a node that is dead. */
  readonly resources: Readonly<Record<string, ResourceUse>>;
  /** Why it is dead. */
  readonly stateMessage: string | undefined;
}

/**
 * Requests for the same resources that wait in one line. A caller asks for at most four workers at
 * a time for tasks that need the same.
 */
export interface PendingDemand {
  /** The request that is first in line, in words: an actor, a task or a placement group. */
  readonly first: string;
  readonly count: number;
  /** One bundle each. */
  readonly wants: readonly Amounts[];
  /** False: no node has as much even when idle. */
  readonly feasible: boolean;
  readonly reason: string;
  /** How long the first has waited. */
  readonly waitingMs: number;
}

/** The session at one moment. */
export interface SessionStatus {
  readonly driver: DriverAbout;
  /** Milliseconds since 1970. */
  readonly timeMs: number;
  readonly nodes: readonly NodeStatus[];
  /** How many there are in each state; the dead as far as they are remembered. */
  readonly actors: Readonly<Record<ActorStateName, number>>;
  /** By state, as placement groups have them. */
  readonly placementGroups: Readonly<Record<string, number>>;
  /** At most 1,000 lines, in order of request. */
  readonly pending: readonly PendingDemand[];
  /** As many lines as there are. */
  readonly pendingLines: number;
}

/** Big values that one runtime keeps. */
export interface StoreUse {
  readonly workerId: string;
  readonly nodeId: string | undefined;
  readonly pid: number;
  readonly bytesInMemory: number;
  readonly bytesSpilled: number;
}

export interface MemoryStatus {
  /** Memory of the driver's process, with all its threads. */
  readonly processBytes: number;
  readonly processLimitBytes: number;
  readonly stores: readonly StoreUse[];
  /** The largest first. */
  readonly objects: readonly ObjectRow[];
  readonly totalObjects: number;
  /** Hosts that did not answer in time. */
  readonly missing: readonly string[];
}

/** A line that an actor or task wrote. */
export interface LogLine {
  /** Counts all lines of the session. */
  readonly number: number;
  readonly hostId: string;
  readonly stream: "stdout" | "stderr";
  /** `Class actor-1a2b3c` or the name of a task; "" for what belongs to none. */
  readonly owner: string;
  readonly text: string;
}

export interface LogPart {
  readonly lines: readonly LogLine[];
  /** Ask for the lines from this number on next. */
  readonly next: number;
  /** How many were written until now: the number of the next one. */
  readonly written: number;
  /** Lines between those asked for and the first given here, which are kept no more. */
  readonly missed: number;
  /** The session has ended, and there will be no more. */
  readonly isEnd: boolean;
}

export interface DriverCommands {
  status(): SessionStatus;
  /** Rejects with InvalidOptionError, as the state API does. */
  list(what: Listed, options: ListOptions): Promise<StateAnswer>;
  /** Over all rows there are. */
  summarize(what: Summarized, options: Pick<ListOptions, "timeoutMs">): Promise<Summary>;
  memory(options: Pick<ListOptions, "limit" | "timeoutMs">): Promise<MemoryStatus>;
  /** Says what runs in each runtime, with the stacks of threads that are held. */
  stacks(options: Pick<ListOptions, "timeoutMs">): Promise<StackAnswer>;
  /**
   * Puts the trace together. Resolves with how many parts it has; undefined when no trace is
   * recorded.
   */
  timeline(): Promise<number | undefined>;
  /** A part of the trace that was put together last, from 0; each is given once. */
  timelinePart(index: number): readonly TraceEvent[];
  /**
   * Lines from that number on.
   *
   * @param waits resolve only when there are some, or when there will be no more
   * Rejects with RaySystemError when the driver does not see what its hosts write.
   */
  logs(from: number, waits: boolean): Promise<LogPart>;
  /** Kills an actor for good. Resolves, when it is dead, with whether there was one of that id. */
  killActor(actorId: string): Promise<boolean>;
  /** Shuts the runtime down and ends the process; answers before it begins. */
  stop(): void;
}
