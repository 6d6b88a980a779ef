/**
 * What is going on in the session, by Ray's names: `ray.state.listActors({ filters: [["state", "=", "ALIVE"]] })`.
 *
 * Put together from all runtimes when it is asked: nothing is slower for it. A host that does not answer until `timeoutMs` is named in `missing` of the answer.
 * Of each runtime at most 100,000 rows of a kind are looked at. Works in drivers, actors and tasks.
 */
import {
  type ActorRow,
  type Filter,
  filterKeys,
  type Listed,
  type NodeRow,
  type ObjectRow,
  type PlacementGroupRow,
  type Rows,
  type TaskRow,
  type WorkerRow,
} from "../rpc/state.ts";
import { type Check, checkOptions, count, flag } from "../shared/options.ts";
import { InvalidOptionError } from "../shared/errors.ts";
import { show } from "../shared/show.ts";
import { isDriverCode, never, useCaller } from "./session.ts";

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

export interface ListOptions {
  /** All must hold. Texts compare without regard to case. */
  readonly filters?: readonly Filter[];
  /** Rows at most, up to 10,000. Default 100. */
  readonly limit?: number;
  /** With the columns that are marked so. Default false. */
  readonly detail?: boolean;
  /** How long hosts have to answer. Default 30,000. */
  readonly timeoutMs?: number;
}

/** The rows, and beside them what is not among them. */
export type StateList<Row> = readonly Row[] & {
  /** As many as match the filters. */
  readonly total: number;
  /** Hosts that did not answer in time. */
  readonly missing: readonly string[];
};

/** How many there are, by name and state. */
export interface Summary {
  readonly total: number;
  readonly byName: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly missing: readonly string[];
}

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
  return summarize("actors", (row) => [row.className, row.state], options);
}

/** By `Class.method` or the task's name. */
export function summarizeTasks(options?: TimeoutOption): Promise<Summary> {
  return summarize("tasks", (row) => [row.name, row.state], options);
}

/** By what made them. */
export function summarizeObjects(options?: TimeoutOption): Promise<Summary> {
  return summarize("objects", (row) => [row.name, row.taskStatus], options);
}

export interface TimeoutOption {
  /** How long hosts have to answer. Default 30,000. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 30_000;

/** Ray's servers give no more. */
const maxLimit = 10_000;

const limit: Check = (value) =>
  count(1)(value) ?? ((value as number) <= maxLimit ? undefined : `must be at most ${maxLimit}`);

const filters: Check = (value) => {
  if (!Array.isArray(value)) return "must be a list of [key, predicate, value]";
  for (const filter of value as readonly unknown[]) {
    if (!Array.isArray(filter) || filter.length !== 3 || typeof filter[0] !== "string")
      return `must hold lists of [key, "=" or "!=", value]`;
    if (filter[1] !== "=" && filter[1] !== "!=") return `must compare by "=" or "!="`;
  }
  return undefined;
};

async function list<What extends Listed>(
  what: What,
  where: string,
  options: ListOptions = {},
): Promise<StateList<Rows[What]>> {
  if (isDriverCode()) return never();
  checkOptions(`state.${where}`, options, {
    filters,
    limit,
    detail: flag,
    timeoutMs: count(1),
  });
  for (const [key] of options.filters ?? []) {
    if (filterKeys[what].includes(key)) continue;
    throw new InvalidOptionError(
      "filters",
      `state.${where}: ${what} cannot be filtered by "${key}"; they can be filtered by ${filterKeys[what].join(", ")}`,
    );
  }
  const answer = await useCaller().directory.state({
    what,
    filters: options.filters ?? [],
    limit: options.limit ?? 100,
    detail: options.detail ?? false,
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
  });
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

async function summarize<What extends Listed>(
  what: What,
  keysOf: (row: Rows[What]) => readonly [name: string, state: string],
  options: TimeoutOption = {},
): Promise<Summary> {
  if (isDriverCode()) return never();
  const rows = await list(what, "summarize", { ...options, limit: maxLimit });
  const byName: Record<string, Record<string, number>> = {};
  for (const row of rows) {
    const [name, state] = keysOf(row);
    const states = (byName[name] ??= {});
    states[state] = (states[state] ?? 0) + 1;
  }
  return { total: rows.total, byName, missing: rows.missing };
}
