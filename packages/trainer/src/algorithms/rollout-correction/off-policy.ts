/**
 * How far the policy that is trained is from the one that made the rollouts (verl
 * `compute_offpolicy_metrics`). Rows without tokens count with a mean of 0.
 */

import { divisorOf, maskedRowMeans } from "../masked-sums.ts";
import { clamp, type MatrixView } from "../matrix.ts";
import { eachRatioRow, type RatioRow, safetyBound } from "./ratio-rows.ts";
import { checkTokens } from "./rejection.ts";
import { spreadOf } from "../statistics.ts";
import { meanOf } from "../../values/sums.ts";

/** Without a prefix. @throws TrainerInputError where no token counts */
export function offPolicyMetrics(
  logProb: MatrixView,
  rolloutLogProb: MatrixView | undefined,
  mask: MatrixView,
): Record<string, number> {
  checkTokens(mask);
  if (rolloutLogProb === undefined) return ownMetrics(maskedRowMeans(logProb, mask));
  const collector = newOffPolicyCollector(mask.rows);
  eachRatioRow({ logProb, rolloutLogProb, mask }, collector.add);
  return collector.metrics();
}

/** Looks at rows that are shown to it one after the other. */
export interface OffPolicyCollector {
  readonly add: (row: RatioRow) => void;
  readonly metrics: () => Record<string, number>;
}

export function newOffPolicyCollector(rows: number): OffPolicyCollector {
  const training = new Float64Array(rows);
  const rollout = new Float64Array(rows);
  const logRatios = new Float64Array(rows);
  const sums = { count: 0, logRatio: 0, k3: 0, squares: 0 };
  return {
    add(tokens) {
      const { row, count, logProbSum, rolloutSum, logRatioSum } = tokens;
      training[row] = logProbSum / divisorOf(count);
      rollout[row] = rolloutSum / divisorOf(count);
      logRatios[row] = logRatioSum;
      sums.count += count;
      sums.logRatio += logRatioSum;
      addDistances(sums, tokens);
    },
    metrics() {
      const differences = rollout.map((mean, row) => mean - (training[row] ?? NaN));
      const { mean, max, min } = spreadOf(differences);
      const divisor = divisorOf(sums.count);
      return {
        ...ownMetrics(training),
        kl: -(sums.logRatio / divisor),
        k3_kl: sums.k3 / divisor,
        rollout_ppl: meanOf(rollout.map((one) => Math.exp(-one))),
        rollout_log_ppl: -meanOf(rollout),
        log_ppl_diff: mean,
        log_ppl_abs_diff: meanOf(differences.map(Math.abs)),
        log_ppl_diff_max: max,
        log_ppl_diff_min: min,
        ppl_ratio: meanOf(differences.map(Math.exp)),
        chi2_token: sums.squares / divisor - 1,
        chi2_seq: meanOf(logRatios.map(squaredRatio)) - 1,
      };
    },
  };
}

function ownMetrics(training: Float64Array): Record<string, number> {
  return {
    training_ppl: meanOf(training.map((mean) => Math.exp(-mean))),
    training_log_ppl: -meanOf(training),
  };
}

/** The ratio of k3 is not bounded; the squared one is that of the bounded log ratio. */
function addDistances(
  sums: { k3: number; squares: number },
  { length, mask, logRatios, bounded, ratios }: RatioRow,
): void {
  let { k3, squares } = sums;
  for (let index = 0; index < length; index++) {
    const counted = mask[index] ?? NaN;
    const logRatio = logRatios[index] ?? NaN;
    const ratio = ratios[index] ?? NaN;
    const whole = bounded[index] === logRatio ? ratio : Math.exp(logRatio);
    k3 += (whole - logRatio - 1) * counted;
    squares += ratio * ratio * counted;
  }
  sums.k3 = k3;
  sums.squares = squares;
}

function squaredRatio(logRatio: number): number {
  return Math.exp(2 * clamp(logRatio, -safetyBound, safetyBound));
}
