/**
 * The table at the end of a run: the reward loop beside the baseline, then invalid samples and the
 * path of the records.
 */

import type { SpendState } from "@rayling/reward-loop";
import type { BaselineResult } from "./baseline.ts";
import { whatNext } from "../output/launcher.ts";
import { duration, grouped, mean, quantile } from "../output/numbers.ts";
import { plain } from "../output/output.ts";
import { failureLines } from "./failure-advice.ts";
import type { RunSummary } from "./run-summary.ts";

export interface Report {
  readonly summary: RunSummary;
  readonly wallMs: number;
  /** A description of the reward loop. */
  readonly loop: string;
  readonly baseline: BaselineResult | undefined;
  /** The cost of the scores, and the state of the caps; undefined when nobody counts. */
  readonly money:
    | {
        readonly spent: number;
        /** The part of it in the run that was continued. */
        readonly spentBefore: number;
        readonly spending: readonly SpendState[];
      }
    | undefined;
  readonly out: string;
  /** Whether `out` is a file, which can be read. */
  readonly isFile: boolean;
  /** The key of the labels. */
  readonly labelKey: string;
  /** Lines of advice on samples without a score. */
  readonly advice: readonly string[];
  /** The arguments of a command that scores again what failed; undefined: there is none. */
  readonly again?: readonly string[] | undefined;
}

export function reportText(report: Report): string {
  const { summary, baseline } = report;
  const rows = baseline === undefined ? loopRows(report) : comparedRows(report, baseline);
  const { compared, equal } = summary.agreement;
  return [
    ...aligned(rows),
    "",
    ...(baseline === undefined || isWhole(report) ? [] : [extrapolation(baseline, summary.scored)]),
    ...failureLines(summary),
    ...report.advice,
    ...(compared === 0
      ? []
      : [
          `label ${plain(report.labelKey)}: ${grouped(equal)} of ${grouped(compared)} samples have a score that agrees (${((100 * equal) / compared).toFixed(1)} %${noScore(summary)})`,
        ]),
    ...[...summary.answeredBy].map(
      ([name, count]) => `answered by ${plain(name)}: ${grouped(count)}`,
    ),
    ...(report.money === undefined ? [] : moneyLines(report.money)),
    `wrote ${grouped(summary.done)} records to ${plain(report.out)}`,
    "",
  ].join("\n");
}

function noScore({ invalidCount }: RunSummary): string {
  return invalidCount === 0 ? "" : `; ${grouped(invalidCount)} have none`;
}

/** Returns whole commands that go on from a run; there are none where its rewards are no file. */
export function nextLines({ summary, again, out, isFile }: Report): string[] {
  if (!isFile) return [];
  const isFixed = again?.includes("--keep-stale") === true;
  const failed = `score again what failed (${grouped(summary.invalidCount)})${isFixed ? ", when the reward function is fixed" : ""}`;
  return whatNext([
    [["rewards", "view", out], "read each solution with its score, in a browser"],
    ...(again === undefined ? [] : [[again, failed] as const]),
  ]);
}

/** Returns the figures of a run as data; times are in ms, and undefined figures are null. */
export function reportData(report: Report): Readonly<Record<string, unknown>> {
  const { summary, wallMs, money, baseline, labelKey, out } = report;
  const { done, kept, scored, invalidCount, failures, scores, latenciesMs, agreement } = summary;
  return {
    samples: done,
    kept,
    scored,
    invalid: invalidCount,
    failures,
    meanScore: mean(scores) ?? null,
    wallMs,
    perSecond: scored / (wallMs / 1000),
    latencyMs: {
      p50: quantile(latenciesMs, 0.5) ?? null,
      p95: quantile(latenciesMs, 0.95) ?? null,
      p99: quantile(latenciesMs, 0.99) ?? null,
    },
    labels: agreement.compared === 0 ? null : { key: labelKey, ...agreement },
    answeredBy: Object.fromEntries(summary.answeredBy),
    spent: money?.spent ?? null,
    spentBefore: money?.spentBefore ?? null,
    baseline:
      baseline === undefined ? null : { samples: baseline.scores.length, wallMs: baseline.wallMs },
    log: out,
  };
}

