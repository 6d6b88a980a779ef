/**
 * The figures of a run that come first: how long, how good, how much was waited, what was spent.
 */

import { numberText } from "@rayling/reward-loop/page";
import { accuracyOf } from "../console/step-summary.ts";
import { spanText } from "../console/time-left.ts";
import type { RunRecord } from "../files/run-files.ts";
import type { MetricsLine } from "../files/run-lines.ts";
import { meanOf, sumOf } from "../../values/sums.ts";

/** A name, and what it is as text. */
export type Named = readonly [name: string, text: string];

export function runFigures({
  metrics,
  phases,
  rewards,
}: Pick<RunRecord, "metrics" | "phases" | "rewards">): readonly Named[] {
  const seconds = valuesOf(metrics, "timing_s/step");
  const waited = valuesOf(metrics, "reward/exposed_wait_s");
  const overlap = valuesOf(metrics, "overlap_ratio");
  const scores = valuesOf(metrics, "critic/score/mean");
  const accuracies = metrics.flatMap((line) => accuracyIn(line) ?? []);
  const starts = phases.map(({ startMs }) => startMs);
  const ends = phases.map(({ endMs }) => endMs);
  const spanMs = phases.length === 0 ? undefined : highest(ends) + highest(starts.map((ms) => -ms));
  const samples = sumOf(rewards.map((line) => line.samples));
  const invalid = sumOf(rewards.flatMap(({ failures }) => failures.map(({ count }) => count)));
  return [
    ["steps", String(metrics.filter(({ step }) => step > 0).length)],
    ["from begin to end", spanMs === undefined ? "-" : spanText(spanMs)],
    ["mean step", seconds.length === 0 ? "-" : spanText(1000 * meanOf(seconds))],
    ["waited for rewards, in all", waited.length === 0 ? "-" : spanText(1000 * sumOf(waited))],
    ["overlap, mean", overlap.length === 0 ? "-" : meanOf(overlap).toFixed(3)],
    ["score, first / last", firstAndLast(scores)],
    ["accuracy, first / last / best", accuracyText(accuracies)],
    ["rewards", samples === 0 ? "-" : numberText(samples)],
    ["of these invalid", samples === 0 ? "-" : numberText(invalid)],
    ["cost", samples === 0 ? "-" : numberText(sumOf(rewards.map(({ cost }) => cost)))],
  ];
}

function accuracyIn({ data }: MetricsLine): number | undefined {
  const known = Object.entries(data).flatMap(([name, value]): [string, number][] =>
    value !== null && Number.isFinite(value) ? [[name, value]] : [],
  );
  return accuracyOf(Object.fromEntries(known));
}

function accuracyText(values: readonly number[]): string {
  return values.length === 0 ? "-" : `${firstAndLast(values)} / ${highest(values).toFixed(4)}`;
}

function firstAndLast(values: readonly number[]): string {
  const [first] = values;
  return first === undefined ? "-" : `${first.toFixed(4)} / ${values.at(-1)?.toFixed(4)}`;
}

function valuesOf(lines: readonly MetricsLine[], name: string): readonly number[] {
  return lines.flatMap(({ data }) => data[name] ?? []);
}

function highest(values: readonly number[]): number {
  return values.reduce((high, value) => Math.max(high, value), -Infinity);
}
