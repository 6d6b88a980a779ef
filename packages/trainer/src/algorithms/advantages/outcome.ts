/**
 * Estimators that give each token of a row the same: its score, compared with others of its group.
 */

import { TrainerInputError } from "../../errors.ts";
import { type GroupId, groupMean, statisticsOf } from "../groups.ts";
import { whiteningOfRows } from "../masked-sums.ts";
import { rowSums } from "../matrix.ts";
import {
  type AdvantageBatch,
  type AdvantageEstimator,
  type Advantages,
  type AdvantageSettings,
  advantagesOf,
  broadcastInto,
  type GroupedRows,
  groupedRowsOf,
  hasSpread,
  newColumn,
  type Rows,
} from "./batch.ts";

interface ScoredRows extends GroupedRows {
  /** Reward of each row: the sum over all of its tokens, masked or not. */
  readonly scores: Float64Array;
}

function scoredRowsOf(batch: AdvantageBatch): ScoredRows {
  const rows = groupedRowsOf(batch);
  return { ...rows, scores: rowSums(rows.rewards) };
}

/**
 * (R - mean) / (std + epsilon) of its group, or without the division. A group of one keeps its
 * score.
 */
export const grpo: AdvantageEstimator = (batch, settings = {}) => {
  const rows = scoredRowsOf(batch);
  return outcome(rows, normalized(rows, rows.scores, settings));
};

function normalized(
  rows: ScoredRows,
  scores: Float64Array,
  { normAdvByStdInGrpo = true, epsilon = 1e-6 }: AdvantageSettings,
): Float64Array {
  return byGroup(rows, (group, advantages) => {
    const { mean, std } = statisticsOf(group, scores);
    for (const row of group) {
      const difference = (scores[row] ?? NaN) - mean;
      advantages[row] = normAdvByStdInGrpo ? difference / (std + epsilon) : difference;
    }
  });
}

/** pass@k: only the best row of a group has an advantage, its lead over the second. */
export const grpoPassk: AdvantageEstimator = (batch, settings = {}) => {
  const { normAdvByStdInGrpo = true, epsilon = 1e-6 } = settings;
  const rows = scoredRowsOf(batch);
  return outcome(
    rows,
    byGroup(rows, (group, advantages, id) => {
      if (group.length < 2) {
        throw new TrainerInputError(
          "groups",
          `pass@k needs at least 2 rows of each group; group ${String(id)} has ${group.length}`,
        );
      }
      const [best = 0, second = 0] = group.toSorted(
        (left, right) => (rows.scores[right] ?? NaN) - (rows.scores[left] ?? NaN),
      );
      const lead = (rows.scores[best] ?? NaN) - (rows.scores[second] ?? NaN);
      const { std } = statisticsOf(group, rows.scores);
      advantages[best] = normAdvByStdInGrpo ? lead / (std + epsilon) : lead;
    }),
  );
};

/** Leave one out: n / (n - 1) (R - mean). */
export const rloo: AdvantageEstimator = (batch) => leaveOneOut(batch, 1);

/** Leave one out; the advantage of a group of one is 0. */
export const rlooVectorized: AdvantageEstimator = (batch) => leaveOneOut(batch, 0);

/** @param alone by what the score of a group of one is multiplied */
function leaveOneOut(batch: AdvantageBatch, alone: number): Advantages {
  const rows = scoredRowsOf(batch);
  return outcome(
    rows,
    byGroup(rows, (group, advantages) => {
      const mean = groupMean(group, rows.scores);
      const factor = group.length / (group.length - 1);
      for (const row of group) {
        const score = rows.scores[row] ?? NaN;
        advantages[row] = group.length === 1 ? alone * score : factor * (score - mean);
      }
    }),
  );
}

/** R minus the mean of its group weighted by lengths. */
export const opo: AdvantageEstimator = (batch) => {
  const rows = scoredRowsOf(batch);
  const { lengths } = rows.runs;
  return outcome(
    rows,
    byGroup(rows, (group, advantages) => {
      let weighted = 0;
      let length = 0;
      for (const row of group) {
        weighted += (lengths[row] ?? NaN) * (rows.scores[row] ?? NaN);
        length += lengths[row] ?? NaN;
      }
      const baseline = group.length === 1 ? 0 : weighted / length;
      for (const row of group) advantages[row] = (rows.scores[row] ?? NaN) - baseline;
    }),
  );
};

