/**
 * The actor in whose thread the user's code runs: one score at a time if it is synchronous, many if it waits.
 * It may be blocked or dead at any moment; what is known of it then stands in the run table. Knows no deadlines and no other executor.
 */

import { setTimeout as delay } from "node:timers/promises";
import { setImmediate as turn } from "node:timers/promises";
import * as ray from "@rayling/core";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { failureOf } from "../outcome.ts";
import type { ScoreFailure } from "../outcome.ts";
import type { PipelineSettings } from "../settings.ts";
import { loadPipeline } from "./pipeline.ts";
import type { Pipeline } from "./pipeline.ts";
import { RunTable } from "./run-table.ts";
import { RunTracker } from "./run-tracker.ts";
import type { Run } from "./run-tracker.ts";

/** What one run came to. A result that cannot travel rejects with NotEncodableError instead. */
export type ScoreReply = { readonly latencyMs: number; readonly overlaps: boolean } & (
  | { readonly ok: true; readonly result: RewardResult }
  | { readonly ok: false; readonly error: ScoreFailure }
);

export class ScoreExecutor {
  readonly #tracker: RunTracker;
  readonly #pipeline: Promise<Pipeline>;

  constructor(settings: PipelineSettings, memory: SharedArrayBuffer) {
    const table = RunTable.over(memory);
    this.#tracker = new RunTracker(table);
    // Before the handlers of the user's modules, which may take their time.
    process.prependListener("exit", () => table.exiting());
    this.#pipeline = loadPipeline(settings, this.#tracker);
    // Whoever calls ready() hears of it.
    this.#pipeline.catch(() => undefined);
  }

  /** Resolves when the user's modules are loaded; rejects with why they are not. */
  async ready(): Promise<{ readonly overlaps: boolean }> {
    const { overlaps } = await this.#pipeline;
    return { overlaps };
  }

  async score(id: number, slot: number, sample: RewardSample): Promise<ScoreReply> {
    const pipeline = await this.#pipeline;
    const run: Run = { id, slot, depth: 0, startedAt: undefined };
    const measured = (): { latencyMs: number; overlaps: boolean } => {
      const now = performance.now();
      return { latencyMs: now - (run.startedAt ?? now), overlaps: pipeline.overlaps };
    };
    try {
      const result = await this.#tracker.follow(run, () => pipeline.runSingle(sample));
      return { ok: true, result, ...measured() };
    } catch (error) {
      return { ok: false, error: failureOf(error), ...measured() };
    }
  }

  /** Answers after a full turn of the event loop: every timer that was due and every answer that had come was heard. */
  async breathe(): Promise<void> {
    await delay(1);
    await turn();
  }
}

export const ScoreExecutorActor: ray.ActorClass<typeof ScoreExecutor> = ray.remote(ScoreExecutor, {
  isolation: "thread",
});
