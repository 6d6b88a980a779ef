/**
 * The state of a running session as it can be asked for: part of the Directory, plain data like all
 * of it.
 *
 * Columns and states have Ray's names, in camelCase. The driver puts together what each runtime
 * sees of its own (`RuntimeView`).
 */
import type { TaskEvent } from "../telemetry/task-events.ts";
import type { MetricPart } from "../telemetry/metrics.ts";

/** DEPENDENCIES_UNREADY: its constructor's arguments are not ready. */
export type ActorStateName =
  | "DEPENDENCIES_UNREADY"
  | "PENDING_CREATION"
  | "ALIVE"
  | "RESTARTING"
  | "DEAD";

/**
 * A task's state by Ray's names. PENDING_NODE_ASSIGNMENT: it waits for a worker or its actor;
 * SUBMITTED_TO_WORKER: it was sent and has not begun, as far as is known.
 */
export type TaskState =
  | "PENDING_ARGS_AVAIL"
  | "PENDING_NODE_ASSIGNMENT"
  | "SUBMITTED_TO_WORKER"
  | "PENDING_ACTOR_TASK_ORDERING_OR_CONCURRENCY"
  | "RUNNING"
  | "RUNNING_IN_RAY_GET"
  | "RUNNING_IN_RAY_WAIT"
  | "FINISHED"
  | "FAILED"
  | "CANCELLED";

/**
 * An undefined column is not known, or has no meaning for that row. Columns marked "detail" are
 * there when `detail` is asked for.
 */
export interface TaskRow {
  /** The id of the call or task, as errors and traces give it. */
  readonly taskId: string;
  /** `Class.method`, a task's function, or the name given by `options({ name })`. */
  readonly name: string;
  /** Where it is on its way from `.remote()` to its answer. */
  readonly state: TaskState;
  /** ACTOR_TASK: a call to an actor's method. */
  readonly type: "NORMAL_TASK" | "ACTOR_TASK";
  /** The actor that is called; undefined for a task. */
  readonly actorId: string | undefined;
  /** The task whose code made it; undefined for the driver's own. */
  readonly parentTaskId: string | undefined;
  /** The runtime that called it and owns its result. */
  readonly ownerId: string;
  /** The host that it was sent to. */
  readonly workerId: string | undefined;
  /** The node of that host. */
  readonly nodeId: string | undefined;
  /** The name of the error that it failed with. */
  readonly errorType: string | undefined;
  /** Detail. */
  readonly errorMessage?: string | undefined;
  /** Detail: milliseconds since 1970; known with `init({ taskEvents: true })`. */
  readonly creationTimeMs?: number | undefined;
  /** Detail: when it began to run; milliseconds since 1970. */
  readonly startTimeMs?: number | undefined;
  /** Detail: when it ended; milliseconds since 1970. */
  readonly endTimeMs?: number | undefined;
}

/** An actor. An undefined column is not known, or has no meaning for that row. */
export interface ActorRow {
  /** The actor's id, as its handles and errors give it. */
  readonly actorId: string;
  /** The name of its class. */
  readonly className: string;
  /** Whether it is created, lives, restarts, or is dead for good. */
  readonly state: ActorStateName;
  /** The name given by `options({ name })`; empty without one. */
  readonly name: string;
  /** The namespace of that name. */
  readonly rayNamespace: string;
  /** The node that it runs on. */
  readonly nodeId: string | undefined;
  /** The host that it runs in. */
  readonly workerId: string | undefined;
  /** The process id of that host; the driver's own for a thread. */
  readonly pid: number | undefined;
  /** Detail, all of them. */
  readonly deathCause?: string | undefined;
  /** Detail: why it does not run yet, or not again. */
  readonly pendingReason?: string | undefined;
  /** Detail: how often it was restarted. */
  readonly numRestarts?: number;
  /** Detail: amounts that it holds on its node, by resource. */
  readonly requiredResources?: Readonly<Record<string, number>>;
  /** Detail: the placement group that it is in. */
  readonly placementGroupId?: string | undefined;
  /**
   * Calls that run, and calls that wait in the mailbox; undefined when its host does not answer.
   */
  readonly runningCalls?: number | undefined;
  /** Detail: calls that wait in its mailbox; undefined when its host does not answer. */
  readonly queuedCalls?: number | undefined;
  /** Detail: calls that its present life has run; undefined when its host does not answer. */
  readonly executedCalls?: number | undefined;
}

