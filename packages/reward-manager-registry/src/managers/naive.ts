/**
 * verl's naive manager: the bare pipeline, plus the rollout's facts about the sample in extraInfo,
 * in verl's spelling and ours: num_turns, numTurns (null if unknown), rollout_reward_scores,
 * rolloutRewardScores ({} if none). tool_extra_fields are merged with unchanged keys. A fact that
 * only the row's extra_info knows, as verl's own has it, stays.
 */

import { defaultComputeScore } from "../scorers/default-compute-score.ts";
import type { ComputeScore, ScoreCall } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample } from "../scoring/sample.ts";
import { beginScore, scoreSample } from "../scoring/score-sample.ts";
import type { ScoreSampleOptions } from "../scoring/score-sample.ts";
import { checkArguments, checkManagerOptions, inBoth, scoreOptionsOf } from "./reward-manager.ts";
import type { RewardManager, RewardManagerArguments } from "./reward-manager.ts";

/** verl's naive manager: the score, with the rollout's facts in the function's `extraInfo`. */
export class NaiveRewardManager implements RewardManager {
  readonly #computeScore: ComputeScore;
  readonly #options: ScoreSampleOptions;

  /** Throws InvalidManagerOptionError: this manager has no options; a subclass may have some. */
  constructor(args: RewardManagerArguments = {}) {
    this.#options = scoreOptionsOf(args);
    if (new.target === NaiveRewardManager) {
      checkArguments("naive", args);
      checkManagerOptions("naive", args.options ?? {}, {});
    }
    this.#computeScore = args.computeScore ?? defaultComputeScore;
  }

  /** Scores one sample. Rejects with the failure of the score function. */
  runSingle(sample: RewardSample): Promise<RewardResult> {
    const options = { ...this.#options, extraInfo: ofRollout(sample) };
    return scoreSample(sample, this.#computeScore, options);
  }

  /** Scores the sample of a call that hears of its end, in place of a promise. */
  begin(call: ScoreCall): void {
    beginScore(call, this.#computeScore, this.#options, ofRollout(call.sample));
  }
}

/** Returns the rollout's facts about a sample. */
function ofRollout({
  toolExtraFields,
  numTurns,
  rolloutRewardScores,
  extraInfo,
}: RewardSample): Readonly<Record<string, unknown>> {
  const ofRow = { ...extraInfo, ...toolExtraFields };
  const [turns, num_turns] = inBoth(numTurns, ofRow["numTurns"], ofRow["num_turns"], null);
  const [scores, rollout_reward_scores] = inBoth(
    rolloutRewardScores,
    ofRow["rolloutRewardScores"],
    ofRow["rollout_reward_scores"],
    {},
  );
  const facts = { numTurns: turns, num_turns, rolloutRewardScores: scores, rollout_reward_scores };
  // A literal has room for its fields alone: many wait at once.
  return toolExtraFields === undefined ? facts : { ...toolExtraFields, ...facts };
}
