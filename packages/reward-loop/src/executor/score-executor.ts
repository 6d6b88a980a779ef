/**
 * The actor in whose thread or process the user's code runs: one score at a time if it is synchronous, many if it waits.
 * It may be blocked or dead at any moment; what is known of it then stands in the run table. Knows no deadlines and no other executor.
 */

import { setTimeout as delay } from "node:timers/promises";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { RewardResult } from "@rayling/reward-manager-registry";
import { announcements } from "../client/announced.ts";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import { failureOf } from "../outcome.ts";
import type { ScoreFailure } from "../outcome.ts";
import { rewardVersion } from "../record/reward-version.ts";
import { digestOf } from "../record/sample-key.ts";
import type { PipelineSettings } from "../settings.ts";
import { loadPipeline } from "./pipeline.ts";
import type { Pipeline } from "./pipeline.ts";
import type { RunTablePlace } from "./run-table.ts";
import { runTableAt } from "./run-tables.ts";
import { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run-tracker.ts";
import { runWork } from "./score-work.ts";
import type { ScoreWork } from "./score-work.ts";

/** What one run came to. A result that cannot travel rejects with NotEncodableError instead. */
export type ScoreReply = {
  readonly latencyMs: number;
  readonly overlaps: boolean;
  /** What its endpoint said of its limits, where a client told. */
  readonly announced?: AnnouncedLimits;
} & (
  | { readonly ok: true; readonly result: RewardResult }
  | { readonly ok: false; readonly error: ScoreFailure }
);

/** What is known of the user's functions when they are loaded. */
export interface ExecutorTraits {
  /** Whether samples overlap in one thread. */
  readonly overlaps: boolean;
  readonly postProcesses: boolean;
  readonly logs: boolean;
  /** Whether the manager says where the scores of a batch stand. */
  readonly assembles: boolean;
}

/** Of functions that are not loaded yet, or that there are none of. */
export const noTraits: ExecutorTraits = {
  overlaps: false,
  postProcesses: false,
  logs: false,
  assembles: false,
};

export interface LoadedExecutor extends ExecutorTraits {
  /** Of the reward function as it was loaded there. */
  readonly version: string;
}

export class ScoreExecutor {
  readonly #tracker: RunTracker;
  readonly #pipeline: Promise<Pipeline>;
  readonly #version: Promise<string>;
  /** At work. */
  readonly #runs: Map<number, Run> = new Map();

  constructor(settings: PipelineSettings, place: RunTablePlace) {
    const table = runTableAt(place);
    this.#tracker = new RunTracker(table);
    announcements.subscribe((announced) => {
      const { current } = this.#tracker;
      if (current !== undefined) current.announced = announced as AnnouncedLimits;
    });
    // Before the handlers of the user's modules, which may take their time.
    process.prependListener("exit", () => table.exiting());
    const before = rewardVersion(settings);
    this.#pipeline = before.then(() => loadPipeline(settings, this.#tracker));
    this.#version = this.#pipeline.then(async () => {
      const after = await rewardVersion(settings);
      // Written while it was loaded: it is neither.
      return (await before) === after ? after : digestOf([await before, after]);
    });
    // Whoever calls ready() hears of it.
    this.#version.catch(() => undefined);
  }

  /** Resolves when the user's modules are loaded; rejects with why they are not. */
  async ready(): Promise<LoadedExecutor> {
    const { overlaps, postProcessScores, log, assembleRmScores } = await this.#pipeline;
    return {
      version: await this.#version,
      overlaps,
      postProcesses: postProcessScores !== undefined,
      logs: log !== undefined,
      assembles: assembleRmScores !== undefined,
    };
  }

  async score(id: number, slot: number, work: ScoreWork): Promise<ScoreReply> {
    const pipeline = await this.#pipeline;
    const run: Run = {
      id,
      slot,
      depth: 0,
      startedAt: undefined,
      abort: undefined,
      isAborted: false,
      announced: undefined,
    };
    this.#runs.set(id, run);
    const measured = (): Pick<ScoreReply, "latencyMs" | "overlaps" | "announced"> => {
      const now = performance.now();
      const { startedAt = now, announced } = run;
      const told = announced === undefined ? {} : { announced };
      return { latencyMs: now - startedAt, overlaps: pipeline.overlaps, ...told };
    };
    try {
      const result = await this.#tracker.follow(run, () => runWork(pipeline, work));
      return { ok: true, result, ...measured() };
    } catch (error) {
      return { ok: false, error: failureOf(error), ...measured() };
    } finally {
      this.#runs.delete(id);
    }
  }

  /** Nobody waits for that run any more: its signal says so. */
  abort(id: number): void {
    const run = this.#runs.get(id);
    if (run === undefined) return;
    run.isAborted = true;
    run.abort?.abort();
  }

  /** Answers after a full turn of the event loop: every timer that was due and every answer that had come was heard. */
  async breathe(): Promise<void> {
    await delay(1);
    await turn();
  }
}

/** A thread unless its options say otherwise. */
export const ScoreExecutorActor: ray.ActorClass<typeof ScoreExecutor> = ray.remote(ScoreExecutor, {
  isolation: "thread",
});
