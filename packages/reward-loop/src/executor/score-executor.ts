/**
 * The actor in whose thread or process the user's code runs: one score at a time if it is
 * synchronous, many if it waits. It may be blocked or dead at any moment; its state is then read
 * from the run table. Knows no deadlines and no other executor.
 */

import { setTimeout as delay } from "node:timers/promises";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import { warn } from "@rayling/core/terminal";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { announcements, itemAt, requests } from "@rayling/reward-manager-registry/values";
import { failures, uses } from "../client/announced.ts";
import type { AnnouncedLimits } from "@rayling/reward-manager-registry/values";
import { earlierOf, givenUpFailure } from "../outcome.ts";
import { failureOf } from "../faults/thrown.ts";
import { rewardVersion } from "../settings/reward-version.ts";
import { digestOf } from "../sample/sample-key.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import type { PipelineSettings, RewardVersion } from "../settings/settings.ts";
import { lastUsageOf, together } from "../spend/usage.ts";
import type { EarlierFailure, TokenUsage, Writable } from "../outcome.ts";
import { Outbox } from "../exchange/result-outbox.ts";
import type { NumberedRows } from "../exchange/result-outbox.ts";
import { asTexts } from "../exchange/unsendable-as-text.ts";
import { sendable } from "../exchange/sendable.ts";
import { fromTables, Layouts } from "../exchange/column-table.ts";
import type { Table } from "../exchange/column-table.ts";
import { trainingField } from "../sample/lane.ts";
import { traceChats } from "../sample/chat-spans.ts";
import { loadFunctions } from "./user-functions.ts";
import type { UserFunctions } from "./user-functions.ts";
import type { RunTablePlace } from "./run-table/run-table.ts";
import { runTableAt } from "./run-table/run-tables.ts";
import { endLeftovers, forgiveLeftovers } from "./leftovers.ts";
import { RequestGate } from "./request-gate.ts";
import { RunTracker } from "./run-tracker.ts";
import { noSample, Run } from "./run.ts";
import type { RunEnds, ScoreReply } from "./run.ts";
import { SampleQueue } from "./sample-queue.ts";
import { beginOther, beginSample } from "./run-work.ts";
import type { ScoreWork } from "./score-work.ts";

/** Samples with their ids and their slots of the run table. */
export interface SampleChunk {
  readonly ids: readonly number[];
  readonly slots: readonly number[];
  readonly samples: readonly Table<RewardSample>[];
  /** Ids of those that do not wait behind others that stand ready. */
  readonly first: readonly number[];
  /** The id and the slot, in turn, of each run whose result is no longer needed. */
  readonly aborted: readonly number[];
}

export interface SignOfLife {
  /** Ids of those whose results wait for a call. */
  readonly done: readonly number[];
  /** The usage so far of runs in progress, by their ids. */
  readonly used: readonly (readonly [number, TokenUsage])[];
  /** The last failed request of runs in progress, by their ids. */
  readonly failed: readonly (readonly [number, EarlierFailure])[];
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

/** The loop of an executor, as far as it has to know it. */
export interface ExecutorContext {
  /** Limits of the endpoint that its samples ask. */
  readonly ofEndpoint?: PolicySettings["limits"];
  /** The version that the loop has read. */
  readonly version?: RewardVersion | undefined;
}

export interface LoadedExecutor extends ExecutorTraits {
  /** The version of the reward function that was loaded. */
  readonly version: string;
}

export class ScoreExecutor {
  readonly #tracker: RunTracker;
  readonly #functions: Promise<UserFunctions>;
  readonly #version: Promise<string>;
  /** The functions, once they are loaded. */
  #loaded: UserFunctions | undefined;
  /** How busy the thread was when its first samples came. */
  #atFirst: ReturnType<typeof performance.eventLoopUtilization> | undefined;
  /** Runs in progress, by their slots. */
  readonly #runs: (Run | undefined)[] = [];
  readonly #queue: SampleQueue<Run>;
  /** Its calls are on no sample's account. */
  readonly #outbox: Outbox<ScoreReply, TokenUsage | undefined> = new Outbox(
    (answer) => this.#tracker.outside(() => setImmediate(answer)),
    () => this.#queue.sent(),
  );
  #hasWarned = false;
  /** The run whose function has been called and has not returned yet. */
  #beginning: Run | undefined;
  /** Replies that the worker has to ask for one by one. */
  readonly #kept: Map<number, ScoreReply> = new Map();

