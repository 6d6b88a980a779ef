/**
 * The session on one screen: nodes with what they hold, actors by class and state, calls per
 * second, waiting requests with their reasons, memory, and the last lines.
 */
import type {
  ActorRow,
  DashboardSession,
  MemoryStatus,
  SessionStatus,
} from "@rayling/core/dashboard";
import { maxLimit } from "@rayling/core/dashboard";
import { logLines } from "./log-lines.ts";
import type { LogTail } from "./log-lines.ts";
import { CallRate } from "./call-rate.ts";
import { askMs } from "./rows.ts";
import type { View } from "./view.ts";

export interface Overview {
  readonly status: SessionStatus;
  readonly actorsByClass: readonly ActorsOfClass[];
  /** Undefined at the first look. */
  readonly callsPerSecond: number | undefined;
  /** Calls of actors that run. */
  readonly running: number;
  /** Calls of actors that wait. */
  readonly queued: number;
  readonly tasks: Awaited<ReturnType<DashboardSession["summarize"]>>;
  readonly stuck: readonly StuckActor[];
  readonly memory: MemoryFigures;
  /** Hosts that did not answer. */
  readonly missing: readonly string[];
  readonly logs: LogTail;
}

interface ActorsOfClass {
  readonly className: string;
  readonly states: Readonly<Record<string, number>>;
}

type StuckActor = Pick<ActorRow, "actorId" | "className" | "state" | "pendingReason">;

interface MemoryFigures extends Pick<MemoryStatus, "processBytes" | "processLimitBytes"> {
  readonly spilledBytes: number;
  readonly residentBytes: number;
}

/** Actors that are named as stuck, at most. */
const mostStuck = 50;

export function overviewOf(session: DashboardSession): View {
  const rate = new CallRate();
  return async (query): Promise<Overview> => {
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

function byClass(rows: readonly ActorRow[]): readonly ActorsOfClass[] {
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

function stuckOf({ actorId, className, state, pendingReason }: ActorRow): StuckActor {
  return { actorId, className, state, pendingReason };
}

function memoryOf({ processBytes, processLimitBytes, stores }: MemoryStatus): MemoryFigures {
  const spilledBytes = stores.reduce((sum, { bytesSpilled }) => sum + bytesSpilled, 0);
  return {
    processBytes,
    processLimitBytes,
    spilledBytes,
    residentBytes: process.memoryUsage.rss(),
  };
}
