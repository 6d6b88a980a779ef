/**
 * The runs that one executor has, as its worker sees them: those that are pending, each with its
 * slot in the run table, and those that have their outcome and still keep their slot there.
 *
 * Invariant: a run keeps its slot until the executor has answered it. Knows no deadline, and does
 * not ask the executor: it reads the table.
 */

import type { RunTable, RunTablePlace } from "../../executor/run-table/run-table.ts";
import { newRunTable } from "../../executor/run-table/run-tables.ts";
import { NumberedItems } from "../../exchange/numbered-items.ts";
import type { EarlierFailure, TokenUsage } from "../../outcome.ts";
import type { ExecutorSettings } from "../../settings/settings.ts";
import { readyOf } from "../slots.ts";
import type { Job } from "./job.ts";
import { RunSlots } from "./run-slots.ts";

/** Facts about a run that are known before its end: most have none. */
interface RunNotes {
  givenUpAt?: number;
  isEndless?: boolean;
  loadingMs?: number;
  used?: TokenUsage;
  failed?: EarlierFailure;
}

const noNotes: RunNotes = {};

/** A job in one executor. Small, because as many wait as samples are asked at once. */
export class SentRun {
  readonly id: number;
  readonly slot: number;
  readonly job: Job;
  /** The listener on the job's signal, if it has one. */
  readonly giveUp: (() => void) | undefined;
  #notes: RunNotes = noNotes;

  constructor(id: number, slot: number, job: Job, giveUp: (run: SentRun) => void) {
    this.id = id;
    this.slot = slot;
    this.job = job;
    this.giveUp = job.signal && giveUp.bind(undefined, this);
  }

  /** When it was given up; undefined while its result is still needed. */
  get givenUpAt(): number | undefined {
    return this.#notes.givenUpAt;
  }

  /** The run did not end at a sign of life after its deadline. */
  get isEndless(): boolean {
    return this.#notes.isEndless === true;
  }

  /**
   * How long a first run's thread was busy with loading, which does not count. Undefined: not known
   * yet.
   */
  get loadingMs(): number | undefined {
    return this.#notes.loadingMs;
  }

  /** The usage of its answers, as far as it is known before the reply. */
  get used(): TokenUsage | undefined {
    return this.#notes.used;
  }

  /** The last of its requests that failed, as far as it is known before the reply. */
  get failed(): EarlierFailure | undefined {
    return this.#notes.failed;
  }

  note(more: RunNotes): void {
    this.#notes = { ...this.#notes, ...more };
  }
}

export class SentRuns {
  /** How many samples stand ready in there, behind those at work. */
  readonly ready: number;
  readonly slots: RunSlots;
  readonly #table: RunTable;
  readonly #pending: NumberedItems<SentRun> = new NumberedItems();
  readonly #overdue: Map<number, SentRun> = new Map();
  readonly #mostEndless: number;
  #count = 0;
  /** The last run that was sent while the thread was new: it may load modules. */
  #lastCold = Infinity;

  constructor(settings: ExecutorSettings) {
    const { isolation, concurrency } = settings;
    this.ready = readyOf(settings);
    this.#mostEndless = concurrency;
    // Twice the concurrency: a run that is overdue keeps its slot until it ends.
    this.#table = newRunTable(isolation, 2 * concurrency + this.ready);
    this.slots = new RunSlots(this.#table.slots);
  }

  get place(): RunTablePlace {
    return this.#table.place;
  }

  /** How many runs there have ever been. */
  get count(): number {
    return this.#count;
  }

  get pending(): Pick<NumberedItems<SentRun>, "size" | "get" | "values"> {
    return this.#pending;
  }

  /** Runs that have their outcome, and still wait for something in there. */
  get overdue(): ReadonlyMap<number, SentRun> {
    return this.#overdue;
  }

  /** Whether endless runs hold so many slots and so much memory that a new thread is better. */
  get areWornOut(): boolean {
    if (this.#pending.size === 0 && !this.slots.hasFree) return true;
    if (this.#overdue.size === 0) return false;
    let endless = 0;
    for (const { isEndless } of this.#overdue.values()) if (isEndless) endless += 1;
    return endless >= this.#mostEndless;
  }

  /** Id of the run whose code is on the stack; 0 for none. */
  get runningId(): number {
    return this.#table.runningId;
  }

  /** The executor is exiting: its death is not reported yet. */
  get isExiting(): boolean {
    return this.#table.isExiting;
  }

  /** @param giveUp called when its result is no longer needed */
  add(job: Job, giveUp: (run: SentRun) => void): SentRun {
    const slot = this.slots.take();
    this.#table.clear(slot);
    this.#count += 1;
    const id = this.#count;
    const run = new SentRun(id, slot, job, giveUp);
    this.#pending.set(id, run);
    job.runs = this;
    job.runId = id;
    if (run.giveUp !== undefined) job.signal?.addEventListener("abort", run.giveUp, { once: true });
    return run;
  }

  /** Finds a run that keeps its slot. */
  find(id: number): SentRun | undefined {
    return this.#pending.get(id) ?? this.#overdue.get(id);
  }

  /** The executor has answered the run. Returns whether it was pending. */
  answered(run: SentRun): boolean {
    this.slots.giveBack(run.slot);
    leave(run);
    this.#lastCold = Math.min(this.#lastCold, this.#count);
    const wasPending = this.#pending.delete(run.id);
    if (!wasPending) this.#overdue.delete(run.id);
    return wasPending;
  }

  /** The run gets its outcome now, and keeps its slot. */
  setAside(run: SentRun): void {
    this.#pending.delete(run.id);
    this.#overdue.set(run.id, run);
  }

  /** Takes all pending runs out, whose executor will never answer them. */
  takePending(): SentRun[] {
    const runs = [...this.#pending.values()];
    this.#pending.clear();
    for (const run of runs) leave(run);
    return runs;
  }

  /** Whether the thread was new when the run was sent: it may load modules. */
  isFirst({ id }: SentRun): boolean {
    return id <= this.#lastCold;
  }

  hasStarted({ slot }: SentRun): boolean {
    return this.#table.hasStarted(slot);
  }

  /** Returns how long a pending job has been at work; undefined before that. */
  jobAgeMs({ runId }: Job): number | undefined {
    const run = this.#pending.get(runId);
    return run && this.startedAgoMs(run);
  }

  /** Returns the time since its function started; undefined before that. */
  startedAgoMs({ slot }: SentRun): number | undefined {
    return this.#table.ageMs(slot);
  }

  /** Returns the time since its function started, without the thread's loading time. */
  ageMs(run: SentRun): number | undefined {
    const ageMs = this.startedAgoMs(run);
    return ageMs === undefined ? undefined : ageMs - (run.loadingMs ?? 0);
  }

  /** Loading time of the thread does not count for its first samples. */
  loaded(busyMs: number): void {
    for (const run of this.#pending.values()) {
      if (!this.isFirst(run) || run.loadingMs !== undefined) continue;
      run.note({ loadingMs: Math.min(busyMs, this.startedAgoMs(run) ?? 0) });
    }
  }

  /** Closes the table for good. */
  close(): void {
    this.#table.close();
    this.#pending.clear();
    this.#overdue.clear();
  }
}

/** The job has left the executor: its signal says nothing to the run any more. */
export function leave({ job, giveUp }: SentRun): void {
  job.executor = undefined;
  if (giveUp !== undefined) job.signal?.removeEventListener("abort", giveUp);
}
