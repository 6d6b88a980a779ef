/**
 * Answers the state API with rows from the current knowledge of the driver, its directory and each
 * host.
 *
 * All hosts are queried at once and have until the timeout; a host that does not answer is named as
 * missing. Finished and failed tasks come from task events, if those are recorded.
 */
import type { HostStats } from "../../host/host-control.ts";
import type { TaskEvent } from "../../telemetry/task-events.ts";
import type {
  ActorRow,
  Filter,
  NodeRow,
  ObjectRow,
  PlacementGroupRow,
  RuntimeView,
  StateAnswer,
  StateQuery,
  TaskRow,
  TaskState,
  WorkerRow,
} from "../../rpc/state.ts";
import type { MemoryStatus } from "../../rpc/commands.ts";
import { wallMs } from "../../shared/clock.ts";
import type { LocalDirectory } from "../directory.ts";
import type { Host } from "../launch/host.ts";
import { answerOf, stateNames } from "./actor-status.ts";
import type { Supervisor } from "../actors/supervisor.ts";

export interface StateParts {
  readonly driverId: string;
  readonly nodeId: string;
  readonly directory: LocalDirectory;
  /** Returns the driver's view of itself. */
  readonly viewDriver: () => RuntimeView;
  /** Returns events by runtime, the oldest first, after hosts have reported them. */
  readonly events: (timeoutMs: number) => Promise<ReadonlyMap<string, readonly TaskEvent[]>>;
  readonly deadWorkers: () => readonly WorkerRow[];
}

/** The views of runtimes by id, and the runtimes that did not answer. */
interface Views {
  readonly views: ReadonlyMap<string, RuntimeView>;
  readonly missing: readonly string[];
}

const detailColumns: ReadonlySet<string> = new Set([
  "errorMessage",
  "creationTimeMs",
  "startTimeMs",
  "endTimeMs",
  "deathCause",
  "pendingReason",
  "numRestarts",
  "requiredResources",
  "runningCalls",
  "queuedCalls",
  "holders",
  "exitDetail",
  "labels",
  "resourcesAvailable",
  "strategy",
  "bundles",
  "bundlesToNodeId",
]);

export async function answerState(parts: StateParts, query: StateQuery): Promise<StateAnswer> {
  const { rows, missing } = await collect(parts, query);
  const matching = rows.filter((row) => matchesAll(row, query));
  return {
    rows: matching.slice(0, query.limit).map((row) => (query.detail ? row : withoutDetail(row))),
    total: matching.length,
    missing,
  };
}

function matchesAll(row: object, { filters }: StateQuery): boolean {
  return filters.every((filter) => matches(row, filter));
}

function matches(row: object, [key, predicate, value]: Filter): boolean {
  const own = (row as Record<string, string | number | boolean | undefined>)[key];
  // As in Ray, texts compare without regard to case, and a text equals the number that it spells.
  const isEqual =
    own === value ||
    (typeof value === "string" && textOf(own).toLowerCase() === value.toLowerCase());
  return predicate === "=" ? isEqual : !isEqual;
}

/** Returns the text of a column that a filter may name; undefined is an empty text. */
function textOf(value: string | number | boolean | undefined): string {
  return value === undefined ? "" : String(value);
}

function withoutDetail(row: object): object {
  return Object.fromEntries(Object.entries(row).filter(([key]) => !detailColumns.has(key)));
}

async function collect(
  parts: StateParts,
  query: StateQuery,
): Promise<{ readonly rows: readonly object[]; readonly missing: readonly string[] }> {
  const { directory } = parts;
  switch (query.what) {
    case "actors":
      return actorRows(directory, query);
    case "nodes":
      return {
        rows: directory.cluster.nodes().map((node) => nodeRow(node, parts.nodeId)),
        missing: [],
      };
    case "placementGroups":
      return { rows: directory.cluster.groups().map(groupRow), missing: [] };
    case "workers":
      return { rows: [...(await workerRows(parts, query)), ...parts.deadWorkers()], missing: [] };
    case "objects": {
      const { views, missing } = await viewAll(parts, query.timeoutMs);
      return { rows: objectRows(parts, views), missing };
    }
    default: {
      const [{ views, missing }, events] = await Promise.all([
        viewAll(parts, query.timeoutMs),
        parts.events(query.timeoutMs),
      ]);
      return { rows: taskRows(parts, views, events), missing };
    }
  }
}

async function viewAll(parts: StateParts, timeoutMs: number): Promise<Views> {
  const views = new Map([[parts.driverId, parts.viewDriver()]]);
  const missing: string[] = [];
  await Promise.all(
    parts.directory.hosts().map(async (host) => {
      const view = await answerOf<RuntimeView>(host, (control) => control.view(), timeoutMs);
      if (view !== undefined) views.set(host.id, view);
      else if (host.channel.isOpen) missing.push(host.id);
    }),
  );
  return { views, missing };
}