function moneyLines({ spent, spentBefore, spending }: NonNullable<Report["money"]>): string[] {
  const before = spentBefore > 0 ? `, ${spentBefore.toFixed(4)} of it before` : "";
  return [`spent: ${spent.toFixed(4)}${before}`, ...spending.map(capText)];
}

/** Describes the state of a cap: of all rewards, or of one of several. */
export function capText({ name, spent, cap = 0, state }: SpendState): string {
  const whose = name === "" ? "" : `${plain(name)}: `;
  const words = { free: "", near: ", near the cap", reached: ", the cap is reached" }[state];
  return `${whose}${spent.toFixed(4)} of ${cap.toFixed(4)} spent${words}`;
}

function loopRows({ summary, wallMs, loop }: Report): string[][] {
  const kept = summary.kept === 0 ? "" : `, ${grouped(summary.kept)} of before`;
  return [
    ["", loop],
    ["samples", `${grouped(summary.done)}${kept}`],
    ["wall time", duration(wallMs)],
    ["throughput", rate(summary.scored, wallMs)],
    ["mean score", `${scoreText(summary.scores)}${validText(summary)}`],
    ["invalid (no score)", grouped(summary.invalidCount)],
    ...latencyRows(summary.latenciesMs),
  ];
}

function comparedRows(report: Report, baseline: BaselineResult): string[][] {
  const { summary, wallMs } = report;
  const count = baseline.scores.length;
  const wholeMs = (baseline.wallMs * summary.scored) / count;
  const baselineColumn = [
    "one at a time",
    `${grouped(count)} of ${grouped(summary.scored)}`,
    `${duration(wholeMs)}${isWhole(report) ? "" : " *"}`,
    rate(count, baseline.wallMs),
    // A mean of a part of the samples is nothing to compare the mean of all of them with.
    "",
    "",
    ...latencyRows(baseline.latenciesMs).map(([, value = ""]) => value),
  ];
  const rows = loopRows(report).map(([name = "", value = ""], row) => [
    name,
    baselineColumn[row] ?? "",
    value,
  ]);
  const speedUp = ["speed-up", "1 x", `${grouped(wholeMs / wallMs, 1)} x`];
  return [...rows.slice(0, 4), speedUp, ...rows.slice(4)];
}

/** Whether the baseline scored everything, so that nothing is extrapolated. */
function isWhole({ summary, baseline }: Report): boolean {
  return baseline?.scores.length === summary.scored;
}

function extrapolation({ scores, wallMs }: BaselineResult, total: number): string {
  return `* estimated for all ${grouped(total)}: ${grouped(scores.length)} valid ones from all over the file took ${duration(wallMs)}`;
}

function latencyRows(latenciesMs: readonly number[]): string[][] {
  return [0.5, 0.95, 0.99].map((share) => {
    const value = quantile(latenciesMs, share);
    return [`latency p${share * 100}`, value === undefined ? "-" : duration(value)];
  });
}

function scoreText(scores: readonly number[]): string {
  return mean(scores)?.toFixed(4) ?? "-";
}

/** A mean covers samples with a score; the text counts the others. */
function validText({ scores, done, invalidCount }: RunSummary): string {
  if (invalidCount === 0 || scores.length === 0) return "";
  return `, mean of ${grouped(scores.length)} valid of ${grouped(done)}`;
}

function rate(count: number, wallMs: number): string {
  return `${grouped(count / (wallMs / 1000), 1)}/s`;
}

/** Aligns names to the left and values to the right. */
function aligned(rows: readonly (readonly string[])[]): string[] {
  const columns = rows[0]?.length ?? 0;
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0)),
  );
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart((widths[column] ?? 0) + 3),
      )
      .join(""),
  );
}
