/**
 * A run as one self-contained page, made of its files, also of a run that was killed or still runs.
 */

import { basename, join, resolve } from "node:path";
import { htmlPage, numberText, section, table } from "@rayling/reward-loop/page";
import { readRun } from "../files/run-files.ts";
import { runFiles } from "../files/run-lines.ts";
import type { RunRecord } from "../files/run-files.ts";
import { writeWhole } from "../files/write-whole.ts";
import { ganttOf } from "./gantt.ts";
import { learningCurves, rewardCurves, timeCurves } from "./metric-plots.ts";
import { failuresTable, latencyPlot, latencyTable } from "./reward-parts.ts";
import { runFigures } from "./run-figures.ts";

/** Files and title of a report. */
export interface ReportOptions {
  /** Folder of the run, with the files of the logger `file`. */
  readonly directory: string;
  /** Default: what the folder is called. */
  readonly title?: string;
  /** Default `report.html` in the folder. */
  readonly path?: string;
}

/**
 * Writes the page, and returns its path. Rejects with TrackingError TRACKING_FILES where no run was
 * logged, or the page cannot be written.
 */
export async function writeReport({ directory, title, path }: ReportOptions): Promise<string> {
  const run = await readRun(directory);
  const page = reportPage(title ?? basename(resolve(directory)), run);
  return writeWhole(path ?? join(directory, runFiles.report), page);
}

function reportPage(title: string, run: RunRecord): string {
  const first = run.metrics[0]?.step;
  const steps = first === undefined ? "no steps" : `steps ${first} to ${run.metrics.at(-1)?.step}`;
  return htmlPage({
    title,
    subtitle: `${steps} of a training run`,
    sections: [
      runFigures(run),
      section("Learning", plots(learningCurves(run.metrics))),
      section("Time", plots(timeCurves(run.metrics))),
      section("Phases of each step", ganttOf(run)),
      section("Rewards", plots([latencyPlot(run.rewards), ...rewardCurves(run.metrics)])),
      section("Reward latency", latencyTable(run.rewards)),
      section("Failures by class", failuresTable(run.rewards)),
      section("Answers of the last validation", generationsTable(run.generations)),
    ],
  });
}

function generationsTable(generations: RunRecord["generations"]): string {
  if (generations.length === 0) return "";
  const rows = generations.map(({ input, output, score }) => [
    score === null ? "none" : numberText(score),
    input,
    output,
  ]);
  return table(["score", "prompt", "answer"], rows);
}

function plots(all: readonly string[]): string {
  const drawn = all.filter((plot) => plot !== "");
  return drawn.length === 0 ? "" : `<div class="plots">${drawn.join("\n")}</div>`;
}