/** Returns the object stores of all runtimes, and all objects, the largest first. */
export async function answerMemory(
  parts: StateParts,
  timeoutMs: number,
): Promise<Pick<MemoryStatus, "stores" | "objects" | "missing">> {
  const { views, missing } = await viewAll(parts, timeoutMs);
  const nodes = new Map(parts.directory.hosts().map((host) => [host.id, host.nodeId]));
  nodes.set(parts.driverId, parts.nodeId);
  const stores = [...views].map(([workerId, { pid, stored }]) => ({
    workerId,
    nodeId: nodes.get(workerId),
    pid,
    ...stored,
  }));
  const objects = objectRows(parts, views).toSorted(
    (left, right) => right.objectSize - left.objectSize,
  );
  return { stores, objects, missing };
}

/**
 * Queries the hosts of the rows that will be shown, each once; the rows are read after the answers.
 */
async function actorRows(
  directory: LocalDirectory,
  query: StateQuery,
): Promise<{ readonly rows: readonly ActorRow[]; readonly missing: readonly string[] }> {
  if (!query.detail) return { rows: directory.actors().map(actorRow), missing: [] };
  const shown = directory
    .actors()
    .filter((actor) => matchesAll(actorRow(actor), query))
    .slice(0, query.limit);
  const hosts = new Set(
    shown.flatMap(({ record: { state, life } }) =>
      state === "alive" && life.host !== undefined ? [life.host] : [],
    ),
  );
  const loads = new Map<string, Load>();
  const missing: string[] = [];
  await Promise.all(
    [...hosts].map(async (host) => {
      const stats = await answerOf(host, (control) => control.stats(), query.timeoutMs);
      for (const load of stats?.actors ?? []) loads.set(load.actorId, load);
      if (stats === undefined && host.channel.isOpen) missing.push(host.id);
    }),
  );
  const rows = directory.actors().map((actor) => detailedRow(actor, loads));
  return { rows, missing };
}

type Load = HostStats["actors"][number];

function actorRow(actor: Supervisor): ActorRow {
  const { spec, namespace, record } = actor;
  const { host } = record.life;
  const { strategy } = spec.demand;
  return {
    actorId: spec.info.actorId,
    className: spec.info.className,
    state: stateNames[record.state],
    name: spec.name ?? "",
    rayNamespace: namespace,
    nodeId: host?.nodeId,
    workerId: host?.id,
    pid: host?.pid,
    placementGroupId: strategy.kind === "PLACEMENT_GROUP" ? strategy.group.groupId : undefined,
  };
}

function detailedRow(actor: Supervisor, loads: ReadonlyMap<string, Load>): ActorRow {
  const { spec, waitsFor } = actor;
  const { state, cause, life } = actor.record;
  const load = state === "alive" ? loads.get(spec.info.actorId) : undefined;
  return {
    ...actorRow(actor),
    deathCause: state === "dead" ? cause?.message : undefined,
    pendingReason: waitsFor,
    numRestarts: life.number,
    requiredResources: spec.demand.hold,
    runningCalls: load?.running,
    queuedCalls: load?.queued,
    executedCalls: load?.executed,
  };
}

function nodeRow(
  node: ReturnType<LocalDirectory["cluster"]["nodes"]>[number],
  headId: string,
): NodeRow {
  return {
    nodeId: node.nodeId,
    nodeName: node.nodeName,
    nodeIp: node.nodeManagerAddress,
    state: node.alive ? "ALIVE" : "DEAD",
    isHeadNode: node.nodeId === headId,
    resourcesTotal: node.resources,
    stateMessage: node.draining ? "it is being drained" : node.deathReason,
    labels: node.labels,
    resourcesAvailable: node.availableResources,
  };
}

function groupRow(
  group: ReturnType<LocalDirectory["cluster"]["groups"]>[number],
): PlacementGroupRow {
  const { placementGroupId, name, state, strategy, bundles, bundlesToNodeId, waitsFor } = group;
  return {
    placementGroupId,
    name,
    state,
    strategy,
    bundles,
    bundlesToNodeId,
    pendingReason: waitsFor,
  };
}

async function workerRows(parts: StateParts, _query: StateQuery): Promise<readonly WorkerRow[]> {
  const driver: WorkerRow = {
    workerId: parts.driverId,
    workerType: "DRIVER",
    isAlive: true,
    isolation: "process",
    nodeId: parts.nodeId,
    pid: process.pid,
    exitType: undefined,
  };
  return [driver, ...parts.directory.hosts().map((host) => workerRow(host))];
}

