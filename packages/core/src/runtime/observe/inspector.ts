/**
 * The driver's collection of facts about the session, and its answers to queries: state, timeline,
 * metrics.
 *
 * Hosts report at most once a second, and are asked for the rest at a query. All collections are
 * bounded.
 */
import type { Remote } from "comlink";
import type { HostControl } from "../../host/host-control.ts";
import { type MetricPart, Metrics } from "../../telemetry/metrics.ts";
import { keptEvents, type TaskEvent, TaskEvents } from "../../telemetry/task-events.ts";
import { ThreadRecords } from "../../telemetry/thread-records.ts";
import type {
  HostReport,
  InsideDirectory,
  RuntimeView,
  StateAnswer,
  StateQuery,
  TaskRow,
  TraceEvent,
  WorkerRow,
} from "../../rpc/state.ts";
import type { DriverAbout, MemoryStatus, SessionStatus } from "../../rpc/commands.ts";
import type { StackAnswer, WaitLook } from "../../rpc/stacks.ts";
import {
  checkedQuery,
  type ListOptions,
  type Summarized,
  type Summary,
  summaryOf,
} from "../../rpc/state-query.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { OldestFirst } from "../../shared/fifo.ts";
import { warn } from "../../shared/text/warning.ts";
import type { LocalDirectory } from "../directory.ts";
import type { Host } from "../launch/host.ts";
import { stacksOf } from "../stacks/stacks.ts";
import { metricsText } from "./metrics-text.ts";
import { sessionStatus } from "./session-status.ts";
import { answerMemory, answerState, type StateParts, workerRow } from "./state.ts";
import { answerOf } from "./actor-status.ts";
import { toTrace } from "./timeline.ts";
import { asError } from "../../shared/errors/thrown.ts";

/** The number of dead hosts whose events and end are remembered. */
const maxGone = 1000;

/** The most events of all dead hosts together. */
const maxGoneEvents: number = 10 * keptEvents;

/** The most series of all hosts together, because hosts choose their names. */
const maxSeries = 100_000;

/** The most different warnings about metrics; each is shown once. */
const maxWarnings = 1000;

/** A query for the newest figures waits this long for a host, in ms. */
const askMs = 1000;

export interface InspectorParts {
  readonly driverId: string;
  readonly nodeId: () => string;
  readonly directory: () => LocalDirectory;
  readonly viewDriver: () => RuntimeView;
  /** Returns the driver's own waits. */
  readonly viewWaits: () => readonly WaitLook[];
  /** Returns the bytes of big values in memory, of all threads of the process. */
  readonly usedBytes: () => number;
  readonly limitBytes: number;
  readonly about: DriverAbout;
  /** The driver's own events, if it records them. */
  readonly ownEvents: TaskEvents | undefined;
  /** The histograms of the driver's own calls. */
  readonly ownTimes: Metrics;
}

interface Gone {
  readonly row: WorkerRow;
  readonly events: readonly TaskEvent[];
}

