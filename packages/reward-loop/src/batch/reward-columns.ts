/**
 * Turns outcomes into columns (verl `assemble_rm_scores` and the gathering of extra info).
 *
 * rmScores holds each valid score at the last valid token, or at the places that the function gave,
 * and zeros elsewhere. rewardValid says which rows have a score; rewardError holds the reason of
 * the others. Extra info has the keys of ALL rows, and null where a row lacks one. A key that is
 * also a column of the batch or of the loop becomes `reward_extra_{key}`, so that a batch and its
 * rewards can always be merged.
 */

import { asTensor, DataProto, zeros } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { placesOf } from "@rayling/reward-manager-registry";
import { isList, itemAt } from "@rayling/reward-manager-registry/values";
import { InvalidBatchError } from "../errors.ts";
import type { ScoreFailure, SampleOutcome } from "../outcome.ts";
import { batchColumns } from "./batch-samples.ts";
import type { ResponseShape } from "./batch-samples.ts";

/**
 * metaInfo.rewardExtraKeys names the columns that came from extra info.
 *
 * @param placed where a manager of the user's puts the scores: row by row
 */
export function assembleRewards(
  shape: ResponseShape,
  outcomes: readonly SampleOutcome[],
  placed?: Float32Array,
): DataProto {
  const { rows, width, lengths } = shape;
  const rmScores = zeros([rows, width], "float32");
  const rewardValid = new Uint8Array(rows);
  for (const [row, outcome] of outcomes.entries()) {
    if (!outcome.valid) continue;
    rewardValid[row] = 1;
    if (placed !== undefined) {
      const start = row * width;
      rmScores.data.set(placed.subarray(start, start + width), start);
    } else {
      for (const [column, value] of placesOf(outcome, { length: lengths[row] ?? 0, width })) {
        const at = row * width + column;
        rmScores.data[at] = itemAt(rmScores.data, at) + value;
      }
    }
  }
  const keys = extraKeys(outcomes);
  const columns = new Map(keys.map((key) => [columnOf(key, keys), key]));
  const extras = [...columns].map(([column, key]) => [
    column,
    outcomes.map((one) => extraOf(one, key)),
  ]);
  const rewardError = outcomes.map((one): ScoreFailure | null => (one.valid ? null : one.error));
  return DataProto.fromDict({
    tensors: { rmScores, rewardValid: asTensor(rewardValid, [rows], "bool") },
    nonTensors: { ...Object.fromEntries(extras), rewardError },
    metaInfo: { rewardExtraKeys: [...columns.keys()] },
  });
}

/** The reward columns of a batch. */
export interface ExtractedReward {
  /** verl `rm_scores`: the score of each token, [rows, tokens]. */
  readonly rmScores: Tensor;
  /** A column per key of extra info. */
  readonly rewardExtraInfo: Readonly<Record<string, readonly unknown[]>>;
}

/**
 * Extracts the columns that `computeRmScore` made (verl `extract_reward`). Throws InvalidBatchError
 * for a batch without them.
 */
export function extractReward({ batch, nonTensorBatch, metaInfo }: DataProto): ExtractedReward {
  const rmScores = batch?.["rmScores"];
  if (rmScores === undefined) throw new InvalidBatchError("rmScores", "is missing");
  const keys = metaInfo["rewardExtraKeys"] ?? [];
  if (!isList(keys)) throw new InvalidBatchError("rewardExtraKeys", "is no list");
  const columns = keys.map(String).map((key) => {
    const column = nonTensorBatch[key];
    if (column === undefined) throw new InvalidBatchError(key, "is missing");
    return [key, column] as const;
  });
  return { rmScores, rewardExtraInfo: Object.fromEntries(columns) };
}

/** Returns the keys in order of first appearance. */
function extraKeys(outcomes: readonly SampleOutcome[]): string[] {
  const keys = outcomes.flatMap((one) => (one.valid ? Object.keys(one.rewardExtraInfo) : []));
  return [...new Set(keys)];
}

/** @param keys of all extra info */
function columnOf(key: string, keys: readonly string[]): string {
  if (!batchColumns.has(key)) return key;
  let column = `reward_extra_${key}`;
  while (keys.includes(column)) column = `reward_extra_${column}`;
  return column;
}

function extraOf(outcome: SampleOutcome, key: string): unknown {
  if (!outcome.valid || !Object.hasOwn(outcome.rewardExtraInfo, key)) return null;
  return outcome.rewardExtraInfo[key] ?? null;
}
