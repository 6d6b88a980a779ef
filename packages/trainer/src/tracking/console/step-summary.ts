/** The few figures of a step that people follow, out of its many metrics. */

import { coreMeansOf } from "../../metrics/validation-metrics.ts";
import { meanOf } from "../../values/sums.ts";
import type { StepMetrics } from "../tracking-logger.ts";
import { fitted } from "./fitted.ts";
import { spanText } from "./time-left.ts";

export type StepSummary = Readonly<Partial<Record<"score" | "accuracy", number>>>;

/** Returns the figures that this step has. */
export function summaryOf(metrics: StepMetrics): StepSummary {
  const score = metrics["critic/score/mean"];
  const accuracy = accuracyOf(metrics);
  return {
    ...(score === undefined || !Number.isFinite(score) ? {} : { score }),
    ...(accuracy === undefined || !Number.isFinite(accuracy) ? {} : { accuracy }),
  };
}

/**
 * Returns the accuracy of the validation: the mean over its data sources of `acc`, or of the reward
 * where there is no `acc`.
 */
export function accuracyOf(metrics: StepMetrics): number | undefined {
  const means = [...coreMeansOf(metrics).values()];
  return means.length === 0 ? undefined : meanOf(means);
}

/** How far a run is. */
export interface StepPlace {
  readonly step: number;
  /** Undefined where it is unknown. */
  readonly totalSteps: number | undefined;
  /** Expected milliseconds until the end; undefined where nothing is known of it. */
  readonly leftMs?: number | undefined;
}

/** Returns one line for a finished step. @param width of the line, in columns */
export function stepSummary(metrics: StepMetrics, place: StepPlace, width: number): string {
  const { step, totalSteps, leftMs } = place;
  const { score, accuracy } = summaryOf(metrics);
  const seconds = metrics["timing_s/step"];
  const wait = metrics["reward/exposed_wait_s"];
  const invalid = metrics["reward/invalid_rate"] ?? 0;
  const parts = [
    `step ${step}${totalSteps === undefined ? "" : `/${totalSteps}`}`,
    ...figure("score", score),
    ...figure("accuracy", accuracy),
    ...(invalid > 0 ? [`${(100 * invalid).toFixed(1)} % without a score`] : []),
    ...(seconds === undefined ? [] : [spanText(1000 * seconds)]),
    ...(wait === undefined ? [] : [`waited ${spanText(1000 * wait)} for rewards`]),
    ...(leftMs === undefined || step === totalSteps ? [] : [`${spanText(leftMs)} left`]),
    ...figure("entropy", metrics["actor/entropy"]),
    ...figure("pg_loss", metrics["actor/pg_loss"]),
    ...figure("ppo_kl", metrics["actor/ppo_kl"]),
  ];
  return fitted(parts, width);
}

function figure(name: string, value: number | undefined): readonly string[] {
  return value === undefined ? [] : [`${name} ${Number(value.toPrecision(4))}`];
}