export function workerRow(host: Host): WorkerRow {
  return {
    workerId: host.id,
    workerType: "WORKER",
    isAlive: true,
    isolation: host.isolation,
    nodeId: host.nodeId,
    pid: host.pid,
    exitType: undefined,
  };
}

function objectRows(
  { driverId }: StateParts,
  views: ReadonlyMap<string, RuntimeView>,
): readonly ObjectRow[] {
  const rows: ObjectRow[] = [];
  for (const [ownerId, { objects, calls }] of views) {
    const type = ownerId === driverId ? "DRIVER" : "WORKER";
    for (const { ok, holders, ...object } of objects) {
      rows.push({ ...object, taskStatus: ok ? "FINISHED" : "FAILED", ownerId, type, holders });
    }
    const known = new Set(objects.map(({ objectId }) => objectId));
    for (const { taskId, name, state } of calls) {
      if (known.has(taskId)) continue;
      rows.push({
        objectId: taskId,
        name,
        objectSize: -1,
        taskStatus: state,
        referenceType: "PENDING",
        ownerId,
        type,
        holders: [],
      });
    }
  }
  return rows;
}

function taskRows(
  { directory, driverId, nodeId }: StateParts,
  views: ReadonlyMap<string, RuntimeView>,
  events: ReadonlyMap<string, readonly TaskEvent[]>,
): readonly TaskRow[] {
  const nodes = new Map(directory.hosts().map((host) => [host.id, host.nodeId]));
  nodes.set(driverId, nodeId);
  const running = new Map<string, TaskState>();
  for (const { executions } of views.values()) {
    for (const { taskId, state } of executions) running.set(taskId, state);
  }
  const rows = endedTasks(events, nodes);
  for (const [ownerId, { calls }] of views) {
    for (const { taskId, name, state, actorId, parentTaskId, workerId } of calls) {
      const noted = rows.get(taskId);
      rows.set(taskId, {
        ...noted,
        taskId,
        name,
        state: state === "SUBMITTED_TO_WORKER" ? (running.get(taskId) ?? state) : state,
        type: actorId === undefined ? "NORMAL_TASK" : "ACTOR_TASK",
        actorId,
        parentTaskId,
        ownerId,
        workerId,
        nodeId: workerId === undefined ? undefined : nodes.get(workerId),
        errorType: undefined,
      });
    }
  }
  // A call with only a start event is among the calls above, or its owner did not answer.
  return [...rows.values()];
}

type Noted = { -readonly [Key in keyof TaskRow]: TaskRow[Key] };

/** Returns the ended tasks, by task id. */
function endedTasks(
  events: ReadonlyMap<string, readonly TaskEvent[]>,
  nodes: ReadonlyMap<string, string>,
): Map<string, TaskRow> {
  const rows = new Map<string, Noted>();
  const ended = new Set<string>();
  for (const [runtimeId, ofRuntime] of events) {
    for (const event of ofRuntime) {
      if (event.kind === "wait") continue;
      const taskId = `${event.owner}:${event.sequence}`;
      let row = rows.get(taskId);
      if (row === undefined) {
        row = blank(taskId, event.name, event.owner);
        rows.set(taskId, row);
      }
      if (event.kind === "settle") ended.add(taskId);
      note(row, event, runtimeId, nodes);
    }
  }
  for (const taskId of rows.keys()) if (!ended.has(taskId)) rows.delete(taskId);
  return rows;
}

function blank(taskId: string, name: string, ownerId: string): Noted {
  return {
    taskId,
    name,
    state: "FINISHED",
    type: "NORMAL_TASK",
    actorId: undefined,
    parentTaskId: undefined,
    ownerId,
    workerId: undefined,
    nodeId: undefined,
    errorType: undefined,
  };
}

function note(
  row: Noted,
  event: Exclude<TaskEvent, { kind: "wait" }>,
  runtimeId: string,
  nodes: ReadonlyMap<string, string>,
): void {
  switch (event.kind) {
    case "submit":
      row.actorId = event.actorId;
      row.type = event.actorId === undefined ? "NORMAL_TASK" : "ACTOR_TASK";
      row.parentTaskId = event.parentId;
      row.creationTimeMs = wallMs(event.startMs);
      break;
    case "execute":
      row.workerId = runtimeId;
      row.nodeId = nodes.get(runtimeId);
      row.startTimeMs = wallMs(event.startMs);
      row.endTimeMs = wallMs(event.endMs);
      break;
    default:
      row.endTimeMs ??= wallMs(event.atMs);
      if (event.error === undefined) return;
      row.state = event.error.name === "TaskCancelledError" ? "CANCELLED" : "FAILED";
      row.errorType = event.error.name;
      row.errorMessage = event.error.message;
  }
}
