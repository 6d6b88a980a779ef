/**
 * verl's gdpo manager: the bare pipeline for score functions with several components, which GDPO
 * normalises one by one. Mapping: extra_info["experiment_name"] -> extraInfo.experimentName (null
 * if unknown).
 */

import { InvalidManagerOptionError } from "../errors.ts";
import { defaultComputeScore } from "../scorers/default-compute-score.ts";
import type { ComputeScore, ScoreCall } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample } from "../scoring/sample.ts";
import { beginScore, scoreSample } from "../scoring/score-sample.ts";
import type { ScoreSampleOptions } from "../scoring/score-sample.ts";
import { describeValue } from "../value-description.ts";
import { scoreOptionsOf } from "./reward-manager.ts";
import type { RewardManager, RewardManagerArguments } from "./reward-manager.ts";

/** The manager's `options`. */
export interface GdpoOptions {
  /** verl `trainer.experiment_name`: score functions may depend on it. */
  readonly experimentName?: string;
}

/**
 * verl's gdpo manager: for score functions with several components, which GDPO normalizes one by
 * one.
 */
export class GdpoRewardManager implements RewardManager {
  readonly #computeScore: ComputeScore;
  readonly #options: ScoreSampleOptions;
  readonly #experimentName: string | null;

  /** Throws InvalidManagerOptionError. */
  constructor(args: RewardManagerArguments = {}) {
    const experimentName = args.options?.["experimentName"] ?? null;
    if (experimentName !== null && typeof experimentName !== "string") {
      throw new InvalidManagerOptionError(
        "gdpo",
        "experimentName",
        "a string",
        describeValue(experimentName),
      );
    }
    this.#computeScore = args.computeScore ?? defaultComputeScore;
    this.#options = scoreOptionsOf(args);
    this.#experimentName = experimentName;
  }

  /** Scores one sample. Rejects with the failure of the score function. */
  runSingle(sample: RewardSample): Promise<RewardResult> {
    return scoreSample(sample, this.#computeScore, this.#scoreOptions);
  }

  /** Scores the sample of a call that hears of its end, in place of a promise. */
  begin(call: ScoreCall): void {
    beginScore(call, this.#computeScore, this.#scoreOptions);
  }

  get #scoreOptions(): ScoreSampleOptions {
    return { ...this.#options, extraInfo: { experimentName: this.#experimentName } };
  }
}
