/** Samples as a Python process sends them, by their place in a list. */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRecord } from "@rayling/reward-manager-registry/values";
import { FrameError } from "./wire/frames.ts";

/** A sample that Python cannot send, and why. */
export type RefusedRow = readonly [number: number, problem: string];

export type ScoreRow = readonly [
  number: number,
  dataSource: string,
  response: string,
  groundTruth: unknown,
  extraInfo: Readonly<Record<string, unknown>>,
];

/** Throws FrameError for what is no list of samples. */
export function readRows(message: unknown): readonly (ScoreRow | RefusedRow)[] {
  if (Array.isArray(message) && message.every((row) => isRow(row) || isRefused(row))) {
    return message;
  }
  throw new FrameError("a list of samples was expected");
}

export function isRefused(row: unknown): row is RefusedRow {
  return (
    Array.isArray(row) &&
    row.length === 2 &&
    typeof row[0] === "number" &&
    typeof row[1] === "string"
  );
}

function isRow(row: unknown): row is ScoreRow {
  return (
    Array.isArray(row) &&
    row.length === 5 &&
    typeof row[0] === "number" &&
    typeof row[1] === "string" &&
    typeof row[2] === "string" &&
    typeof row[4] === "object" &&
    row[4] !== null
  );
}

/** verl's naive manager has put what it knows of the rollout among the extra info. */
export function sampleOf([, dataSource, response, groundTruth, extraInfo]: ScoreRow): RewardSample {
  const { num_turns: turns, rollout_reward_scores: scores } = extraInfo;
  return {
    dataSource,
    response,
    groundTruth,
    extraInfo,
    ...(typeof turns === "number" ? { numTurns: turns } : {}),
    ...(isRecord(scores) ? { rolloutRewardScores: scores } : {}),
  };
}
