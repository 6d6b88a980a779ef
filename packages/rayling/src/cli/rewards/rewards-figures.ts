/**
 * The figures of a reward log for people: equal in the table and on the page.
 */

import type { RewardReport } from "@rayling/reward-loop";
import { duration, grouped } from "../output/numbers.ts";

/**
 * Returns figures of several rewards, and of the stages of a cascade, by the names of their
 * columns.
 */
export function partsOf(report: RewardReport): readonly Readonly<Record<string, string>>[] {
  return report.components.map((part) => ({
    reward: part.name,
    samples: grouped(part.samples),
    valid: grouped(part.valid),
    "mean score": part.meanScore?.toFixed(4) ?? "-",
    "latency p50": part.latencyP50Ms === null ? "-" : duration(part.latencyP50Ms),
    cost: part.cost.toFixed(4),
  }));
}

export const partColumns = [
  "reward",
  "samples",
  "valid",
  "mean score",
  "latency p50",
  "cost",
] as const;

/** Returns names and values. */
export function figuresOf(report: RewardReport): readonly (readonly [string, string])[] {
  const { latencyMs, waitedMs, tokens } = report;
  const ms = (value: number | null): string => (value === null ? "-" : duration(value));
  return [
    ["samples", grouped(report.samples)],
    ["valid", grouped(report.valid)],
    ["invalid", grouped(report.invalid)],
    ["scored again", grouped(report.superseded)],
    ["mean score", report.meanScore?.toFixed(4) ?? "-"],
    ["calls", grouped(report.attempts)],
    ["known before", grouped(report.cached)],
    ...report.answeredBy.map(
      ({ name, samples }) => [`answered by ${name}`, grouped(samples)] as const,
    ),
    ["latency p50 / p95 / p99", [latencyMs.p50, latencyMs.p95, latencyMs.p99].map(ms).join(" / ")],
    ["waited p50 / p95 / p99", [waitedMs.p50, waitedMs.p95, waitedMs.p99].map(ms).join(" / ")],
    ["tokens in / out", `${grouped(tokens.input)} / ${grouped(tokens.output)}`],
    ["cost", report.cost.toFixed(4)],
    ["outcomes per second", report.perSecond === null ? "-" : grouped(report.perSecond, 1)],
    ["from", report.from ?? "-"],
    ["to", report.to ?? "-"],
  ];
}
