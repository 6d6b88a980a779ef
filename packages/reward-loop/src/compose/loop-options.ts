/**
 * Options of a whole reward loop, as the user gives them: one reward function, several with weights, or a cascade; a judge that takes over at the cap.
 *
 * What a part does not say it has from the loop, but for what belongs to one endpoint (`limits`, `spend`) or to the whole (`name`, `onFailure`, `rewardModel`).
 */

import type { RewardFunctionOptions } from "../settings.ts";
import type { SpendSettings } from "../spend/purse.ts";

export interface RewardLoopOptions extends Omit<RewardFunctionOptions, "spend"> {
  /** Several rewards of each sample, by name, in place of `reward`: their scores are put together by their weights. */
  readonly rewards?: Readonly<Record<string, RewardComponent>> | undefined;
  /** How: the sum of weight x score (default), or that divided by the sum of the weights. */
  readonly combine?: "sum" | "mean" | undefined;
  /** Functions that are asked in order, by name, in place of `reward`: the next one only if the one before cannot tell. */
  readonly cascade?: Readonly<Record<string, CascadeStage>> | undefined;
  /** Prices by what scores say they used (`usage`), what may be spent, and what then. Default: nobody counts. */
  readonly spend?: SpendOptions | undefined;
  /** Reward log of a run that this one goes on with: what its scores have cost is spent, of the caps of `spend`; a file that is not there says that nothing is. Default: nothing is spent. */
  readonly spentBefore?: string | undefined;
  /** File of a reward log (JSONL) to which every outcome is appended. Default: none. */
  readonly record?: string | undefined;
  /** Reward log of an earlier run that outcomes are taken from, by what samples say. Without a function nothing else is started. Default: none. */
  readonly replay?: string | ReplayOptions | undefined;
}

export interface ReplayOptions {
  readonly log: string;
  /** Of samples that are not in there: "fail": they are invalid, NOT_IN_LOG (default); "ask": the functions are asked. */
  readonly missing?: "fail" | "ask" | undefined;
}

/** One of several functions. */
export interface RewardPart extends Omit<
  RewardFunctionOptions,
  "name" | "rewardModel" | "onFailure" | "spend"
> {
  /** Of its own; a cap of the loop holds besides. Default: the loop's prices. */
  readonly spend?: SpendOptions | undefined;
}

export interface RewardComponent extends RewardPart {
  /** A cascade of its own, in place of `reward`. */
  readonly cascade?: Readonly<Record<string, CascadeStage>> | undefined;
  /** Default 1. 0 or below may be: a score that is only looked at, a penalty. */
  readonly weight?: number | undefined;
  /**
   * What the sample is worth where this one is invalid: "mask": invalid, too (default); "leaveOut": what the others say, and invalid if none is left; `{ score }`: that score in its place.
   */
  readonly onInvalid?: "mask" | "leaveOut" | { readonly score: number } | undefined;
}

export interface CascadeStage extends RewardPart {
  /** When the next stage is asked: "cannotTell": when it returns null or a score of null (default); "invalid": when it gives no score, for whatever reason; not of the last one, which nobody comes after. */
  readonly passOn?: "cannotTell" | "invalid" | undefined;
}

export interface SpendOptions extends SpendSettings {
  /** "stop": samples are not scored any more (default). Or the judge that takes over; it costs nothing unless it has `spend.prices` of its own. */
  readonly whenReached?: "stop" | RewardPart | undefined;
}
