/**
 * The state of a running session as it can be asked for: part of the Directory, plain data like all
 * of it.
 *
 * Columns and states have Ray's names, in camelCase. The driver puts together what each runtime
 * sees of its own (`RuntimeView`).
 */
import type { TaskEvent } from "../inside/task-events.ts";
import type { MetricPart } from "../inside/metrics.ts";

/** DEPENDENCIES_UNREADY: its constructor's arguments are not ready. */
export type ActorStateName =
  | "DEPENDENCIES_UNREADY"
  | "PENDING_CREATION"
  | "ALIVE"
  | "RESTARTING"
  | "DEAD";

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
  readonly taskId: string;
  readonly name: string;
  readonly state: TaskState;
  readonly type: "NORMAL_TASK" | "ACTOR_TASK";
  readonly actorId: string | undefined;
  readonly parentTaskId: string | undefined;
  readonly ownerId: string;
  readonly workerId: string | undefined;
  readonly nodeId: string | undefined;
  readonly errorType: string | undefined;
  /** Detail. */
  readonly errorMessage?: string | undefined;
  /** Detail: milliseconds since 1970; known with `init({ taskEvents: true })`. */
  readonly creationTimeMs?: number | undefined;
  readonly startTimeMs?: number | undefined;
  readonly endTimeMs?: number | undefined;
}

export interface ActorRow {
  readonly actorId: string;
  readonly className: string;
  readonly state: ActorStateName;
  readonly name: string;
  readonly rayNamespace: string;
  readonly nodeId: string | undefined;
  readonly workerId: string | undefined;
  readonly pid: number | undefined;
  /** Detail, all of them. */
  readonly deathCause?: string | undefined;
  readonly pendingReason?: string | undefined;
  readonly numRestarts?: number;
  readonly requiredResources?: Readonly<Record<string, number>>;
  readonly placementGroupId?: string | undefined;
  /**
   * Calls that run, and calls that wait in the mailbox; undefined when its host does not answer.
   */
  readonly runningCalls?: number | undefined;
  readonly queuedCalls?: number | undefined;
}

export interface ObjectRow {
  readonly objectId: string;
  /** `Class.method`, a task's name or "put". */
  readonly name: string;
  /** Bytes; -1 while it is not ready or its value is elsewhere. */
  readonly objectSize: number;
  readonly taskStatus: TaskState;
  readonly referenceType: "PENDING" | "HELD_BY_OTHERS" | "PINNED_IN_MEMORY";
  readonly ownerId: string;
  readonly type: "DRIVER" | "WORKER";
  /** Detail: who holds references to it, or is about to. */
  readonly holders?: readonly string[];
}

export interface WorkerRow {
  readonly workerId: string;
  readonly workerType: "DRIVER" | "WORKER";
  readonly isAlive: boolean;
  readonly isolation: string;
  readonly nodeId: string;
  readonly pid: number | undefined;
  /** Why it ended. */
  readonly exitType: string | undefined;
  readonly exitDetail?: string | undefined;
}

export interface NodeRow {
  readonly nodeId: string;
  readonly nodeName: string;
  /** By what the driver reaches its machine. */
  readonly nodeIp: string;
  readonly state: "ALIVE" | "DEAD";
  readonly isHeadNode: boolean;
  readonly resourcesTotal: Readonly<Record<string, number>>;
  readonly stateMessage: string | undefined;
  readonly labels?: Readonly<Record<string, string>>;
  readonly resourcesAvailable?: Readonly<Record<string, number>>;
}

export interface PlacementGroupRow {
  readonly placementGroupId: string;
  readonly name: string;
  readonly state: string;
  readonly strategy?: string;
  readonly bundles?: readonly Readonly<Record<string, number>>[];
  readonly bundlesToNodeId?: readonly (string | undefined)[];
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
  readonly ph: "X" | "M" | "s" | "f";
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly id?: number;
  readonly bp?: "e";
  readonly args?: Readonly<Record<string, unknown>>;
}

export interface InsideDirectory {
  state(query: StateQuery): Promise<StateAnswer>;
  timeline(): Promise<readonly TraceEvent[]>;
  /** In the text format of Prometheus. */
  metricsText(): Promise<string>;
}
