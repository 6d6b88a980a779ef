/**
 * The session on one screen: nodes with what they hold, actors by class and state, calls per
 * second, waiting requests with their reasons, memory, and the last lines.
 */
import type { ActorRow, DashboardSession, MemoryStatus } from "@rayling/core/dashboard";
import { maxLimit } from "@rayling/core/dashboard";
import { logLines } from "./log-lines.ts";
import { CallRate } from "./call-rate.ts";
import { askMs } from "./rows.ts";
import type { View } from "./view.ts";

/** Actors that are named as stuck, at most. */
const mostStuck = 50;

export function overviewOf(session: DashboardSession): View {
  const rate = new CallRate();
  return async (query) => {
    const [actors, tasks, memory] = await Promise.all([
      session.list("actors", { limit: maxLimit, detail: true, timeoutMs: askMs }),
      session.summarize("tasks", { timeoutMs: askMs }),
      session.memory({ limit: 1, timeoutMs: askMs }),
    ]);
    const rows = actors.rows.filter(isActor);
    const status = session.status();
    return {
      status,
      actorsByClass: byClass(rows),
      callsPerSecond: rate.add(rows),
      running: sumOf(rows, ({ runningCalls }) => runningCalls),
      queued: sumOf(rows, ({ queuedCalls }) => queuedCalls),
      tasks,
      stuck: rows.filter(isStuck).slice(0, mostStuck).map(stuckOf),
      memory: memoryOf(memory),
      missing: actors.missing,
      logs: logLines(session, query),
    };
  };
}

function isActor(row: unknown): row is ActorRow {
  return typeof row === "object" && row !== null && "className" in row;
}

function byClass(rows: readonly ActorRow[]): readonly object[] {
  const classes = Object.entries(Object.groupBy(rows, ({ className }) => className));
  return classes.map(([className, of = []]) => ({
    className,
    states: Object.fromEntries(
      Object.entries(Object.groupBy(of, ({ state }) => state)).map(([state, those]) => [
        state,
        those.length,
      ]),
    ),
  }));
}

function sumOf(rows: readonly ActorRow[], value: (row: ActorRow) => number | undefined): number {
  return rows.reduce((sum, row) => sum + (value(row) ?? 0), 0);
}

/** An actor that waits for a place is among the waiting requests. */
function isStuck({ state, pendingReason }: ActorRow): boolean {
  const isElsewhere = state === "PENDING_CREATION" || state === "ALIVE" || state === "DEAD";
  return pendingReason !== undefined && !isElsewhere;
}

function stuckOf({ actorId, className, state, pendingReason }: ActorRow): object {
  return { actorId, className, state, pendingReason };
}

function memoryOf({ processBytes, processLimitBytes, stores }: MemoryStatus): object {
  const spilledBytes = stores.reduce((sum, { bytesSpilled }) => sum + bytesSpilled, 0);
  return {
    processBytes,
    processLimitBytes,
    spilledBytes,
    residentBytes: process.memoryUsage.rss(),
  };
}
