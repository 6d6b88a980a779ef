/**
 * What is going on in the session, by Ray's names: `ray.state.listActors({ filters: [["state", "=", "ALIVE"]] })`.
 *
 * Put together from all runtimes when it is asked: nothing is slower for it. A host that does not answer until `timeoutMs` is named in `missing` of the answer.
 * Of each runtime at most 100,000 rows of a kind are looked at. Works in drivers, actors and tasks.
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
import { asked, isDriverCode, never } from "./session.ts";

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

/** The rows, and beside them what is not among them. */
export type StateList<Row> = readonly Row[] & {
  /** As many as match the filters. */
  readonly total: number;
  /** Hosts that did not answer in time. */
  readonly missing: readonly string[];
};

/** @throws (rejects) InvalidOptionError for an unknown option or filter key */
export function listActors(options?: ListOptions): Promise<StateList<ActorRow>> {
  return list("actors", "listActors", options);
}

/** Calls and tasks without an answer; those that have ended, too, with `init({ taskEvents: true })`. */
export function listTasks(options?: ListOptions): Promise<StateList<TaskRow>> {
  return list("tasks", "listTasks", options);
}

/** Objects that others hold, big ones in memory, and those that are not ready. */
export function listObjects(options?: ListOptions): Promise<StateList<ObjectRow>> {
  return list("objects", "listObjects", options);
}

export function listWorkers(options?: ListOptions): Promise<StateList<WorkerRow>> {
  return list("workers", "listWorkers", options);
}

export function listNodes(options?: ListOptions): Promise<StateList<NodeRow>> {
  return list("nodes", "listNodes", options);
}

export function listPlacementGroups(options?: ListOptions): Promise<StateList<PlacementGroupRow>> {
  return list("placementGroups", "listPlacementGroups", options);
}

/** With all columns; undefined when there is none of that id. */
export function getActor(actorId: string, options?: TimeoutOption): Promise<ActorRow | undefined> {
  return one("actors", "actorId", actorId, options);
}

export function getTask(taskId: string, options?: TimeoutOption): Promise<TaskRow | undefined> {
  return one("tasks", "taskId", taskId, options);
}

export function getObject(
  objectId: string,
  options?: TimeoutOption,
): Promise<ObjectRow | undefined> {
  return one("objects", "objectId", objectId, options);
}

export function getWorker(
  workerId: string,
  options?: TimeoutOption,
): Promise<WorkerRow | undefined> {
  return one("workers", "workerId", workerId, options);
}

export function getNode(nodeId: string, options?: TimeoutOption): Promise<NodeRow | undefined> {
  return one("nodes", "nodeId", nodeId, options);
}

export function getPlacementGroup(
  placementGroupId: string,
  options?: TimeoutOption,
): Promise<PlacementGroupRow | undefined> {
  return one("placementGroups", "placementGroupId", placementGroupId, options);
}

/** By class. */
export function summarizeActors(options?: TimeoutOption): Promise<Summary> {
  return summarize("actors", options);
}

/** By `Class.method` or the task's name. */
export function summarizeTasks(options?: TimeoutOption): Promise<Summary> {
  return summarize("tasks", options);
}

/** By what made them. */
export function summarizeObjects(options?: TimeoutOption): Promise<Summary> {
  return summarize("objects", options);
}

export interface TimeoutOption {
  /** How long hosts have to answer. Default 30,000. */
  readonly timeoutMs?: number;
}

async function list<What extends Listed>(
  what: What,
  where: string,
  options: ListOptions = {},
): Promise<StateList<Rows[What]>> {
  if (isDriverCode()) return never();
  const query = checkedQuery(what, `state.${where}`, options);
  const answer = await asked((directory) => directory.state(query));
  const rows = answer.rows as readonly Rows[What][];
  // Not among the elements: a list is compared and printed as one.
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
  if (isDriverCode()) return never();
  if (typeof id !== "string") {
    throw new InvalidOptionError(key, `state: ${key} must be a text, not ${show(id)}`);
  }
  const rows = await list(what, "get", { ...options, filters: [[key, "=", id]], detail: true });
  return rows[0];
}

async function summarize(what: Summarized, options: TimeoutOption = {}): Promise<Summary> {
  if (isDriverCode()) return never();
  const rows = await list(what, "summarize", { ...options, limit: maxLimit });
  return summaryOf(what, { rows, total: rows.total, missing: rows.missing });
}
