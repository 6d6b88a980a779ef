/**
 * Scores of a checkpoint that the present reward functions would give, too. Others are left out,
 * with those of their groups: scores of two functions say nothing about each other.
 */

import type { SampleOutcome } from "@rayling/reward-loop";
import { TrainerInputError } from "../errors.ts";
import type { PresentFunctions } from "./reward-requests.ts";
import type { KeptBatch, KeptSample } from "./training-state.ts";

/** Batches of a checkpoint without outdated scores. */
export interface PresentScores {
  readonly batches: readonly KeptBatch[];
  /** Scores that other functions gave, and that were left out. */
  readonly outdated: number;
}

/**
 * Throws TrainerInputError where the loop refuses scores of other functions (`resume.stale`).
 *
 * @param keptVersions of the run that saved the checkpoint; undefined in earlier versions, whose
 *   scores are taken as they are
 */
export function withPresentScores(
  batches: readonly KeptBatch[],
  keptVersions: readonly string[] | undefined,
  functions: PresentFunctions,
): PresentScores {
  if (keptVersions === undefined || functions.stale === "keep") return { batches, outdated: 0 };
  const { versions } = functions;
  const isSame =
    versions.length === keptVersions.length && versions.every((one) => keptVersions.includes(one));
  let outdated = 0;
  const isOutdated = ({ outcome, rollout }: KeptSample): boolean => {
    if (outcome === undefined || rollout.rewardScore !== undefined) return false;
    const isOther =
      (!isSame && !versions.includes(outcome.version ?? "")) ||
      isFilledOtherwise(outcome, functions);
    if (isOther) outdated += 1;
    return isOther;
  };
  const present = batches.map((batch): KeptBatch => {
    const { samples, n, baselines } = batch;
    const marks = samples.map(isOutdated);
    const ofBaselines = baselines?.map(isOutdated);
    const isGroupOutdated = (group: number): boolean =>
      ofBaselines?.[group] === true || marks.slice(group * n, (group + 1) * n).includes(true);
    return {
      ...batch,
      samples: samples.map((one, row) =>
        isGroupOutdated(Math.floor(row / n)) ? unscored(one) : one,
      ),
      baselines: baselines?.map((one, group) => (isGroupOutdated(group) ? unscored(one) : one)),
    };
  });
  if (outdated > 0 && functions.stale === "refuse") {
    throw new TrainerInputError(
      "reward.resume.stale",
      `${outdated} scores of its rollouts, which are still to be trained, came from other reward functions, or other settings of them: resume with stale "rescore" or "keep" (reward.resume.stale)`,
    );
  }
  return { batches: present, outdated };
}

/** Whether `onFailure.fallback` gave it a score that a failed sample would not get now. */
function isFilledOtherwise(outcome: SampleOutcome, { fallback }: PresentFunctions): boolean {
  if (fallback === undefined) return false;
  if (!outcome.valid) return typeof fallback.value === "number";
  const { rewardExtraInfo: extra, rewardScore } = outcome;
  const isFilled = extra["fallback"] === true && typeof extra["error"] === "string";
  return isFilled && rewardScore !== fallback.value;
}

function unscored(scored: KeptSample): KeptSample {
  const { outcome: _, ...sample } = scored;
  return sample;
}