/** An object that others hold, or a big one in memory. An undefined column is not known. */
export interface ObjectRow {
  /** The object's id, as errors give it. */
  readonly objectId: string;
  /** `Class.method`, a task's name or "put". */
  readonly name: string;
  /** Bytes; -1 while it is not ready or its value is elsewhere. */
  readonly objectSize: number;
  /** The state of the call that makes it; FINISHED for a value that was put. */
  readonly taskStatus: TaskState;
  /**
   * PENDING: its value is not there yet. HELD_BY_OTHERS: other runtimes hold refs to it.
   * PINNED_IN_MEMORY: a big value in its owner's memory.
   */
  readonly referenceType: "PENDING" | "HELD_BY_OTHERS" | "PINNED_IN_MEMORY";
  /** The runtime that owns it: it called the task or put the value. */
  readonly ownerId: string;
  /** The kind of its owner. */
  readonly type: "DRIVER" | "WORKER";
  /** Detail: who holds references to it, or is about to. */
  readonly holders?: readonly string[];
}

/** A runtime: the driver, or a host of actors and tasks. An undefined column is not known. */
export interface WorkerRow {
  /** The runtime's id. */
  readonly workerId: string;
  /** DRIVER: the program that called `init`. */
  readonly workerType: "DRIVER" | "WORKER";
  /** False when it has ended. */
  readonly isAlive: boolean;
  /** "thread", "process" or "shared"; "process" for the driver. */
  readonly isolation: string;
  /** The node that it runs on. */
  readonly nodeId: string;
  /** Its process id; the driver's own for a thread. */
  readonly pid: number | undefined;
  /** Why it ended. */
  readonly exitType: string | undefined;
  /** Detail: the end in words. */
  readonly exitDetail?: string | undefined;
}

/** A node. An undefined column is not known. */
export interface NodeRow {
  /** The node's id, as strategies take it. */
  readonly nodeId: string;
  /** The name that it was given; its id without one. */
  readonly nodeName: string;
  /** By what the driver reaches its machine. */
  readonly nodeIp: string;
  /** DEAD: it was removed or lost. */
  readonly state: "ALIVE" | "DEAD";
  /** It is the driver's own machine. */
  readonly isHeadNode: boolean;
  /** Amounts that it has in all, by resource. */
  readonly resourcesTotal: Readonly<Record<string, number>>;
  /** Why it is dead. */
  readonly stateMessage: string | undefined;
  /** Detail: its labels. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Detail: amounts that are free now, by resource. */
  readonly resourcesAvailable?: Readonly<Record<string, number>>;
}

/** A placement group. An undefined column is not known. */
export interface PlacementGroupRow {
  /** The group's id. */
  readonly placementGroupId: string;
  /** The name that it was given; empty without one. */
  readonly name: string;
  /** PENDING, CREATED, RESCHEDULING or REMOVED. */
  readonly state: string;
  /** Detail: how its bundles are spread over nodes. */
  readonly strategy?: string;
  /** Detail: amounts of each bundle, by resource. */
  readonly bundles?: readonly Readonly<Record<string, number>>[];
  /** Detail: the node of each bundle; undefined while it has none. */
  readonly bundlesToNodeId?: readonly (string | undefined)[];
  /** Detail: why it waits. */
  readonly pendingReason?: string | undefined;
}

export interface Rows {
  readonly tasks: TaskRow;
  readonly actors: ActorRow;
  readonly objects: ObjectRow;
  readonly workers: WorkerRow;
  readonly nodes: NodeRow;
  readonly placementGroups: PlacementGroupRow;
}

