/**
 * The record of one step while it runs: where its time goes, which samples it learned from, and its
 * scores.
 */

import type { DataProto } from "@rayling/data-proto";
import type { SampleOutcome } from "@rayling/reward-loop";
import type { SampleRecord } from "../tracking/tracking-logger.ts";
import type { Account } from "../policy/policy.ts";
import { StepClock } from "./step-clock.ts";
import { CollectedMetrics } from "./collected-metrics.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import type { ScoredSample } from "../samples/rollout-batch.ts";

/** Rows that an update learned from. */
export interface LearnedRows {
  /** Columns with scores, rewards, advantages and returns. */
  readonly data: DataProto;
  readonly valid: readonly boolean[];
}

export class StepRecord {
  readonly step: number;
  readonly clock: StepClock;
  readonly metrics: CollectedMetrics = new CollectedMetrics();
  /** Samples that were learned from. */
  readonly samples: ScoredSample[] = [];
  /**
   * Outcomes of all samples that were scored for the step, including those that were filtered out
   * or dropped, and baselines.
   */
  readonly outcomes: SampleOutcome[] = [];
  /** Outcomes that were scored in this run, not known from a checkpoint. */
  readonly scoredHere: SampleOutcome[] = [];
  readonly parts: LearnedRows[] = [];
  /**
   * Number of batches generated for this step, at any time: its own, and those that replace
   * filtered groups.
   */
  generations = 1;
  readonly #reported: SampleRecord[] = [];
  readonly #now: () => number;
  #exposedWaitMs = 0;
  #firstGeneratedMs = Infinity;
  #lastScoredMs = -Infinity;

  /** @param inFlight rewards that are not there yet @param now milliseconds, for waits */
  constructor(step: number, tracker: StepTracker, inFlight: () => number, now: () => number) {
    this.step = step;
    this.#now = now;
    let reported = 0;
    const reportProgress = (phase: string): void => {
      reported = inFlight();
      tracker.progress({ step, phase, inFlight: reported });
    };
    this.clock = new StepClock(step, {
      begins: reportProgress,
      goesOn: (phase) => {
        if (inFlight() !== reported) reportProgress(phase);
      },
      ended: (phase) => tracker.phase(phase),
    });
  }

  /** How long the training had nothing to do but to wait for rewards. */
  get exposedWaitMs(): number {
    return this.#exposedWaitMs;
  }

  /**
   * Milliseconds from the first rollout that was scored in this run to the last of these scores;
   * undefined where there is none.
   */
  get rewardSpanMs(): number | undefined {
    const spanMs = this.#lastScoredMs - this.#firstGeneratedMs;
    return spanMs >= 0 ? spanMs : undefined;
  }

  /** For calls of the policy and of the critic. */
  account(phase: string): Account {
    return { phase, step: this.step };
  }

  get reported(): readonly SampleRecord[] {
    return this.#reported;
  }

  async waitFor<Result>(run: () => Promise<Result>): Promise<Result> {
    const startMs = this.#now();
    try {
      return await run();
    } finally {
      this.#exposedWaitMs += this.#now() - startMs;
    }
  }

  learned(samples: readonly ScoredSample[], part: LearnedRows): void {
    this.parts.push(part);
    this.samples.push(...samples);
  }

  /**
   * Records samples when the update begins that learns from them; without an update, after their
   * advantages.
   */
  used(samples: readonly ScoredSample[]): void {
    this.#add(samples, performance.timeOrigin + performance.now());
  }

  /** Records samples that were scored and are not learned from: filtered out, or dropped. */
  untrained(samples: readonly ScoredSample[]): void {
    this.#add(samples, undefined);
  }

  /** @param isKnown from a checkpoint: paid for, but by another run */
  scored(outcome: SampleOutcome, isKnown: boolean): void {
    this.outcomes.push(outcome);
    if (!isKnown) this.scoredHere.push(outcome);
  }

  #add(samples: readonly ScoredSample[], usedMs: number | undefined): void {
    for (const { sample, batch, row, outcome } of samples) {
      const generatedMs = batch.generatedMs[row] ?? 0;
      const scoredMs = batch.rewards.settledMsOf(row);
      const isKnown = batch.rewards.isKnown(row);
      this.scored(outcome, isKnown);
      if (!isKnown) {
        this.#firstGeneratedMs = Math.min(this.#firstGeneratedMs, generatedMs);
        this.#lastScoredMs = Math.max(this.#lastScoredMs, scoredMs);
      }
      this.#reported.push({
        id: sample.id,
        generatedMs,
        scoredMs,
        ...(usedMs === undefined ? {} : { usedMs }),
        outcome,
      });
    }
  }
}