  /**
   * @param atOnce the most samples at work; the others stand ready
   */
  constructor(
    settings: PipelineSettings,
    place: RunTablePlace,
    atOnce: number,
    { ofEndpoint, version }: ExecutorContext = {},
  ) {
    this.#queue = new SampleQueue(
      atOnce,
      (run) => this.#begin(run),
      () => this.#outbox.isEmpty,
    );
    const table = runTableAt(place);
    this.#tracker = new RunTracker(table);
    forgiveLeftovers(this.#tracker);
    traceChats();
    hearClients(this.#tracker);
    if (ofEndpoint !== undefined) {
      const gate = new RequestGate(ofEndpoint, this.#tracker);
      requests.subscribe((request) => gate.announced(request));
    }
    // Registered before the handlers of the user's modules, which may take their time.
    process.prependListener("exit", () => table.exiting());
    const before = rewardVersion(settings, version);
    this.#functions = loadFunctions(settings, this.#tracker);
    this.#version = this.#functions.then(() => {
      const after = rewardVersion(settings, before);
      if (before.version === after.version) return after.version;
      // Written while it was loaded: it is neither.
      return digestOf([before.version, after.version]);
    });
    // Callers of ready() get the rejection.
    this.#version.catch(() => undefined);
  }

  /** Resolves when the user's modules are loaded; rejects with why they are not. */
  async ready(): Promise<LoadedExecutor> {
    this.#loaded = await this.#functions;
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
   * Begins the samples of the chunk, if any, aborts what is no longer needed, and resolves to all
   * results that are ready by then.
   */
  async take({
    ids,
    slots,
    samples,
    first,
    aborted,
  }: SampleChunk): Promise<NumberedRows<ScoreReply, TokenUsage | undefined>> {
    this.#atFirst ??= performance.eventLoopUtilization();
    this.#queue.called();
    const given = fromTables(samples, layouts);
    for (let at = 0; at < given.length; at++) {
      const [id, sample] = [itemAt(ids, at), itemAt(given, at)];
      const run = new Run(id, itemAt(slots, at), sample, this.#ends);
      this.#queue.push(run, first.includes(id));
    }
    for (let at = 0; at < aborted.length; at += 2) {
      this.#abort(itemAt(aborted, at), itemAt(aborted, at + 1));
    }
    this.#queue.pump();
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
    const functions = await this.#functions;
    return new Promise((resolve) => {
      const run = new Run(
        id,
        slot,
        noSample,
        this.#endsBy((_, reply) => resolve(reply)),
      );
      this.#follow(run, () => beginOther(functions, run, work));
    });
  }

  /** Scores a sample in a call of its own. Rejects as `run`. */
  async score(id: number, slot: number, sample: RewardSample): Promise<ScoreReply> {
    // In the queue before the next call comes, which may abort it.
    if (this.#loaded === undefined) await this.#functions;
    return new Promise((resolve) => {
      const ends = this.#endsBy((run, reply) => this.#answerAlone(run, reply, resolve));
      this.#queue.push(new Run(id, slot, sample, ends), false);
      this.#queue.pump();
    });
  }

  #begin(run: Run): boolean {
    const functions = this.#loaded;
    if (functions === undefined) throw new Error("samples came before the user's modules");
    this.#follow(run, () => beginSample(functions, run));
    return functions.overlaps;
  }

  /**
   * Each end of a run has the run bound, and does not find it by the context: a library that
   * replaces `then` (zone.js) runs reactions in the context of another run, which would get this
   * one's score.
   */
  #follow(run: Run, begin: () => void): void {
    this.#runs[run.slot] = run;
    const outer = this.#beginning;
    this.#beginning = run;
    try {
      this.#tracker.follow(run, begin);
    } finally {
      this.#beginning = outer;
    }
  }

  /** A promise of the user's own may end twice: a run has ended when its place is free. */
  #endsBy(answer: RunEnds["answer"]): RunEnds {
    return {
      answer,
      settled: (run, result) => {
        if (this.#runs[run.slot] === run) answer(run, this.#over(run, result));
      },
      failed: (run, error) => {
        if (this.#runs[run.slot] === run) answer(run, this.#failed(run, error));
      },
    };
  }

  #over(run: Run, result: RewardResult): ScoreReply {
    try {
      const { rewardScore, rewardExtraInfo } = result;
      const { latencyMs, overlaps } = this.#measured(run);
      return withSeen({ ok: true, rewardScore, rewardExtraInfo, latencyMs, overlaps }, run);
    } catch (error) {
      // The user's manager failed.
      return this.#failed(run, error);
    }
  }

  #failed(run: Run, error: unknown): ScoreReply {
    // The result of an aborted run is no longer needed.
    const failure = failureOf(error, !run.isAborted);
    const { latencyMs, overlaps } = this.#measured(run);
    return withSeen({ ok: false, error: failure, latencyMs, overlaps }, run);
  }