export class Inspector implements InsideDirectory {
  readonly #parts: InspectorParts;
  readonly #metrics: Metrics = new Metrics(maxSeries);
  readonly #records: ThreadRecords = new ThreadRecords((part) =>
    this.#add(part, this.#parts.driverId),
  );
  readonly #warnings: Set<string> = new Set();
  readonly #events: Map<string, TaskEvents> = new Map();
  readonly #gone: Map<string, Gone> = new Map();
  readonly #oldestGone: OldestFirst<string, Gone> = new OldestFirst(this.#gone);
  #goneEvents = 0;

  constructor(parts: InspectorParts) {
    this.#parts = parts;
  }

  /** From now on the metrics that the driver's code records are of this session. */
  begin(): void {
    this.#records.begin();
  }

  /** The session has ended: what its code has recorded is no other session's. */
  end(): void {
    this.#records.end();
  }

  reported(hostId: string, { events, metrics }: HostReport): void {
    if (events.length > 0) {
      let own = this.#events.get(hostId);
      if (own === undefined) this.#events.set(hostId, (own = new TaskEvents()));
      for (const event of events) own.add(event);
    }
    for (const part of metrics) this.#add(part, hostId);
  }

  hostEnded(host: Host, cause: DeathCause): void {
    const events = this.#events.get(host.id)?.all() ?? [];
    this.#events.delete(host.id);
    const row: WorkerRow = {
      ...workerRow(host),
      isAlive: false,
      exitType: cause.kind,
      exitDetail: cause.message,
    };
    this.#gone.set(host.id, { row, events });
    this.#goneEvents += events.length;
    while (this.#gone.size > maxGone || this.#goneEvents > maxGoneEvents) {
      const [, oldest] = this.#oldestGone.take() ?? [];
      if (oldest === undefined) break;
      this.#goneEvents -= oldest.events.length;
    }
  }

  state(query: StateQuery): Promise<StateAnswer> {
    return answerState(this.#stateParts(), query);
  }

  status(): SessionStatus {
    return sessionStatus(this.#parts.about, this.#parts.directory(), this.#parts.nodeId());
  }

  /** Summarises all rows. */
  async summarize(what: Summarized, options: Pick<ListOptions, "timeoutMs">): Promise<Summary> {
    const query = checkedQuery(what, "summarize", options);
    return summaryOf(what, await this.state({ ...query, limit: Infinity }));
  }

  async memory(options: Pick<ListOptions, "limit" | "timeoutMs">): Promise<MemoryStatus> {
    const { usedBytes, limitBytes } = this.#parts;
    const query = checkedQuery("objects", "memory", options);
    const { stores, objects, missing } = await answerMemory(this.#stateParts(), query.timeoutMs);
    return {
      processBytes: usedBytes(),
      processLimitBytes: Math.floor(limitBytes),
      stores,
      objects: objects.slice(0, query.limit),
      totalObjects: objects.length,
      missing,
    };
  }

  stacks(options: Pick<ListOptions, "timeoutMs">): Promise<StackAnswer> {
    const { timeoutMs } = checkedQuery("workers", "stacks", options);
    const tasksAt = async (hostId: string, limitMs: number): Promise<readonly TaskRow[]> => {
      const filters = [["workerId", "=", hostId] as const];
      const query = checkedQuery("tasks", "stacks", { filters, timeoutMs: limitMs, limit: 100 });
      return (await this.state(query)).rows as readonly TaskRow[];
    };
    const { driverId, nodeId, directory, viewWaits } = this.#parts;
    const parts = { driverId, nodeId: nodeId(), directory: directory(), viewWaits, tasksAt };
    return stacksOf(parts, timeoutMs);
  }

  async timeline(): Promise<readonly TraceEvent[]> {
    const events = await this.#allEvents(askMs);
    const nodes = new Map(
      this.#parts
        .directory()
        .hosts()
        .map((host) => [host.id, host.nodeId]),
    );
    for (const [id, { row }] of this.#gone) nodes.set(id, row.nodeId);
    return toTrace(
      [...events].map(([runtimeId, ofRuntime]) => ({
        runtimeId,
        nodeId: nodes.get(runtimeId) ?? this.#parts.nodeId(),
        events: ofRuntime,
      })),
    );
  }

  async metricsText(): Promise<string> {
    await this.#collect(askMs);
    this.#records.take();
    for (const part of this.#parts.ownTimes.take()) this.#add(part, this.#parts.driverId);
    const query = { filters: [], limit: 0, detail: false, timeoutMs: askMs };
    return metricsText(this.#metrics, {
      directory: this.#parts.directory(),
      usedBytes: this.#parts.usedBytes,
      rows: async (what) => {
        const answer = await this.state({ ...query, what, limit: Infinity });
        return answer.rows as never;
      },
    });
  }

  #add(part: MetricPart, hostId: string): void {
    try {
      this.#metrics.add(part);
    } catch (error) {
      const warning = `${hostId}: ${asError(error).message}`;
      if (this.#warnings.has(warning) || this.#warnings.size >= maxWarnings) return;
      this.#warnings.add(warning);
      warn(warning);
    }
  }

  #stateParts(): StateParts {
    return {
      driverId: this.#parts.driverId,
      nodeId: this.#parts.nodeId(),
      directory: this.#parts.directory(),
      viewDriver: this.#parts.viewDriver,
      events: (timeoutMs) => this.#allEvents(timeoutMs),
      deadWorkers: () => [...this.#gone.values()].map(({ row }) => row),
    };
  }

  /** Returns the events by runtime: of the driver, of living hosts and of dead ones. */
  async #allEvents(timeoutMs: number): Promise<ReadonlyMap<string, readonly TaskEvent[]>> {
    const { ownEvents, driverId } = this.#parts;
    const all = new Map<string, readonly TaskEvent[]>();
    if (ownEvents === undefined) return all;
    await this.#collect(timeoutMs);
    all.set(driverId, ownEvents.all());
    for (const [hostId, { events }] of this.#gone) if (events.length > 0) all.set(hostId, events);
    for (const [hostId, events] of this.#events) all.set(hostId, events.all());
    return all;
  }

  async #collect(timeoutMs: number): Promise<void> {
    await Promise.all(
      this.#parts
        .directory()
        .hosts()
        .map(async (host) => {
          // A host reports its records only once, so a report that is too late for the query still
          // counts.
          const report = async (control: Remote<HostControl>): Promise<void> =>
            this.reported(host.id, await control.report());
          await answerOf<void>(host, report, timeoutMs);
        }),
    );
  }
}
