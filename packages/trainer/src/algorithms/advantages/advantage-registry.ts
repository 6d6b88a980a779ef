/**
 * Advantage estimators by verl's names. A registry is a value that the caller creates and passes
 * on: importing a module registers nothing.
 */

import { TrainerInputError } from "../../errors.ts";
import type { AdvantageEstimator } from "./batch.ts";
import {
  gdpo,
  gpg,
  grpo,
  grpoPassk,
  opo,
  reinforcePlusPlusBaseline,
  rloo,
  rlooVectorized,
} from "./outcome.ts";
import { gae, reinforcePlusPlus, remax } from "./token.ts";
import { optimalTokenBaseline, tirOptimalTokenBaseline } from "./token-baseline.ts";

/** Advantage estimators by name. */
export interface AdvantageRegistry {
  /**
   * Returns the estimator. The same again is fine; another one under a name that is taken throws
   * TrainerInputError.
   */
  register(name: string, estimator: AdvantageEstimator): AdvantageEstimator;
  /** Throws TrainerInputError, which lists the names there are. Case sensitive. */
  get(name: string): AdvantageEstimator;
  /** Returns the names of all registered estimators. */
  names(): string[];
}

/** Creates a registry that has verl's estimators. */
export function createAdvantageRegistry(): AdvantageRegistry {
  const estimators = new Map<string, AdvantageEstimator>(Object.entries(verl));
  return {
    register(name, estimator) {
      const known = estimators.get(name);
      if (known !== undefined && known !== estimator) {
        throw new TrainerInputError(
          "advEstimator",
          `another advantage estimator is registered as "${name}"`,
        );
      }
      estimators.set(name, estimator);
      return estimator;
    },
    get(name) {
      const estimator = estimators.get(name);
      if (estimator !== undefined) return estimator;
      throw new TrainerInputError(
        "advEstimator",
        `there is no advantage estimator "${name}"; there are ${[...estimators.keys()].join(", ")}`,
      );
    },
    names: () => [...estimators.keys()],
  };
}

const verl: Readonly<Record<string, AdvantageEstimator>> = {
  gae,
  grpo,
  // verl's second way to work out the same.
  grpo_vectorized: grpo,
  grpo_passk: grpoPassk,
  rloo,
  rloo_vectorized: rlooVectorized,
  opo,
  gpg,
  remax,
  reinforce_plus_plus: reinforcePlusPlus,
  reinforce_plus_plus_baseline: reinforcePlusPlusBaseline,
  gdpo,
  optimal_token_baseline: optimalTokenBaseline,
  tir_optimal_token_baseline: tirOptimalTokenBaseline,
};
