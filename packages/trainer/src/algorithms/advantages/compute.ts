/**
 * From scores to advantages, in the order of verl's trainer: KL in the reward, rollout correction,
 * the estimator by its name, PF-PPO's draw. Columns come in and columns go out; the caller puts
 * them into its batch.
 */

import { type Tensor, zeros } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import { validMask } from "../invalid-scores.ts";
import { applyKlPenalty, type KlController, type KlPenaltyKind } from "../kl.ts";
import { countOf } from "../masked-sums.ts";
import { viewOf } from "../matrix.ts";
import { correctRollouts } from "../rollout-correction/rollout-correction.ts";
import {
  type RolloutCorrectionSettings,
  withDefaults,
} from "../rollout-correction/correction-settings.ts";
import type { AdvantageBatch, Advantages, AdvantageSettings } from "./batch.ts";
import { drawRows, pfPpoWeights, type PfPpoSettings } from "./pf-ppo.ts";
import { type AdvantageRegistry, createAdvantageRegistry } from "./advantage-registry.ts";
import { ofLastOutputs } from "./sessions.ts";

/**
 * The input of the estimators with scores in place of rewards, and further columns that the steps
 * before the estimator need. Matrices are [rows, tokens].
 */
export interface AdvantageColumns extends Omit<
  AdvantageBatch,
  "tokenLevelRewards" | "rolloutIsWeights"
> {
  /** Scores of tokens, before KL in the reward, [rows, tokens]. */
  readonly tokenLevelScores: Tensor;
  /** Needed by `useKlInReward`, together with `oldLogProbs`. */
  readonly refLogProb?: Tensor;
  /**
   * Needed by the rollout correction, together with `oldLogProbs`. Without them nothing is
   * corrected.
   */
  readonly rolloutLogProbs?: Tensor;
  /**
   * Number of the agent run within the group that each row belongs to. Used by grpo, together with
   * `outputIndex`.
   */
  readonly sessions?: readonly (string | number)[];
  /** Number of each row among the outputs of its agent run. */
  readonly outputIndex?: readonly number[];
}

/** verl's `algorithm.*`. */
export interface ComputeAdvantageSettings extends AdvantageSettings {
  /** Default "gae". */
  readonly advEstimator?: string;
  /** Default false. */
  readonly useKlInReward?: boolean;
  /** Estimator of the divergence for `useKlInReward`. Default "kl". */
  readonly klPenalty?: KlPenaltyKind;
  /** Whether rows are drawn again by their scores; only with gae. Default false. */
  readonly usePfPpo?: boolean;
  /** How `usePfPpo` weighs rows. Default: their scores, squared. */
  readonly pfPpo?: PfPpoSettings;
  /** Settings of the rollout correction; the loss handles bypassMode. */
  readonly rolloutCorrection?: RolloutCorrectionSettings | null;
}

/** Parts that the computation of advantages uses or changes. */
export interface ComputeAdvantageParts {
  /** Default: verl's estimators. */
  readonly registry?: AdvantageRegistry;
  /** Needed by `useKlInReward`, which updates it. */
  readonly klController?: KlController;
  /** Random numbers from 0 to below 1; needed by `usePfPpo`. */
  readonly random?: () => number;
}

/** Advantages of a batch, with the columns that were worked out on the way. */
export interface ComputedAdvantage extends Advantages {
  /** Scores minus the KL penalty, if `useKlInReward` is set, [rows, tokens]. */
  readonly tokenLevelRewards: Tensor;
  /** Without what the rollout correction has rejected. */
  readonly responseMask: Tensor;
  /** Importance weights, if the rollout correction asks for them. */
  readonly rolloutIsWeights?: Tensor<"float32">;
  /**
   * Rows that `usePfPpo` drew, some more than once: learn from these in place of all rows. The
   * columns are not changed.
   */
  readonly drawnRows?: Int32Array;
  /** `actor/reward_kl_penalty*` and `rollout_corr/*`. */
  readonly metrics: Readonly<Record<string, number>>;
}

/**
 * Computes advantages and the steps before them (verl `compute_advantage`). Throws
 * TrainerInputError for a missing column or part, and the errors of the estimator.
 */
