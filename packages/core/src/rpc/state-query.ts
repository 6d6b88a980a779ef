/** Queries of the state API, checked and with their defaults; and the counts of a summary. */
import { InvalidOptionError } from "../shared/errors.ts";
import { type Check, checkOptions, count, flag, atMost } from "../shared/options.ts";
import { show } from "../shared/text/show.ts";
import {
  type Filter,
  filterKeys,
  type Listed,
  type Rows,
  type StateAnswer,
  type StateQuery,
} from "./state.ts";

/** Options of the `list…` functions of the state API. */
export interface ListOptions {
  /**
   * All filters must hold. Texts compare without regard to case; numbers and flags compare as they
   * are written.
   */
  readonly filters?: readonly Filter[] | undefined;
  /** Rows at most, up to 10,000. Default 100. */
  readonly limit?: number | undefined;
  /** With the columns that are marked so. Default false. */
  readonly detail?: boolean | undefined;
  /** How long hosts have to answer. Default 30,000. */
  readonly timeoutMs?: number | undefined;
}

/** How many there are, by name and state. */
export interface Summary {
  /** How many there are in all. */
  readonly total: number;
  /** How many there are of each name in each state. */
  readonly byName: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Runtimes that did not answer in time, so that their share is missing. */
  readonly missing: readonly string[];
}

export type Summarized = "actors" | "tasks" | "objects";

/** Ray's servers give no more. */
export const maxLimit = 10_000;

const defaultLimit = 100;
const defaultTimeoutMs = 30_000;

const limit: Check = (value) => count(1)(value) ?? atMost(maxLimit)(value);

const filters: Check = (value) => {
  if (!Array.isArray(value)) return "must be a list of [key, predicate, value]";
  for (const filter of value) {
    if (!Array.isArray(filter) || filter.length !== 3 || typeof filter[0] !== "string")
      return `must hold lists of [key, "=" or "!=", value]`;
    if (filter[1] !== "=" && filter[1] !== "!=") return `must compare by "=" or "!="`;
  }
  return undefined;
};

/**
 * @param where names the question in errors
 * @throws InvalidOptionError
 */
export function checkedQuery(what: Listed, where: string, options: ListOptions = {}): StateQuery {
  if (!Object.hasOwn(filterKeys, what)) {
    throw new InvalidOptionError("what", `${where}: there are no ${show(what)} to list`);
  }
  checkOptions(where, options, { filters, limit, detail: flag, timeoutMs: count(1) });
  for (const [key] of options.filters ?? []) {
    if (filterKeys[what].includes(key)) continue;
    throw new InvalidOptionError(
      "filters",
      `${where}: ${what} cannot be filtered by "${key}"; they can be filtered by ${filterKeys[what].join(", ")}`,
    );
  }
  return {
    what,
    filters: options.filters ?? [],
    limit: options.limit ?? defaultLimit,
    detail: options.detail ?? false,
    timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
  };
}

const nameAndState: {
  readonly [What in Summarized]: (row: Rows[What]) => readonly [name: string, state: string];
} = {
  actors: (row) => [row.className, row.state],
  tasks: (row) => [row.name, row.state],
  objects: (row) => [row.name, row.taskStatus],
};

/** @throws InvalidOptionError for what has no summary */
export function summaryOf(what: Summarized, { rows, total, missing }: StateAnswer): Summary {
  if (!Object.hasOwn(nameAndState, what)) {
    throw new InvalidOptionError("what", `summarize: there is no summary of ${show(what)}`);
  }
  const byName = new Map<string, Map<string, number>>();
  for (const row of rows) {
    const [name, state] = nameAndState[what](row as never);
    let states = byName.get(name);
    if (states === undefined) byName.set(name, (states = new Map()));
    states.set(state, (states.get(state) ?? 0) + 1);
  }
  // Names are the user's: none of them reaches a prototype.
  const entries = [...byName].map(([name, states]) => [name, Object.fromEntries(states)] as const);
  return { total, byName: Object.fromEntries(entries), missing };
}