/** alpha (R - mean) / f_norm, where alpha makes up for rows that score 0. */
export const gpg: AdvantageEstimator = (batch, { fNorm = 1 } = {}) => {
  const rows = scoredRowsOf(batch);
  let used = 0;
  let scoring = 0;
  for (const [row, score] of rows.scores.entries()) {
    if (!rows.isValid(row)) continue;
    used += 1;
    if (score !== 0) scoring += 1;
  }
  const alpha = used / Math.max(scoring, 1);
  return outcome(
    rows,
    byGroup(rows, (group, advantages) => {
      const { mean } = statisticsOf(group, rows.scores);
      for (const row of group)
        advantages[row] = (alpha * ((rows.scores[row] ?? NaN) - mean)) / fNorm;
    }),
  );
};

/** R - mean of its group, whitened over all tokens. */
export const reinforcePlusPlusBaseline: AdvantageEstimator = (batch) => {
  const rows = scoredRowsOf(batch);
  const centred = byGroup(rows, (group, advantages) => {
    const { mean } = statisticsOf(group, rows.scores);
    for (const row of group) advantages[row] = (rows.scores[row] ?? NaN) - mean;
  });
  return whitenedOutcome(rows, centred);
};

/**
 * Each component normalised by itself in its group, their weighted sum whitened; without
 * components, the score is the only one.
 */
export const gdpo: AdvantageEstimator = (batch, settings = {}) => {
  const rows = scoredRowsOf(batch);
  const components = componentsOf(batch, settings, rows);
  const sums = new Float64Array(rows.mask.rows);
  for (const { scores, weight } of components) {
    const advantages = normalized(rows, scores, settings);
    for (let row = 0; row < sums.length; row++) {
      sums[row] = (sums[row] ?? NaN) + weight * (advantages[row] ?? NaN);
    }
  }
  return whitenedOutcome(rows, sums);
};

function componentsOf(
  { rewardComponents }: AdvantageBatch,
  { gdpoRewardKeys, gdpoRewardWeights }: AdvantageSettings,
  rows: ScoredRows,
): { readonly scores: Float64Array; readonly weight: number }[] {
  if (rewardComponents === undefined && gdpoRewardKeys === undefined) {
    return [{ scores: rows.scores, weight: 1 }];
  }
  if (gdpoRewardKeys === undefined || gdpoRewardKeys.length === 0) {
    throw new TrainerInputError(
      "gdpoRewardKeys",
      `gdpoRewardKeys must name components of the reward; there are ${Object.keys(rewardComponents ?? {}).join(", ")}`,
    );
  }
  if (rewardComponents === undefined) {
    throw new TrainerInputError(
      "rewardComponents",
      `rewardComponents are missing, which gdpoRewardKeys name: ${gdpoRewardKeys.join(", ")}`,
    );
  }
  if (gdpoRewardWeights !== undefined && gdpoRewardWeights.length !== gdpoRewardKeys.length) {
    throw new TrainerInputError(
      "gdpoRewardWeights",
      `${gdpoRewardKeys.length} components have ${gdpoRewardWeights.length} weights`,
    );
  }
  return gdpoRewardKeys.map((key, index) => {
    const scores = Object.hasOwn(rewardComponents, key) ? rewardComponents[key] : undefined;
    if (scores === undefined || scores.length !== rows.rewards.rows) {
      throw new TrainerInputError(
        "rewardComponents",
        `component "${key}" is not there for each row; there are ${Object.keys(rewardComponents).join(", ")}. The score function must return it`,
      );
    }
    return { scores: Float64Array.from(scores), weight: gdpoRewardWeights?.[index] ?? 1 };
  });
}

/** Fills one value for each row, group by group; rows of no group have 0. */
function byGroup(
  { rewards, groups }: ScoredRows,
  fill: (group: readonly number[], advantages: Float64Array, id: GroupId) => void,
): Float64Array {
  const advantages = new Float64Array(rewards.rows);
  for (const [id, group] of groups) fill(group, advantages, id);
  return advantages;
}

function outcome(rows: Rows, values: Float64Array): Advantages {
  const advantages = newColumn(rows);
  broadcastInto(advantages, values, rows.runs);
  return advantagesOf(rows, advantages);
}

/**
 * As `outcome`, whitened over all tokens. Fewer than two of them have no spread to scale by: all 0.
 */
function whitenedOutcome(rows: Rows, values: Float64Array): Advantages {
  const advantages = newColumn(rows);
  if (!hasSpread(rows)) return advantagesOf(rows, advantages);
  const { firsts, starts, ends, weights } = rows.runs;
  const { mean, scale } = whiteningOfRows(values, rows.runs);
  for (const [row, value] of values.entries()) {
    const last = firsts[row + 1] ?? NaN;
    for (let run = firsts[row] ?? NaN; run < last; run++) {
      const weight = weights[run] ?? NaN;
      advantages.fill((value * weight - mean) * scale * weight, starts[run], ends[run]);
    }
  }
  return advantagesOf(rows, advantages);
}
