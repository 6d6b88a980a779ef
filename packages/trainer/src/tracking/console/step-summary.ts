/** The few figures of a step that people follow, out of its many metrics. */

import { coreMeansOf } from "../../metrics/validation-metrics.ts";
import { meanOf } from "../../values/sums.ts";
import type { StepMetrics } from "../tracking-logger.ts";
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

/** Returns one line for a finished step. */
export function stepSummary(
  metrics: StepMetrics,
  step: number,
  totalSteps: number | undefined,
): string {
  const { score, accuracy } = summaryOf(metrics);
  const seconds = metrics["timing_s/step"];
  const wait = metrics["reward/exposed_wait_s"];
  const figures = [
    ["score", score],
    ["accuracy", accuracy],
    ["pg_loss", metrics["actor/pg_loss"]],
    ["ppo_kl", metrics["actor/ppo_kl"]],
    ["entropy", metrics["actor/entropy"]],
  ] as const;
  return [
    `step ${step}${totalSteps === undefined ? "" : `/${totalSteps}`}`,
    ...figures.flatMap(([name, value]) =>
      value === undefined ? [] : [`${name} ${Number(value.toPrecision(4))}`],
    ),
    ...(seconds === undefined ? [] : [spanText(1000 * seconds)]),
    ...(wait === undefined ? [] : [`waited ${spanText(1000 * wait)} for rewards`]),
  ].join(", ");
}
