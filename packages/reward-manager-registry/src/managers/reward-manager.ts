/**
 * The contract of a reward manager: it turns ONE sample into a score, with everything around the
 * score function (extra fields, penalties, limits, another process). Batches, actors and threads
 * belong to reward-loop.
 */

import { InvalidManagerOptionError } from "../errors.ts";
import { unknownOption } from "../option-names.ts";
import type { OptionNames } from "../option-names.ts";
import type { ComputeScore, RewardModelArguments, ScoreCall } from "../scoring/compute-score.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { RewardSample, Tokenizer } from "../scoring/sample.ts";
import type { ScoreSampleOptions } from "../scoring/score-sample.ts";

/** A reward manager: turns one sample into a score (verl `RewardManagerBase`). */
export interface RewardManager {
  /** verl `run_single`: scores one sample. Rejects with the failure of the score function. */
  runSingle(sample: RewardSample): Promise<RewardResult>;
  /**
   * `runSingle` for a call that hears of its end in place of a promise. Managers of this package
   * have it; it is asked of no subclass, whose `runSingle` may do more. Never throws.
   */
  begin?(call: ScoreCall): void;
}

/** The values that verl's managers read from the whole config tree. */
export interface RewardManagerArguments extends RewardModelArguments {
  /** Default: defaultComputeScore. */
  readonly computeScore?: ComputeScore | undefined;
  /** Decodes responses that are token ids. Without it they fail with MissingTokenizerError. */
  readonly tokenizer?: Tokenizer | undefined;
  /** The manager's own settings (verl `reward.reward_kwargs` and similar). */
  readonly options?: Readonly<Record<string, unknown>> | undefined;
}

const argumentNames: OptionNames<RewardManagerArguments> = {
  computeScore: true,
  tokenizer: true,
  options: true,
  rewardRouterAddress: true,
  rewardRouterToken: true,
  rewardModelTokenizer: true,
  rewardModels: true,
};

/** Throws InvalidManagerOptionError for an argument that managers do not have. */
export function checkArguments(manager: string, args: RewardManagerArguments): void {
  checkManagerOptions(manager, args, argumentNames);
}

/**
 * Throws InvalidManagerOptionError for an option that there is not.
 *
 * @param place the name of the option that holds these; "" for none
 */
export function checkManagerOptions(
  manager: string,
  options: object,
  names: Readonly<Record<string, true>>,
  place: string = "",
): void {
  const problem = unknownOption(options, names);
  if (problem === undefined) return;
  const option = place === "" ? problem.option : `${place}.${problem.option}`;
  throw new InvalidManagerOptionError(manager, option, problem.expected, problem.received);
}

/** Returns the arguments of a manager that go on to `scoreSample`. */
export function scoreOptionsOf(args: RewardManagerArguments): ScoreSampleOptions {
  const { computeScore: _function, options: _settings, ...rest } = args;
  return rest;
}

/** A class of reward managers, as a registry takes it. */
export interface RewardManagerClass {
  new (args: RewardManagerArguments): RewardManager;
  /** The name of the class, for messages. */
  readonly name: string;
  /**
   * Awaited once per class and registry, before its first instance (verl `init_class`); a failure
   * is retried at the next one.
   */
  initClass?(args: RewardManagerArguments): void | PromiseLike<void>;
  /**
   * Places the scores of a batch (verl `assemble_rm_scores`): it returns `width` finite numbers for
   * each row, one row behind the other. Its numbers for rows without a score are ignored. Default:
   * each score at the last valid token of its row, zeros elsewhere.
   */
  assembleRmScores?(batch: ScoredBatch): ArrayLike<number> | PromiseLike<ArrayLike<number>>;
}

/** A batch with scored samples. */
export interface ScoredBatch {
  /** Columns of a row: the most tokens of a response. */
  readonly width: number;
  /** The valid tokens of each response. */
  readonly lengths: readonly number[];
  /** Scores by row; null for an invalid one. */
  readonly scores: readonly (number | null)[];
  /** The extra info of each score; null where the score is invalid. */
  readonly rewardExtraInfos: readonly (Readonly<Record<string, unknown>> | null)[];
  /** Token ids of each response, without padding; absent when responses are texts. */
  readonly responses?: readonly (readonly number[])[];
}

/**
 * Returns a fact about a sample for our spelling of its name and for verl's. What the manager knows
 * stands in both. Else each is what the row has under it, or under the other one.
 */
export function inBoth(
  known: unknown,
  inCamel: unknown,
  inSnake: unknown,
  otherwise: unknown,
): readonly [camel: unknown, snake: unknown] {
  if (known !== undefined) return [known, known];
  return [inCamel ?? inSnake ?? otherwise, inSnake ?? inCamel ?? otherwise];
}
