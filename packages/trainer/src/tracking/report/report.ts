/**
 * Runs as one self-contained page, made of their files, also of a run that was killed or still goes
 * on.
 */

import { basename, join, resolve } from "node:path";
import { itemAt } from "@rayling/reward-manager-registry/values";
import { runFiles } from "../files/run-lines.ts";
import { writeWhole } from "../files/write-whole.ts";
import { pageParts } from "./page-parts.ts";
import { reportPage } from "./report-page.ts";
import type { SavedRun } from "./report-page.ts";
import { runFoldersOf } from "./run-folders.ts";
import { FollowedRun } from "./shown-run.ts";

/** Files and title of a report. */
export interface ReportOptions {
  /** Folder of the run, with the files of the logger `file`, or a folder of several runs. */
  readonly directory: string;
  /** Folders of further runs, to be compared with it. */
  readonly beside?: readonly string[];
  /** Default: what the folder is called. */
  readonly title?: string;
  /** Default `report.html` in the folder. */
  readonly path?: string;
}

/** Steps whose phases are in the file, spread over the run. */
const mostSteps = 400;

/**
 * Writes the page, and returns its path. Rejects with TrackingError TRACKING_FILES where no run was
 * logged, or the page cannot be written.
 */
export async function writeReport(options: ReportOptions): Promise<string> {
  const { directory, beside = [], title = basename(resolve(directory)), path } = options;
  const folders = (await Promise.all([directory, ...beside].map(runFoldersOf))).flat();
  const runs = await Promise.all(folders.map(readShown));
  const data = { title, runs: runs.toSorted((a, b) => a.beganMs - b.beganMs).map(saved) };
  const page = reportPage(data, await pageParts());
  return writeWhole(path ?? join(directory, runFiles.report), page);
}

async function readShown(folder: string): Promise<FollowedRun> {
  const run = new FollowedRun(folder);
  await run.refresh();
  return run;
}

function saved(run: FollowedRun): SavedRun {
  const { name, lastStep, about, curves, validations } = run;
  const steps = run.phasesOf(spread(run.steps, mostSteps));
  return { name, lastStep, about, curves, validations, steps };
}

/** Returns that many of them at most, with the first and the last one. */
function spread(items: readonly number[], count: number): readonly number[] {
  if (items.length <= count) return items;
  return Array.from({ length: count }, (_, index) =>
    itemAt(items, Math.round((index * (items.length - 1)) / (count - 1))),
  );
}
