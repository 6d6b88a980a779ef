/** The plots of metrics, and which metrics share one. A plot without values is left out. */

import { linePlot } from "@rayling/reward-loop/page";
import type { MetricsLine } from "../files/run-lines.ts";

interface MetricPlot {
  readonly title: string;
  readonly yLabel: string;
  /** Names of curves by metric; with a pattern, each metric that matches is a curve. */
  readonly curves: Readonly<Record<string, string>> | RegExp;
}

const learning: readonly MetricPlot[] = [
  {
    title: "Score",
    yLabel: "mean score of rollouts",
    curves: { "critic/score/mean": "score", "critic/rewards/mean": "reward" },
  },
  {
    title: "Accuracy",
    yLabel: "of validation",
    curves: /^val-core\/(.+)$/,
  },
  {
    title: "Loss",
    yLabel: "loss",
    curves: { "actor/pg_loss": "policy", "critic/vf_loss": "value", "actor/kl_loss": "KL" },
  },
  {
    title: "KL",
    yLabel: "nats per token",
    curves: {
      "actor/ppo_kl": "of the update",
      "actor/kl_loss": "from the reference",
      "actor/reward_kl_penalty": "in the reward",
    },
  },
  { title: "Entropy", yLabel: "nats per token", curves: { "actor/entropy": "entropy" } },
  {
    title: "Learning rate",
    yLabel: "learning rate",
    curves: { "actor/lr": "policy", "critic/lr": "critic" },
  },
  {
    title: "Gradient",
    yLabel: "norm before clipping",
    curves: { "actor/grad_norm": "policy", "critic/grad_norm": "critic" },
  },
  {
    title: "Response length",
    yLabel: "tokens",
    curves: { "response_length/mean": "mean", "response_length/max": "longest" },
  },
];

const time: readonly MetricPlot[] = [
  {
    title: "Time of a step",
    yLabel: "s",
    curves: { "timing_s/step": "step", "reward/exposed_wait_s": "waiting for rewards" },
  },
  {
    title: "Overlap",
    yLabel: "share of the rewards' time",
    curves: { overlap_ratio: "not waited for" },
  },
];

const rewards: readonly MetricPlot[] = [
  {
    title: "Latency by step",
    yLabel: "s",
    curves: {
      "reward/latency_p50_s": "p50",
      "reward/latency_p95_s": "p95",
      "reward/latency_p99_s": "p99",
    },
  },
  {
    title: "Waiting for a slot",
    yLabel: "s",
    curves: { "reward/queue_wait_p50_s": "p50", "reward/queue_wait_p95_s": "p95" },
  },
  {
    title: "Slots",
    yLabel: "share of their time",
    curves: { "reward/pool_util": "busy" },
  },
  {
    title: "Failures",
    yLabel: "share of the samples",
    curves: { "reward/invalid_rate": "invalid", "reward/retry_rate": "tried again" },
  },
  { title: "Cost", yLabel: "of each step", curves: { "reward/cost": "cost" } },
];

export const learningCurves = (lines: readonly MetricsLine[]): readonly string[] =>
  learning.map((plot) => plotted(plot, lines));

export const timeCurves = (lines: readonly MetricsLine[]): readonly string[] =>
  time.map((plot) => plotted(plot, lines));

export const rewardCurves = (lines: readonly MetricsLine[]): readonly string[] =>
  rewards.map((plot) => plotted(plot, lines));

function plotted({ title, yLabel, curves }: MetricPlot, lines: readonly MetricsLine[]): string {
  const names = curves instanceof RegExp ? matching(curves, lines) : Object.entries(curves);
  return linePlot({
    title,
    xLabel: "step",
    yLabel,
    curves: names
      .map(([metric, name]) => ({
        name,
        points: lines.map(({ step, data }) => [step, drawn(data[metric])] as const),
      }))
      .filter(({ points }) => points.some(([, value]) => value !== null)),
  });
}

/** Returns null for a number that is not finite: a plot has no place for it. */
function drawn(value: number | null = null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}

/** Metrics and what the pattern keeps of their names, in the order in which they came up. */
function matching(
  pattern: RegExp,
  lines: readonly MetricsLine[],
): readonly (readonly [string, string])[] {
  const metrics = new Set(lines.flatMap(({ data }) => Object.keys(data)));
  return [...metrics].flatMap((metric) => {
    const kept = pattern.exec(metric)?.[1];
    return kept === undefined ? [] : [[metric, kept] as const];
  });
}