export type Listed = keyof Rows;

/** Columns that rows can be filtered by. */
export const filterKeys: Readonly<Record<Listed, readonly string[]>> = {
  tasks: [
    "taskId",
    "name",
    "state",
    "type",
    "actorId",
    "parentTaskId",
    "ownerId",
    "workerId",
    "nodeId",
    "errorType",
  ],
  actors: [
    "actorId",
    "className",
    "state",
    "name",
    "rayNamespace",
    "nodeId",
    "workerId",
    "pid",
    "placementGroupId",
  ],
  objects: ["objectId", "name", "objectSize", "taskStatus", "referenceType", "ownerId", "type"],
  workers: ["workerId", "workerType", "isAlive", "isolation", "nodeId", "pid", "exitType"],
  nodes: ["nodeId", "nodeName", "nodeIp", "state", "isHeadNode"],
  placementGroups: ["placementGroupId", "name", "state"],
};

/** A condition on one column: `["state", "=", "ALIVE"]`. */
export type Filter = readonly [
  key: string,
  predicate: "=" | "!=",
  value: string | number | boolean | undefined,
];

export interface StateQuery {
  readonly what: Listed;
  readonly filters: readonly Filter[];
  readonly limit: number;
  readonly detail: boolean;
  readonly timeoutMs: number;
}

export interface StateAnswer<Row = unknown> {
  readonly rows: readonly Row[];
  /** As many as match; `rows` has at most `limit` of them. */
  readonly total: number;
  /** Hosts that did not answer in time: what only they know is not in it. */
  readonly missing: readonly string[];
}

/** A call without an answer, as its caller sees it. */
export interface CallView {
  readonly taskId: string;
  readonly name: string;
  readonly state: TaskState;
  readonly actorId: string | undefined;
  readonly parentTaskId: string | undefined;
  /** Where it was sent. */
  readonly workerId: string | undefined;
}

export interface ObjectView {
  readonly objectId: string;
  readonly name: string;
  readonly objectSize: number;
  readonly referenceType: ObjectRow["referenceType"];
  readonly ok: boolean;
  readonly holders: readonly string[];
}

/** A call that has arrived where it runs. */
export interface ExecutionView {
  readonly taskId: string;
  readonly state: TaskState;
}

/** One runtime's view of its calls and objects. */
export interface RuntimeView {
  readonly calls: readonly CallView[];
  readonly executions: readonly ExecutionView[];
  readonly objects: readonly ObjectView[];
  /** Its big values. */
  readonly stored: { readonly bytesInMemory: number; readonly bytesSpilled: number };
  readonly pid: number;
}

/** Events and views of a host since it was last asked. */
export interface HostReport {
  readonly events: readonly TaskEvent[];
  readonly metrics: readonly MetricPart[];
}

/** An event of Chrome's trace format, which Perfetto opens: times in microseconds. */
export interface TraceEvent {
  /** The kind: a span, a name of a process or thread, the start or the end of an arrow. */
  readonly ph: "X" | "M" | "s" | "f";
  /** The text that the viewer shows. */
  readonly name: string;
  /** The category, by which viewers filter. */
  readonly cat?: string;
  /** The group of rows: a node. */
  readonly pid: number;
  /** The row: a runtime, or one of its parallel calls. */
  readonly tid: number;
  /** When it begins, in microseconds. */
  readonly ts?: number;
  /** How long it takes, in microseconds. */
  readonly dur?: number;
  /** The number of an arrow. */
  readonly id?: number;
  /** "e": the arrow ends at the span that encloses it. */
  readonly bp?: "e";
  /** More facts, which the viewer shows for a selected event. */
  readonly args?: Readonly<Record<string, unknown>>;
}

export interface InsideDirectory {
  state(query: StateQuery): Promise<StateAnswer>;
  timeline(): Promise<readonly TraceEvent[]>;
  /** In the text format of Prometheus. */
  metricsText(): Promise<string>;
}
