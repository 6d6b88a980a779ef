/**
 * The agreement of two raters of the same samples.
 */

import { cohenKappa, quadraticKappa } from "./kappa.ts";
import type { ScorePair } from "./kappa.ts";

/** How much two raters agree on the samples that both scored. Shares are from 0 to 1. */
export interface PairAgreement {
  /** The number of samples that both scored. */
  readonly samples: number;
  /** The share of equal scores; null without samples. */
  readonly exact: number | null;
  /** The share of scores that differ by at most the tolerance; null without samples. */
  readonly within: number | null;
  /** Cohen's kappa (`cohenKappa`); null where it is undefined. */
  readonly kappa: number | null;
  /** Quadratic-weighted kappa; null where it is undefined, and for two scores or fewer. */
  readonly weightedKappa: number | null;
  /** The mean of second score minus first score; null without samples. */
  readonly meanDifference: number | null;
}

/**
 * Compares the scores of two raters.
 *
 * @param tolerance the largest difference that counts as agreement
 */
export function agreementOf(pairs: readonly ScorePair[], tolerance: number): PairAgreement {
  const isGraded = new Set(pairs.flat()).size > 2;
  const shareOf = (isWanted: (pair: ScorePair) => boolean): number | null =>
    pairs.length === 0 ? null : pairs.filter(isWanted).length / pairs.length;
  const difference = pairs.reduce((sum, [first, second]) => sum + (second - first), 0);
  return {
    samples: pairs.length,
    exact: shareOf(([first, second]) => first === second),
    within: shareOf((pair) => isWithin(pair, tolerance)),
    kappa: cohenKappa(pairs) ?? null,
    // With two scores the weights are equal, and so are the two kappas.
    weightedKappa: isGraded ? (quadraticKappa(pairs) ?? null) : null,
    meanDifference: pairs.length === 0 ? null : difference / pairs.length,
  };
}

/** Decimal fractions that differ by the tolerance count as within it: 0.8 and 0.7 within 0.1. */
export function isWithin([first, second]: ScorePair, tolerance: number): boolean {
  const rounding = 4 * Number.EPSILON * Math.max(Math.abs(first), Math.abs(second), tolerance);
  return Math.abs(first - second) <= tolerance + rounding;
}
