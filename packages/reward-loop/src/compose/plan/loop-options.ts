/**
 * Options of a whole reward loop, as the user gives them (options/defaults/functions.ts): one
 * reward function, several with weights, or a cascade; a judge that takes over at the cap.
 *
 * A part inherits the loop's options, except for options of one endpoint (`limits`, `spend`) or of
 * the whole loop (`name`, `onFailure`, `rewardModel`).
 */

import type {
  componentOptions,
  loopOptions,
  partOptions,
  replayOptions,
  resumeOptions,
  SpendTable,
  stageOptions,
} from "../../options/defaults/functions.ts";
import type { OptionsOf } from "../../options/table.ts";

/** Options of a reward loop. */
export interface RewardLoopOptions extends OptionsOf<typeof loopOptions> {
  /**
   * Several rewards of each sample, by name, in place of `reward`: their scores are put together by
   * their weights.
   */
  readonly rewards?: Readonly<Record<string, RewardComponent>> | undefined;
  /**
   * Functions that are asked in order, by name, in place of `reward`: the next one only if the one
   * before cannot tell.
   */
  readonly cascade?: Readonly<Record<string, CascadeStage>> | undefined;
  /**
   * Prices by the scores' `usage`, the cap on spending, and the substitute judge. Default: costs
   * are not counted.
   */
  readonly spend?: SpendOptions | undefined;
  /**
   * The reward log of an earlier run that outcomes are taken from, matched by the samples' content.
   * Without a function no worker is started. Default: none.
   */
  readonly replay?: string | ReplayOptions | undefined;
}

/** A reward log whose scores are used again. */
export interface ReplayOptions extends OptionsOf<typeof replayOptions> {
  /** The path of the log. */
  readonly log: string;
}

/** How a loop resumes its log. */
export interface ResumeLogOptions extends OptionsOf<typeof resumeOptions> {}

/** A function among several. */
export interface RewardPart extends OptionsOf<typeof partOptions> {
  /** The part's own prices and cap; a cap of the loop holds besides. Default: the loop's prices. */
  readonly spend?: SpendOptions | undefined;
}

/** One of several rewards, with its function and weight. */
export interface RewardComponent extends OptionsOf<typeof componentOptions> {
  /**
   * The stage's own prices and cap; a cap of the loop holds besides. Default: the loop's prices.
   */
  readonly spend?: SpendOptions | undefined;
  /** A cascade of its own, in place of `reward`. */
  readonly cascade?: Readonly<Record<string, CascadeStage>> | undefined;
}

/** One stage of a cascade, with its function. */
export interface CascadeStage extends OptionsOf<typeof stageOptions> {
  /**
   * The judge's own prices and cap; a cap of the loop holds besides. Default: the loop's prices.
   */
  readonly spend?: SpendOptions | undefined;
}

/** Prices of calls, and the most that may be spent. */
export interface SpendOptions extends OptionsOf<SpendTable> {
  /**
   * "stop": no further sample is scored (default). Or the judge that takes over; it costs nothing
   * unless it has `spend.prices` of its own.
   */
  readonly whenReached?: "stop" | RewardPart | undefined;
}
