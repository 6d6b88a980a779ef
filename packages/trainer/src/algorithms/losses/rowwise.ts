/** Losses that look at more than one token: at the covariance of all of them, or at rows. */

import { TrainerInputError } from "../../errors.ts";
import { maskedMean } from "../masked.ts";
import { clamp, filled, rowSums, tensorOf } from "../matrix.ts";
import {
  clippedLosses,
  clipRangeOf,
  larger,
  type PolicyLoss,
  policyLossOf,
  type PolicyRows,
  policyRowsOf,
  ppoKlOf,
  shareOf,
  tokenLosses,
} from "./policy-loss.ts";

/** PPO's clip; a few of the tokens whose log-probability goes along with their advantage are left out, drawn at random: they are what entropy is lost by. */
export const clipCov: PolicyLoss = (batch, settings = {}) => {
  const { clipCovRatio = 0.0002, clipCovLb = 1, clipCovUb = 5, permutation = shuffled } = settings;
  if (!(clipCovRatio > 0))
    throw new TrainerInputError(
      "clipCovRatio",
      `clipCovRatio must be above 0; it is ${clipCovRatio}`,
    );
  const rows = policyRowsOf(batch);
  const range = clipRangeOf(settings);
  const pairs = Array.from(rows.logProb.data, (_, at) => {
    const ratio = Math.exp(rows.logRatio.data[at] as number);
    return clippedLosses(rows.advantages.data[at] as number, ratio, ratio, range);
  });
  const covariances = covariancesOf(
    rows,
    maskedMean(rows.advantages, rows.mask),
    maskedMean(rows.logProb, rows.mask),
  );
  const candidates = [...covariances.keys()].filter((at) => {
    const pair = pairs[at] as (typeof pairs)[number];
    const covariance = covariances[at] as number;
    const isFree = (rows.mask.data[at] as number) > 0 && !(pair.clipped.value > pair.plain.value);
    return isFree && covariance < clipCovUb && covariance > clipCovLb;
  });
  const tokens = rowSums(rows.mask).reduce((sum, one) => sum + one, 0);
  const count = Math.min(Math.max(Math.trunc(clipCovRatio * tokens), 1), candidates.length);
  const order = candidates.length === 0 ? [] : permutation(candidates.length);
  const left = new Set(order.slice(0, count).map((place) => candidates[place] as number));
  const losses = tokenLosses(rows, (at) => {
    const { plain, clipped } = pairs[at] as (typeof pairs)[number];
    return left.has(at) ? { value: 0, slope: 0 } : larger(plain, clipped);
  });
  return policyLossOf(rows, losses, settings, {
    "actor/pg_clipfrac": shareOf(rows, (at) => left.has(at)),
    "actor/ppo_kl": ppoKlOf(rows),
  });
};

/** No clip; the tokens of the largest covariance pay for how far they have moved. */
export const klCov: PolicyLoss = (batch, settings = {}) => {
  const { klCovRatio = 0.0002, ppoKlCoef = 1 } = settings;
  if (!(klCovRatio > 0))
    throw new TrainerInputError("klCovRatio", `klCovRatio must be above 0; it is ${klCovRatio}`);
  const rows = policyRowsOf(batch);
  const valid = [...rows.mask.data.keys()].filter((at) => (rows.mask.data[at] as number) > 0);
  const meanOf = (data: Float64Array): number =>
    valid.reduce((sum, at) => sum + (data[at] as number), 0) / valid.length;
  const covariances = covariancesOf(rows, meanOf(rows.advantages.data), meanOf(rows.logProb.data));
  const count = valid.length === 0 ? 0 : Math.max(1, Math.trunc(valid.length * klCovRatio));
  const largest = valid.toSorted((a, b) => (covariances[b] as number) - (covariances[a] as number));
  const paying = new Set(largest.slice(0, count));
  const losses = tokenLosses(rows, (at) => {
    const advantage = rows.advantages.data[at] as number;
    const logRatio = rows.logRatio.data[at] as number;
    const loss = -advantage * Math.exp(logRatio);
    if (!paying.has(at)) return { value: loss, slope: loss };
    return {
      value: loss + ppoKlCoef * Math.abs(logRatio),
      slope: loss + ppoKlCoef * Math.sign(logRatio),
    };
  });
  const distance = filled(rows.mask, (_row, _column, at) =>
    Math.abs(rows.logRatio.data[at] as number),
  );
  return policyLossOf(rows, losses, settings, { "actor/ppo_kl": maskedMean(distance, rows.mask) });
};

function covariancesOf(
  { advantages, logProb }: PolicyRows,
  meanAdvantage: number,
  meanLogProb: number,
): Float64Array {
  return advantages.data.map(
    (advantage, at) => (advantage - meanAdvantage) * ((logProb.data[at] as number) - meanLogProb),
  );
}

function shuffled(count: number): readonly number[] {
  const order = Array.from({ length: count }, (_, place) => place);
  for (let last = count - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [order[last], order[other]] = [order[other] as number, order[last] as number];
  }
  return order;
}

/** The geometric mean of the ratios of a row, each clipped in log space on the side that its advantage pulls to. The mean of all rows, whatever the mode. */
export const geoMean: PolicyLoss = (batch, settings = {}) => {
  const rows = policyRowsOf(batch);
  const { low, high } = clipRangeOf(settings);
  const { columns } = rows.mask;
  const lengths = rowSums(rows.mask);
  const gradient = filled(rows.mask, () => 0);
  let loss = 0;
  for (let row = 0; row < rows.mask.rows; row++) {
    const length = (lengths[row] as number) + 1e-8;
    let logRatio = 0;
    let advantage = 0;
    let logWeight = 0;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const mask = rows.mask.data[at] as number;
      logRatio += keptLogRatio(rows, at, low, high).value * mask;
      advantage += (rows.advantages.data[at] as number) * mask;
      logWeight +=
        Math.log((rows.weights?.data[at] ?? 1) + (rows.weights === undefined ? 0 : 1e-10)) * mask;
    }
    const value =
      -(advantage / length) * Math.exp(logRatio / length) * Math.exp(logWeight / length);
    loss += value / rows.mask.rows;
    for (let at = row * columns; at < (row + 1) * columns; at++) {
      const mask = rows.mask.data[at] as number;
      const { slope } = keptLogRatio(rows, at, low, high);
      gradient.data[at] = mask === 0 ? 0 : ((value / rows.mask.rows) * slope * mask) / length;
    }
  }
  const isClipped = (at: number): boolean => {
    const one = rows.logRatio.data[at] as number;
    return clamp(one, -low, high) !== one;
  };
  return {
    loss,
    gradLogProb: tensorOf(gradient),
    metrics: {
      "actor/pg_clipfrac": shareOf(
        rows,
        (at) => isClipped(at) && (rows.advantages.data[at] as number) > 0,
      ),
      "actor/ppo_kl": ppoKlOf(rows),
      "actor/pg_clipfrac_lower": shareOf(
        rows,
        (at) => isClipped(at) && (rows.advantages.data[at] as number) < 0,
      ),
    },
  };
};

function keptLogRatio(
  { advantages, logRatio }: PolicyRows,
  at: number,
  low: number,
  high: number,
): { readonly value: number; readonly slope: number } {
  const sign = Math.sign(advantages.data[at] as number);
  const value = logRatio.data[at] as number;
  if (sign === 0) return { value: 0, slope: 0 };
  const kept = clamp(value, -low, high);
  return sign * value <= sign * kept ? { value, slope: 1 } : { value: kept, slope: 0 };
}
