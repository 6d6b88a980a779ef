/** The few figures of a step that people follow, out of its many metrics. */

import { coreMetricValue, coreMetricWords } from "../../metrics/core-metric-words.ts";
import { coreMeansOf } from "../../metrics/validation-metrics.ts";
import { meanOf } from "../../values/sums.ts";
import type { StepMetrics } from "../tracking-logger.ts";
import { fitted } from "./fitted.ts";
import { leftText, spanText } from "./time-left.ts";

/** Each figure as it is shown. */
export type StepSummary = Readonly<Partial<Record<"score" | "accuracy", string>>>;

/** Returns the figures that this step has. */
export function summaryOf(metrics: StepMetrics): StepSummary {
  const score = metrics["critic/score/mean"];
  const accuracy = accuracyText(metrics);
  return {
    ...(score === undefined || !Number.isFinite(score)
      ? {}
      : { score: `score ${Number(score.toPrecision(4))}` }),
    ...(accuracy === undefined ? {} : { accuracy }),
  };
}

/** Shares are an accuracy in percent; rewards, and both together, have no unit. */
function accuracyText(metrics: StepMetrics): string | undefined {
  const [first, ...others] = coreMeansOf(metrics).keys();
  const mean = accuracyOf(metrics);
  if (first === undefined || mean === undefined) return undefined;
  const areShares = [first, ...others].every((name) => coreMetricWords(name)?.isShare === true);
  return areShares ? `accuracy ${coreMetricValue(first, mean)}` : `validation ${mean.toFixed(4)}`;
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
    ...(score === undefined ? [] : [score]),
    ...(accuracy === undefined ? [] : [accuracy]),
    ...(invalid > 0 ? [`${(100 * invalid).toFixed(1)} % without a score`] : []),
    ...(leftMs === undefined || step === totalSteps ? [] : [`${leftText(leftMs)} left`]),
    ...(seconds === undefined ? [] : [`took ${spanText(1000 * seconds)}`]),
    ...(wait === undefined ? [] : [`waited ${spanText(1000 * wait)} for rewards`]),
  ];
  return fitted(parts, width);
}