  #measured(run: Run): Pick<ScoreReply, "latencyMs" | "overlaps"> {
    this.#runs[run.slot] = undefined;
    const latencyMs = this.#tracker.takenMs(run);
    // A function that has not waited has nothing under way that was to be a part of its score.
    if (this.#beginning !== run) endLeftovers(run, this.#tracker);
    return { latencyMs, overlaps: this.#overlaps };
  }

  /** Sends replies with others, or keeps one until it is asked for. */
  readonly #ends: RunEnds = this.#endsBy((run, reply) => {
    const { id } = run;
    const sent = sentOf(reply);
    if (sent === undefined) {
      this.#kept.set(id, this.#travelling(reply));
      // Whether it can travel or not, it is paid for.
      const used = lastUsageOf(reply.ok ? { ...reply, valid: true } : { ...reply, valid: false });
      this.#outbox.withhold(id, used);
    } else this.#outbox.push(id, sent);
    this.#queue.ended(run, reply.latencyMs);
  });

  #answerAlone(run: Run, reply: ScoreReply, answer: (reply: ScoreReply) => void): void {
    answer(this.#travelling(reply));
    this.#queue.left(run);
  }

  /** Returns the reply with texts in place of what cannot travel, which is told once. */
  #travelling(reply: ScoreReply): ScoreReply {
    if (!reply.ok) return reply;
    const { value, asText } = asTexts(reply.rewardExtraInfo, "extra");
    const [first] = asText;
    if (first === undefined) return reply;
    if (!this.#hasWarned) {
      this.#hasWarned = true;
      const problem = ray.inspectSerializability(reply.rewardExtraInfo, "extra");
      const why = problem?.message ?? `${first} cannot travel`;
      warn(`extra info of scores travels as text where it cannot otherwise: ${why}`);
    }
    return { ...reply, rewardExtraInfo: value };
  }

  /** Aborts the run's signal; a sample that stands ready is not begun. */
  #abort(id: number, slot: number): void {
    const run = this.#runs[slot];
    if (run?.id !== id) return this.#dropReady(id);
    run.isAborted = true;
    const { abort } = run;
    if (abort !== undefined) this.#tracker.follow(run, () => abort.abort());
    this.#queue.left(run);
  }

  #dropReady(id: number): void {
    const run = this.#queue.drop(id);
    const overlaps = this.#overlaps;
    run?.ends.answer(run, { ok: false, error: givenUpFailure, latencyMs: 0, overlaps });
  }

  get #overlaps(): boolean {
    return this.#loaded?.overlaps ?? false;
  }

  /**
   * Answers after a full turn of the event loop, so that every due timer and every received answer
   * was processed.
   */
  async breathe(): Promise<SignOfLife> {
    await delay(1);
    await turn();
    const used = this.#runs.flatMap((run): SignOfLife["used"] =>
      run?.seen.used === undefined ? [] : [[run.id, run.seen.used]],
    );
    const failed = this.#runs.flatMap((run): SignOfLife["failed"] =>
      run?.seen.failed === undefined ? [] : [[run.id, run.seen.failed]],
    );
    const { active: busyMs } = performance.eventLoopUtilization(this.#atFirst);
    return { done: this.#outbox.waiting, used, failed, busyMs };
  }
}

/** Samples that came without a context are in the training lane. */
const layouts: Layouts = new Layouts({ ...trainingField });

/** Keeps on each run the reports of the clients that its function uses. */
function hearClients(tracker: RunTracker): void {
  announcements.subscribe((announced) => {
    tracker.current?.saw({ announced: announced as AnnouncedLimits });
  });
  uses.subscribe((used) => {
    const { current } = tracker;
    const all = together(current?.seen.used, used as TokenUsage);
    if (all !== undefined) current?.saw({ used: all });
  });
  failures.subscribe((error) => {
    const { current } = tracker;
    const failed = earlierOf(failureOf(error, false));
    if (current === undefined || failed === undefined) return;
    current.saw({ failed: { ...failed, requests: (current.seen.failed?.requests ?? 0) + 1 } });
  });
}

/** Adds what the run has told of its calls. Field by field: each sample passes here. */
function withSeen(reply: Writable<ScoreReply>, { seen }: Run): ScoreReply {
  const { announced, further, readsContext, used, failed } = seen;
  if (!reply.ok && failed !== undefined) reply.failed = failed;
  if (announced !== undefined) reply.announced = announced;
  if (further !== undefined) reply.further = further;
  if (readsContext !== undefined) reply.readsContext = readsContext;
  if (used !== undefined) reply.used = used;
  return reply;
}

/**
 * Returns a reply as it travels with others. Undefined for one that is big, or that cannot travel
 * at all: the worker has to ask for it.
 */
function sentOf(reply: ScoreReply): ScoreReply | undefined {
  try {
    if (reply.ok) {
      const said = sendable(reply.rewardExtraInfo);
      if (said === reply.rewardExtraInfo) return reply;
      if (said !== undefined) return { ...reply, rewardExtraInfo: said };
    } else if (sendable(reply.error) !== undefined) return reply;
  } catch (error) {
    // A part that cannot be read costs no score.
    if (reply.ok) return undefined;
    const { latencyMs, overlaps, used } = reply;
    const failed = { ok: false, error: failureOf(error), latencyMs, overlaps } as const;
    return used === undefined ? failed : { ...failed, used };
  }
  return undefined;
}

/** A thread unless its options say otherwise. */
export const ScoreExecutorActor: ray.ActorClass<typeof ScoreExecutor> = ray.remote(ScoreExecutor, {
  isolation: "thread",
});
