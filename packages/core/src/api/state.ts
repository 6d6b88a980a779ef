/**
 * The current state of the session, by Ray's names:
 * `ray.state.listActors({ filters: [["state", "=", "ALIVE"]] })`.
 *
 * A query collects it from all runtimes, and costs nothing otherwise. A host that does not answer
 * within `timeoutMs` is named in `missing` of the answer. At most 100,000 rows of a kind are read
 * from each runtime. It works in drivers, actors and tasks.
 */
import type {
  ActorRow,
  Listed,
  NodeRow,
  ObjectRow,
  PlacementGroupRow,
  Rows,
  TaskRow,
  WorkerRow,
} from "../rpc/state.ts";
import {
  checkedQuery,
  type ListOptions,
  maxLimit,
  type Summarized,
  type Summary,
  summaryOf,
} from "../rpc/state-query.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/text/show.ts";
import { asked } from "./session.ts";

export type { ListOptions, Summary } from "../rpc/state-query.ts";
export type {
  ActorRow,
  ActorStateName,
  Filter,
  NodeRow,
  ObjectRow,
  PlacementGroupRow,
  TaskRow,
  TaskState,
  WorkerRow,
} from "../rpc/state.ts";

/** The rows, with facts about rows that are missing from them. */
export type StateList<Row> = readonly Row[] & {
  /** The number of rows that match the filters. */
  readonly total: number;
  /** Hosts that did not answer in time. */
  readonly missing: readonly string[];
};

/** Lists the actors. Rejects with InvalidOptionError for an unknown option or filter key. */
export function listActors(options?: ListOptions): Promise<StateList<ActorRow>> {
  return list("actors", "listActors", options);
}

/**
 * Lists calls and tasks without an answer; with `init({ taskEvents: true })` also ended ones.
 * Rejects with InvalidOptionError.
 */
export function listTasks(options?: ListOptions): Promise<StateList<TaskRow>> {
  return list("tasks", "listTasks", options);
}

/**
 * Lists objects that others hold, big ones in memory, and pending ones. Rejects with
 * InvalidOptionError.
 */
export function listObjects(options?: ListOptions): Promise<StateList<ObjectRow>> {
  return list("objects", "listObjects", options);
}

/** Lists the workers, including dead ones that are remembered. Rejects with InvalidOptionError. */
export function listWorkers(options?: ListOptions): Promise<StateList<WorkerRow>> {
  return list("workers", "listWorkers", options);
}

/** Lists the nodes, including dead ones that are remembered. Rejects with InvalidOptionError. */
export function listNodes(options?: ListOptions): Promise<StateList<NodeRow>> {
  return list("nodes", "listNodes", options);
}

/**
 * Lists the placement groups, including removed ones that are remembered. Rejects with
 * InvalidOptionError.
 */
export function listPlacementGroups(options?: ListOptions): Promise<StateList<PlacementGroupRow>> {
  return list("placementGroups", "listPlacementGroups", options);
}

/** Returns one actor with all columns; undefined when there is none of that id. */
export function getActor(actorId: string, options?: TimeoutOption): Promise<ActorRow | undefined> {
  return one("actors", "actorId", actorId, options);
}

/** Returns one call or task with all columns; undefined when there is none of that id. */
export function getTask(taskId: string, options?: TimeoutOption): Promise<TaskRow | undefined> {
  return one("tasks", "taskId", taskId, options);
}

/** Returns one object with all columns; undefined when there is none of that id. */
export function getObject(
  objectId: string,
  options?: TimeoutOption,
): Promise<ObjectRow | undefined> {
  return one("objects", "objectId", objectId, options);
}

/** Returns one worker with all columns; undefined when there is none of that id. */
export function getWorker(
  workerId: string,
  options?: TimeoutOption,
): Promise<WorkerRow | undefined> {
  return one("workers", "workerId", workerId, options);
}

/** Returns one node with all columns; undefined when there is none of that id. */
export function getNode(nodeId: string, options?: TimeoutOption): Promise<NodeRow | undefined> {
  return one("nodes", "nodeId", nodeId, options);
}

/** Returns one placement group with all columns; undefined when there is none of that id. */
export function getPlacementGroup(
  placementGroupId: string,
  options?: TimeoutOption,
): Promise<PlacementGroupRow | undefined> {
  return one("placementGroups", "placementGroupId", placementGroupId, options);
}

/** Counts the actors by class. */
export function summarizeActors(options?: TimeoutOption): Promise<Summary> {
  return summarize("actors", options);
}

/** Counts calls and tasks by `Class.method` or the task's name. */
export function summarizeTasks(options?: TimeoutOption): Promise<Summary> {
  return summarize("tasks", options);
}

/** Counts the objects by their origin. */
export function summarizeObjects(options?: TimeoutOption): Promise<Summary> {
  return summarize("objects", options);
}

/** Options of a query for one row, or for a summary. */
export interface TimeoutOption {
  /** The time that hosts have to answer, in ms. Default 30,000. */
  readonly timeoutMs?: number | undefined;
}

async function list<What extends Listed>(
  what: What,
  where: string,
  options: ListOptions = {},
): Promise<StateList<Rows[What]>> {
  const query = checkedQuery(what, `state.${where}`, options);
  const answer = await asked((directory) => directory.state(query));
  const rows = answer.rows as readonly Rows[What][];
  // They are not among the elements: the result compares and prints as a list.
  return Object.defineProperties(rows, {
    total: { value: answer.total },
    missing: { value: answer.missing },
  }) as StateList<Rows[What]>;
}

async function one<What extends Listed>(
  what: What,
  key: string,
  id: string,
  options: TimeoutOption = {},
): Promise<Rows[What] | undefined> {
  if (typeof id !== "string") {
    throw new InvalidOptionError(key, `state: ${key} must be a text, not ${show(id)}`);
  }
  const rows = await list(what, "get", { ...options, filters: [[key, "=", id]], detail: true });
  return rows[0];
}

async function summarize(what: Summarized, options: TimeoutOption = {}): Promise<Summary> {
  const rows = await list(what, "summarize", { ...options, limit: maxLimit });
  return summaryOf(what, { rows, total: rows.total, missing: rows.missing });
}
