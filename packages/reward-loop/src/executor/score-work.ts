/** What an executor does with the user's functions: scores a sample, puts a group's scores right, puts a batch's scores into place, or tells a request's log. */

import { InvalidScoreError } from "@rayling/reward-manager-registry";
import type {
  RewardResult,
  RewardSample,
  ScoredBatch,
  ScoreLogEntry,
} from "@rayling/reward-manager-registry";
import { isGroup } from "./group-sample.ts";
import type { Pipeline } from "./pipeline.ts";

export type ScoreWork =
  | { readonly kind: "sample"; readonly sample: RewardSample }
  | { readonly kind: "group"; readonly scores: readonly number[] }
  | { readonly kind: "batch"; readonly batch: ScoredBatch }
  | { readonly kind: "log"; readonly entry: ScoreLogEntry };

/** A group's scores come back as the extra info `scores`, a batch's as `rmScores`. */
export function runWork(pipeline: Pipeline, work: ScoreWork): Promise<RewardResult> {
  if (work.kind !== "sample") return runOther(pipeline, work);
  const { sample } = work;
  if (!isGroup(sample)) return pipeline.runSingle(sample);
  if (pipeline.runGroup !== undefined) return pipeline.runGroup(sample);
  // It was loaded anew since the group was sent.
  return Promise.reject(new Error("the reward function does not score groups any more"));
}

async function runOther(
  pipeline: Pipeline,
  work: Exclude<ScoreWork, { readonly kind: "sample" }>,
): Promise<RewardResult> {
  if (work.kind === "group") {
    const { scores } = work;
    return resultOf(await (pipeline.postProcessScores?.(scores) ?? scores), scores);
  }
  if (work.kind === "batch") {
    const { batch } = work;
    return placedOf(await (pipeline.assembleRmScores?.(batch) ?? []), batch);
  }
  await pipeline.log?.(work.entry);
  return nothing;
}

function placedOf(placed: unknown, { width, scores }: ScoredBatch): RewardResult {
  const length = width * scores.length;
  const isNumbers =
    (Array.isArray(placed) || ArrayBuffer.isView(placed)) &&
    (placed as unknown as ArrayLike<unknown>).length === length;
  const rmScores = isNumbers ? Float32Array.from(placed as unknown as ArrayLike<number>) : [];
  if (isNumbers && rmScores.every(Number.isFinite)) {
    return { rewardScore: 0, rewardExtraInfo: { rmScores } };
  }
  const wanted = `not ${length} finite numbers from assembleRmScores, but ${describe(placed)}`;
  throw new InvalidScoreError("a batch", wanted);
}

const nothing: RewardResult = { rewardScore: 0, rewardExtraInfo: {} };

function resultOf(after: unknown, before: readonly number[]): RewardResult {
  const isScores =
    Array.isArray(after) && after.length === before.length && after.every(Number.isFinite);
  if (isScores) return { rewardScore: 0, rewardExtraInfo: { scores: after } };
  const wanted = `not ${before.length} finite numbers from postProcessScores, but ${describe(after)}`;
  throw new InvalidScoreError("a group", wanted);
}

function describe(value: unknown): string {
  if (!Array.isArray(value)) return typeof value;
  const odd = value.find((one) => !Number.isFinite(one)) as unknown;
  return odd === undefined
    ? `${value.length} of them`
    : `${typeof odd === "number" ? odd : typeof odd} among them`;
}
