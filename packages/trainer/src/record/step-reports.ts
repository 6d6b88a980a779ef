/** Reports of finished steps: rollouts, samples and metrics; times and validation when known. */

import type { TrainingSettings } from "../settings/training-settings.ts";
import { dumpRollouts } from "../tracking/rollout-dump.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import { dumpOf } from "./dumped-rows.ts";
import { stepMetrics, timesOf } from "./step-metrics.ts";
import type { StepMetricsContext } from "./step-metrics.ts";
import type { StepRecord } from "./step-record.ts";

export interface FinishedStep {
  readonly record: StepRecord;
  /** All metrics that were reported so far. */
  readonly metrics: Record<string, number>;
  /** Times that changed since; they are reported when the step is complete. */
  readonly times: Record<string, number>;
}

export interface StepReportsParts {
  readonly tracker: StepTracker;
  readonly settings: TrainingSettings;
  /** How many samples the reward loop scores at a time. */
  readonly slots: number;
  readonly maxPromptLength: number | undefined;
}

export class StepReports {
  readonly #parts: StepReportsParts;
  readonly #metrics: Record<string, number>[] = [];

  constructor(parts: StepReportsParts) {
    this.#parts = parts;
  }

  /** Metrics of each step that was reported here, in order, after those of `addFirst`. */
  get metrics(): readonly Readonly<Record<string, number>>[] {
    return this.#metrics;
  }

  /** Reports the validation before the first step. @param step the last finished step, or 0 */
  addFirst(validation: Readonly<Record<string, number>>, step: number): void {
    this.#metrics.push({ "training/global_step": step, ...validation });
    this.#parts.tracker.log(validation, step);
  }

  /** @param hasOwnLogProbs whether old log-probabilities are the policy's own */
  async report(record: StepRecord, hasOwnLogProbs: boolean): Promise<FinishedStep> {
    const { tracker, settings, slots, maxPromptLength } = this.#parts;
    const { rolloutDataDir, rollout } = settings;
    const { step } = record;
    if (rolloutDataDir !== null) {
      await record.clock.time("dump_rollout_generations", () =>
        dumpRollouts(rolloutDataDir, dumpOf(step, record.samples)),
      );
    }
    const { maxResponseLength } = rollout;
    const context: StepMetricsContext = {
      gpus: 1,
      slots,
      maxResponseLength,
      maxPromptLength,
      hasOwnLogProbs,
    };
    const metrics = stepMetrics(record, context);
    this.#metrics.push(metrics);
    tracker.samples(step, record.reported);
    tracker.log({ ...metrics }, step);
    return { record, metrics, times: {} };
  }

  /** Keeps the times of the step as they are now, for `complete`. */
  keepTimes({ record, times }: FinishedStep): void {
    Object.assign(times, timesOf(record, 1));
  }

  /** Reports the times that changed since the report: of its checkpoint and of its validation. */
  complete(finished: FinishedStep): void {
    const { testing } = finished.record.clock.timings();
    this.add(finished, {
      ...finished.times,
      ...(testing === undefined ? {} : { "timing_s/testing": testing }),
    });
  }

  /** Reports metrics that became known after the report, such as those of a validation. */
  add({ record, metrics }: FinishedStep, more: Readonly<Record<string, number>>): void {
    const news = Object.entries(more).filter(([name, value]) => metrics[name] !== value);
    if (news.length === 0) return;
    Object.assign(metrics, more);
    this.#parts.tracker.log(Object.fromEntries(news), record.step);
  }
}
