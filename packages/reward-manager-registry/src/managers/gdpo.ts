/**
 * verl's gdpo manager: the bare pipeline for score functions with several components, which GDPO
 * normalises one by one. Its extraInfo has the experiment's name in verl's spelling and in ours:
 * experiment_name, experimentName (null if unknown).
 */

import { InvalidManagerOptionError } from "../errors.ts";
import { defaultComputeScore } from "../scorers/default-compute-score.ts";
import type { ComputeScore, ScoreCall } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample } from "../scoring/sample.ts";
import { beginScore, scoreSample } from "../scoring/score-sample.ts";
import type { ScoreSampleOptions } from "../scoring/score-sample.ts";
import type { OptionNames } from "../option-names.ts";
import { describeValue } from "../value-description.ts";
import { checkArguments, checkManagerOptions, inBoth, scoreOptionsOf } from "./reward-manager.ts";
import type { RewardManager, RewardManagerArguments } from "./reward-manager.ts";

/** The manager's `options`. */
export interface GdpoOptions {
  /** verl `trainer.experiment_name`: score functions may depend on it. */
  readonly experimentName?: string;
}

const optionNames: OptionNames<GdpoOptions> = { experimentName: true };

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
    this.#options = scoreOptionsOf(args);
    // A subclass may have others.
    if (new.target === GdpoRewardManager) {
      checkArguments("gdpo", args);
      checkManagerOptions("gdpo", args.options ?? {}, optionNames);
    }
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
    this.#experimentName = experimentName;
  }

  /** Scores one sample. Rejects with the failure of the score function. */
  runSingle(sample: RewardSample): Promise<RewardResult> {
    const options = { ...this.#options, extraInfo: this.#named(sample) };
    return scoreSample(sample, this.#computeScore, options);
  }

  /** Scores the sample of a call that hears of its end, in place of a promise. */
  begin(call: ScoreCall): void {
    beginScore(call, this.#computeScore, this.#options, this.#named(call.sample));
  }

  #named({ extraInfo = {} }: RewardSample): Readonly<Record<string, unknown>> {
    const { experimentName: camel, experiment_name: snake } = extraInfo;
    const own = this.#experimentName ?? undefined;
    const [experimentName, experiment_name] = inBoth(own, camel, snake, null);
    return { experimentName, experiment_name };
  }
}
