/**
 * Rollouts with their scores as rows to look through: of a step that was trained, and of a
 * validation.
 */

import type { SampleOutcome } from "@rayling/reward-loop";
import type { RolloutDump } from "../tracking/rollout-dump.ts";
import { extraInfoColumns } from "../samples/columns.ts";
import { promptTextOf } from "../samples/training-sample.ts";
import type { TrainingSample } from "../samples/training-sample.ts";

export interface DumpedRow {
  readonly sample: TrainingSample;
  readonly outcome: SampleOutcome;
}

/**
 * Returns the rows with their extra info, their groups, and the error of a sample without a score.
 */
export function dumpOf(step: number, rows: readonly DumpedRow[]): RolloutDump {
  const outcomes = rows.map(({ outcome }) => outcome);
  const extras = extraInfoColumns(outcomes);
  return {
    step,
    inputs: rows.map(({ sample }) => promptTextOf(sample.prompt)),
    outputs: rows.map(({ sample }) => sample.rollout.response),
    gts: rows.map(({ sample }) => sample.prompt.groundTruth),
    scores: outcomes.map((one) => (one.valid ? one.rewardScore : Number.NaN)),
    extras: {
      ...extras,
      uid: rows.map(({ sample }) => sample.uid),
      // A score function may report errors of its own beside a score.
      error: outcomes.map((one, row) =>
        one.valid ? (extras["error"]?.[row] ?? null) : `${one.error.code}: ${one.error.message}`,
      ),
    },
  };
}
