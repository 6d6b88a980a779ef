/**
 * The actor in whose thread or process the user's code runs: one score at a time if it is
 * synchronous, many if it waits. It may be blocked or dead at any moment; its state is then read
 * from the run table. Knows no deadlines and no other executor.
 */

import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { announcements, uses } from "../client/announced.ts";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import { givenUpFailure } from "../outcome.ts";
import { failureOf } from "../faults/thrown.ts";
import type { ScoreFailure } from "../outcome.ts";
import { rewardVersion } from "../settings/reward-version.ts";
import { digestOf } from "../sample/sample-key.ts";
import type { PipelineSettings } from "../settings/settings.ts";
import { lastUsageOf, together } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";
import { Outbox } from "../travel/outbox.ts";
import type { NumberedRows } from "../travel/outbox.ts";
import { sendable } from "../travel/sendable.ts";
import type { Said } from "../travel/sendable.ts";
import { fromTables } from "../travel/table.ts";
import type { Table } from "../travel/table.ts";
import { BRIEF_TURN_MS, BriefRuns } from "./brief-runs.ts";
import { loadPipeline } from "./pipeline.ts";
import type { Pipeline } from "./pipeline.ts";
import type { RunTablePlace } from "./run-table.ts";
import { runTableAt } from "./run-tables.ts";
import { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run-tracker.ts";
import { runWork } from "./score-work.ts";
import type { ScoreWork } from "./score-work.ts";

/** The result of one run. */
export type ScoreReply = {
  readonly latencyMs: number;
  readonly overlaps: boolean;
  /** The limits that its endpoint announced, where a client reported them. */
  readonly announced?: AnnouncedLimits;
  readonly readsContext?: true;
  /** The usage of its answers, where a client reported it. */
  readonly used?: TokenUsage;
} & (
  | ({ readonly ok: true } & RewardResult)
  | { readonly ok: false; readonly error: ScoreFailure }
  /** The reply is big, or cannot travel at all: the worker has to ask for it (`reply`). */
  | { readonly ok: undefined }
);

/** Samples with their ids and their slots of the run table. */
export interface SampleChunk {
  readonly ids: readonly number[];
  readonly slots: readonly number[];
  readonly samples: readonly Table[];
  /** Ids of those that do not wait behind others that stand ready. */
  readonly first: readonly number[];
}

export interface SignOfLife {
  /** Ids of those whose results wait for a call. */
  readonly done: readonly number[];
  /** The usage so far of runs in progress, by their ids. */
  readonly used: readonly (readonly [number, TokenUsage])[];
  /** How long the thread has been busy since its first sample. */
  readonly busyMs: number;
}

/** Properties of the user's functions, known when they are loaded. */
export interface ExecutorTraits {
  /** Whether samples overlap in one thread. */
  readonly overlaps: boolean;
  /** Whether all answers to a prompt are scored at once. */
  readonly scoresGroups: boolean;
  readonly postProcesses: boolean;
  readonly logs: boolean;
  /** Whether the manager says where the scores of a batch stand. */
  readonly assembles: boolean;
}

/** The traits before the functions are loaded, or where there are none. */
export const noTraits: ExecutorTraits = {
  overlaps: false,
  scoresGroups: false,
  postProcesses: false,
  logs: false,
  assembles: false,
};

export interface LoadedExecutor extends ExecutorTraits {
  /** The version of the reward function that was loaded. */
  readonly version: string;
}

export class ScoreExecutor {
  readonly #tracker: RunTracker;
  readonly #pipeline: Promise<Pipeline>;
  readonly #version: Promise<string>;
  /** The pipeline, once it is loaded. */
  #loaded: Pipeline | undefined;
  readonly #atOnce: number;
  /** How busy the thread was when its first samples came. */
  #atFirst: ReturnType<typeof performance.eventLoopUtilization> | undefined;
  /** Runs in progress. */
  readonly #runs: Map<number, Run> = new Map();
  /** Samples among the runs that were not given up. */
  readonly #samples: Set<number> = new Set();
  /** Samples that wait for a synchronous run, or for one of the concurrent runs, to end. */
  #waiting: Given[] = [];
  /** A synchronous run has held the thread, and the next one is not to begin yet. */
  #isHeld = false;
  /** When the first synchronous run of this turn began. Undefined: all results have been sent. */
  #turnBeganAt: number | undefined;
  readonly #brief: BriefRuns = new BriefRuns();
  #isDue = false;
  /**
   * The context of the last call, without any sample's: for runs that begin because another sample
   * is over.
   */
  #asCalled = AsyncLocalStorage.snapshot();
  /** Its calls are on no sample's account. */
  readonly #outbox: Outbox<ScoreReply> = new Outbox((answer) =>
    this.#tracker.outside(() => setImmediate(answer)),
  );
  /** Replies that the worker has to ask for one by one. */
  readonly #kept: Map<number, ScoreReply> = new Map();

  /** @param atOnce samples at work; the others stand ready */
  constructor(settings: PipelineSettings, place: RunTablePlace, atOnce: number) {
    this.#atOnce = atOnce;
    const table = runTableAt(place);
    this.#tracker = new RunTracker(table);
    announcements.subscribe((announced) => {
      const { current } = this.#tracker;
      if (current !== undefined) current.announced = announced as AnnouncedLimits;
    });
    uses.subscribe((used) => {
      const { current } = this.#tracker;
      if (current !== undefined) current.used = together(current.used, used as TokenUsage);
    });
    // Registered before the handlers of the user's modules, which may take their time.
    process.prependListener("exit", () => table.exiting());
    const before = rewardVersion(settings);
    this.#pipeline = before.then(() => loadPipeline(settings, this.#tracker));
    this.#version = this.#pipeline.then(async () => {
      const after = await rewardVersion(settings);
      // Written while it was loaded: it is neither.
      return (await before) === after ? after : digestOf([await before, after]);
    });
    // Callers of ready() get the rejection.
    this.#version.catch(() => undefined);
  }

  /** Resolves when the user's modules are loaded; rejects with why they are not. */
  async ready(): Promise<LoadedExecutor> {
    this.#loaded = await this.#pipeline;
    const { overlaps, runGroup, postProcessScores, log, assembleRmScores } = this.#loaded;
    return {
      version: await this.#version,
      overlaps,
      scoresGroups: runGroup !== undefined,
      postProcesses: postProcessScores !== undefined,
      logs: log !== undefined,
      assembles: assembleRmScores !== undefined,
    };
  }

  /**
   * Begins the samples of the chunk, if any, and resolves to all results that are ready by then.
   * Waits until the functions are loaded.
   */
  async take({ ids, slots, samples, first }: SampleChunk): Promise<NumberedRows> {
    this.#atFirst ??= performance.eventLoopUtilization();
    this.#asCalled = AsyncLocalStorage.snapshot();
    for (const [at, sample] of fromTables(samples).entries()) {
      const id = ids[at] as number;
      const work = { kind: "sample", sample: sample as RewardSample } as const;
      const answer = (reply: ScoreReply): void => this.#answer(id, reply);
      const given = { id, slot: slots[at] as number, work, answer };
      if (first.includes(id)) this.#waiting.unshift(given);
      else this.#waiting.push(given);
    }
    this.#begin();
    return this.#outbox.exchange(ids.length);
  }

  /** Returns a kept reply once. Rejects with NotEncodableError if it cannot travel. */
  reply(id: number): ScoreReply | undefined {
    const reply = this.#kept.get(id);
    this.#kept.delete(id);
    return reply;
  }

  /**
   * Calls another of the user's functions. Rejects with NotEncodableError if the result cannot
   * travel.
   */
  async run(id: number, slot: number, work: ScoreWork): Promise<ScoreReply> {
    const pipeline = await this.#pipeline;
    return new Promise((answer) => {
      if (work.kind !== "sample") return this.#start(pipeline, { id, slot, work, answer });
      this.#waiting.push({
        id,
        slot,
        work,
        answer: (reply) => this.#answerAlone(id, reply, answer),
      });
      this.#begin();
    });
  }

  #begin(): void {
    const pipeline = this.#loaded;
    if (pipeline === undefined) throw new Error("samples came before the user's modules");
    while (!this.#isHeld && this.#samples.size < this.#atOnce) {
      const given = this.#waiting.shift();
      if (given === undefined) return;
      this.#samples.add(given.id);
      this.#start(pipeline, given);
      if (!pipeline.overlaps) this.#hold();
    }
  }

  /** The results of this turn are sent before the next run holds the thread. */
  #hold(): void {
    this.#isHeld = true;
    if (this.#turnBeganAt !== undefined) return;
    this.#turnBeganAt = performance.now();
    setImmediate(() =>
      setImmediate(() => {
        this.#turnBeganAt = undefined;
        this.#isHeld = false;
        this.#begin();
      }),
    );
  }

  /** Begins the next sample in this turn where a turn for each would cost more than the runs. */
  #beginNext(): void {
    const ranMs = performance.now() - (this.#turnBeganAt ?? -Infinity);
    if (!this.#isHeld || !this.#brief.areExpected || ranMs >= BRIEF_TURN_MS) {
      return this.#beginSoon();
    }
    this.#isHeld = false;
    this.#asCalled(() => this.#begin());
  }

  /**
   * Begins a ready sample in a free slot, on no sample's account, after the answers of this turn
   * have been sent.
   */
  #beginSoon(): void {
    if (this.#isDue || this.#waiting.length === 0) return;
    this.#isDue = true;
    this.#asCalled(() =>
      setImmediate(() => {
        this.#isDue = false;
        this.#begin();
      }),
    );
  }

  /** No async function of its own: with so many samples at work at once each of them counts. */
  #start(pipeline: Pipeline, { id, slot, work, answer }: Given): void {
    const run: Run = {
      id,
      slot,
      depth: 0,
      startedAt: undefined,
      abort: undefined,
      isAborted: false,
      announced: undefined,
      readsContext: false,
      used: undefined,
    };
    this.#runs.set(id, run);
    void this.#tracker.follow(run, () =>
      runWork(pipeline, work).then(
        (result) => answer(this.#over(run, pipeline, result)),
        (error: unknown) => answer(this.#failed(run, pipeline, error)),
      ),
    );
  }

  #over(run: Run, pipeline: Pipeline, result: RewardResult): ScoreReply {
    try {
      const { rewardScore, rewardExtraInfo } = result;
      return { ok: true, rewardScore, rewardExtraInfo, ...this.#measured(run, pipeline) };
    } catch (error) {
      // The user's manager failed.
      return this.#failed(run, pipeline, error);
    }
  }

  #failed(run: Run, pipeline: Pipeline, error: unknown): ScoreReply {
    return { ok: false, error: failureOf(error), ...this.#measured(run, pipeline) };
  }

  #measured(
    run: Run,
    { overlaps }: Pipeline,
  ): Pick<ScoreReply, "latencyMs" | "overlaps" | "announced" | "readsContext" | "used"> {
    this.#runs.delete(run.id);
    const now = performance.now();
    const { startedAt = now, announced, readsContext, used } = run;
    const latencyMs = now - startedAt;
    return {
      latencyMs,
      overlaps,
      ...(announced === undefined ? {} : { announced }),
      ...(readsContext ? { readsContext } : {}),
      ...(used === undefined ? {} : { used }),
    };
  }

  /** Sends the reply with others, or sends its marker and keeps it. */
  #answer(id: number, reply: ScoreReply): void {
    const sent = sentOf(reply);
    if (sent.ok === undefined) this.#kept.set(id, reply);
    this.#outbox.push(id, sent);
    this.#brief.ended(reply.latencyMs);
    if (this.#samples.delete(id)) this.#beginNext();
  }

  #answerAlone(id: number, reply: ScoreReply, answer: (reply: ScoreReply) => void): void {
    answer(reply);
    if (this.#samples.delete(id)) this.#beginSoon();
  }

  /** Aborts the run's signal; a sample that stands ready is not begun. */
  abort(id: number): void {
    const run = this.#runs.get(id);
    if (run === undefined) return this.#dropReady(id);
    run.isAborted = true;
    run.abort?.abort();
    if (this.#samples.delete(id)) this.#beginSoon();
  }

  #dropReady(id: number): void {
    const at = this.#waiting.findIndex((given) => given.id === id);
    if (at === -1) return;
    const [given] = this.#waiting.splice(at, 1);
    const overlaps = this.#loaded?.overlaps ?? false;
    given?.answer({ ok: false, error: givenUpFailure, latencyMs: 0, overlaps });
  }

  /**
   * Answers after a full turn of the event loop, so that every due timer and every received answer
   * was processed.
   */
  async breathe(): Promise<SignOfLife> {
    await delay(1);
    await turn();
    const used = [...this.#runs.values()].flatMap((run): SignOfLife["used"] =>
      run.used === undefined ? [] : [[run.id, run.used]],
    );
    const { active: busyMs } = performance.eventLoopUtilization(this.#atFirst);
    return { done: this.#outbox.waiting, used, busyMs };
  }
}

interface Given {
  readonly id: number;
  readonly slot: number;
  readonly work: ScoreWork;
  /** Called on its account, once. */
  readonly answer: (reply: ScoreReply) => void;
}

/** A reply as it travels with others, if it may. */
function sentOf(reply: ScoreReply): ScoreReply {
  if (reply.ok === undefined) return reply;
  const { latencyMs, overlaps, used } = reply;
  const measured = { latencyMs, overlaps, ...(used === undefined ? {} : { used }) };
  try {
    if (reply.ok) {
      const said = sendable(reply.rewardExtraInfo);
      if (said === reply.rewardExtraInfo) return reply;
      if (said !== undefined) return { ...reply, rewardExtraInfo: said };
    } else if (sendable(reply.error as unknown as Said) !== undefined) return reply;
  } catch (error) {
    return { ok: false, error: failureOf(error), ...measured };
  }
  // Whether it can travel or not, it is paid for.
  const whole = lastUsageOf(reply.ok ? { ...reply, valid: true } : { ...reply, valid: false });
  return { ok: undefined, ...measured, ...(whole === undefined ? {} : { used: whole }) };
}

/** A thread unless its options say otherwise. */
export const ScoreExecutorActor: ray.ActorClass<typeof ScoreExecutor> = ray.remote(ScoreExecutor, {
  isolation: "thread",
});