export function computeAdvantage(
  columns: AdvantageColumns,
  settings: ComputeAdvantageSettings = {},
  parts: ComputeAdvantageParts = {},
): ComputedAdvantage {
  const { advEstimator = "gae", usePfPpo = false } = settings;
  const estimate = (parts.registry ?? createAdvantageRegistry()).get(advEstimator);
  if (usePfPpo && advEstimator !== "gae") {
    throw new TrainerInputError(
      "usePfPpo",
      `usePfPpo goes with gae; advEstimator is ${advEstimator}`,
    );
  }
  const rewards = rewardsOf(columns, settings, parts);
  const corrected = correctedOf(columns, settings);
  const { sessions, outputIndex } = columns;
  const { tokenLevelRewards } = rewards;
  const { responseMask, rolloutIsWeights } = corrected;
  const weights = rolloutIsWeights === undefined ? {} : { rolloutIsWeights };
  const batch: AdvantageBatch = { ...columns, ...weights, tokenLevelRewards, responseMask };
  const hasSessions = sessions !== undefined && advEstimator === "grpo";
  const { advantages, returns } = hasSessions
    ? ofLastOutputs(estimate, batch, { sessions, outputIndex }, settings)
    : estimate(batch, settings);
  return {
    advantages,
    returns,
    tokenLevelRewards,
    responseMask,
    ...weights,
    ...(usePfPpo ? { drawnRows: drawnOf(columns, settings, parts) } : {}),
    metrics: { ...rewards.metrics, ...corrected.metrics },
  };
}

type Rewards = Pick<ComputedAdvantage, "tokenLevelRewards" | "metrics">;

function rewardsOf(
  { tokenLevelScores, responseMask, oldLogProbs, refLogProb, valid }: AdvantageColumns,
  { useKlInReward = false, klPenalty = "kl" }: ComputeAdvantageSettings,
  { klController }: ComputeAdvantageParts,
): Rewards {
  if (!useKlInReward) return { tokenLevelRewards: tokenLevelScores, metrics: {} };
  return applyKlPenalty(
    {
      tokenLevelScores,
      responseMask,
      ...(valid === undefined ? {} : { valid }),
      oldLogProbs: needed("oldLogProbs", oldLogProbs, "useKlInReward"),
      refLogProb: needed("refLogProb", refLogProb, "useKlInReward"),
    },
    needed("klController", klController, "useKlInReward"),
    klPenalty,
  );
}

type Corrected = Pick<ComputedAdvantage, "responseMask" | "rolloutIsWeights" | "metrics">;

function correctedOf(
  { responseMask, rolloutLogProbs, oldLogProbs, valid }: AdvantageColumns,
  { rolloutCorrection }: ComputeAdvantageSettings,
): Corrected {
  const isOff = rolloutCorrection === undefined || rolloutCorrection === null;
  if (isOff || rolloutCorrection.bypassMode === true || rolloutLogProbs === undefined) {
    return { responseMask, metrics: {} };
  }
  const old = needed("oldLogProbs", oldLogProbs, "rolloutCorrection");
  // A mini-batch of empty answers is nothing wrong: it has no token to correct.
  if (countOf(validMask(viewOf("responseMask", responseMask), valid)) === 0) {
    return { responseMask, ...noWeights(responseMask, rolloutCorrection), metrics: {} };
  }
  return correctRollouts(
    {
      oldLogProbs: old,
      rolloutLogProbs,
      responseMask,
      ...(valid === undefined ? {} : { valid }),
    },
    rolloutCorrection,
  );
}

/** Weights are there in each mini-batch, or the rows of a step lose them when they are joined. */
function noWeights(
  { shape }: Tensor,
  settings: RolloutCorrectionSettings,
): Pick<Corrected, "rolloutIsWeights"> {
  const { rolloutIs, rolloutIsThreshold } = withDefaults(settings);
  const isWeighted = rolloutIs !== null && rolloutIsThreshold !== null;
  return isWeighted ? { rolloutIsWeights: zeros(shape, "float32") } : {};
}

/** Returns the drawn rows; all rows where none is valid and so nothing is learned. */
function drawnOf(
  { tokenLevelScores, valid }: AdvantageColumns,
  { pfPpo }: ComputeAdvantageSettings,
  { random }: ComputeAdvantageParts,
): Int32Array {
  if (valid?.includes(true) === false) return Int32Array.from(valid.keys());
  const scored = valid === undefined ? { tokenLevelScores } : { tokenLevelScores, valid };
  return drawRows(pfPpoWeights(scored, pfPpo), needed("random", random, "usePfPpo"));
}

function needed<T>(name: string, value: T | undefined, by: string): T {
  if (value !== undefined) return value;
  throw new TrainerInputError(name, `${name} is missing, which ${by} needs`);
}
