/**
 * Reads the files of a run: of steps that were reported again, the lines that count. A line cut off
 * by a kill is skipped.
 */

import { access } from "node:fs/promises";
import { join } from "node:path";
import { TrackingError } from "../../errors.ts";
import { runFiles } from "./run-lines.ts";
import type {
  GenerationLine,
  MetricsLine,
  PhaseLine,
  RewardsLine,
  SampleLine,
  StartLine,
  WarningLine,
} from "./run-lines.ts";
import { RunReader } from "./run-reader.ts";

/** Reports of a run, read from its files. */
export interface RunRecord {
  /** How its processes began, the first one first. */
  readonly starts: readonly StartLine[];
  /** Metrics in the order of their steps, each once. */
  readonly metrics: readonly MetricsLine[];
  /** Phases of all steps. */
  readonly phases: readonly PhaseLine[];
  /** Samples that were chosen for drawing. */
  readonly samples: readonly SampleLine[];
  /** Rewards, one entry for each step. */
  readonly rewards: readonly RewardsLine[];
  /** Warnings of the training, in their order. */
  readonly warnings: readonly WarningLine[];
  /** Generations of the last validation that reported some. */
  readonly generations: readonly GenerationLine[];
}

/**
 * Rejects with TrackingError TRACKING_FILES where the folder has no metrics, and JsonlError for
 * what cannot be read.
 */
export async function readRun(directory: string): Promise<RunRecord> {
  await requireRun(directory);
  const reader = new RunReader(directory, { mostValidations: 1 });
  await reader.refresh();
  const steps = reader.timeline.steps.map(([, lines]) => lines);
  return {
    starts: reader.timeline.starts,
    metrics: reader.metrics.lines,
    phases: steps.flatMap(({ phases }) => phases),
    samples: steps.flatMap(({ samples }) => samples),
    rewards: steps.flatMap(({ rewards }) => rewards ?? []),
    warnings: steps.flatMap(({ warnings }) => warnings),
    generations: [...reader.generations.values()].at(-1) ?? [],
  };
}

/** Rejects with TrackingError TRACKING_FILES where the folder has no metrics. */
export async function requireRun(directory: string): Promise<void> {
  const path = join(directory, runFiles.metrics);
  const problem = "there is no such file: no run was logged here";
  await access(path).catch((cause: unknown) => {
    throw new TrackingError("TRACKING_FILES", path, problem, cause);
  });
}
