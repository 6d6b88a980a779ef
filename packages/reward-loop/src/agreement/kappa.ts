/**
 * Cohen's kappa: the agreement of two raters beyond what chance gives, from pairs of their scores.
 */

/** The scores of two raters for one sample. */
export type ScorePair = readonly [first: number, second: number];

/**
 * Returns Cohen's kappa: (observed - expected) / (1 - expected) agreement, where chance is two
 * independent raters with the raters' own frequencies. Each distinct score is a category.
 * Undefined without pairs, and where both raters gave one and the same score to all.
 *
 * Source: J. Cohen, "A coefficient of agreement for nominal scales" (1960); equal to scikit-learn's
 * `cohen_kappa_score`.
 */
export function cohenKappa(pairs: readonly ScorePair[]): number | undefined {
  const counts = { first: new Map<number, number>(), second: new Map<number, number>() };
  let equal = 0;
  for (const [first, second] of pairs) {
    counts.first.set(first, (counts.first.get(first) ?? 0) + 1);
    counts.second.set(second, (counts.second.get(second) ?? 0) + 1);
    if (first === second) equal += 1;
  }
  const total = pairs.length;
  let expected = 0;
  for (const [score, count] of counts.first) expected += count * (counts.second.get(score) ?? 0);
  // In whole numbers, so that a kappa that is undefined is not a rounding error.
  const disagreements = total * total - expected;
  return disagreements === 0 ? undefined : (total * equal - expected) / disagreements;
}

/**
 * Returns Cohen's weighted kappa with quadratic weights: 1 - observed / expected mean square of the
 * difference between the two scores. The difference is that of the scores themselves, not of their
 * ranks: a rater who never gives a grade changes nothing. Undefined without pairs, and where both
 * raters gave one and the same score to all.
 *
 * Source: J. Cohen, "Weighted kappa" (1968); equal to scikit-learn's
 * `cohen_kappa_score(weights="quadratic")` for grades at equal distances, all named in `labels`.
 */
export function quadraticKappa(pairs: readonly ScorePair[]): number | undefined {
  const total = pairs.length;
  const [only] = pairs[0] ?? [];
  // By the scores themselves: their variance may be a rounding error, and not 0.
  if (pairs.every((pair) => pair.every((score) => score === only))) return undefined;
  const first = momentsOf(pairs.map(([score]) => score));
  const second = momentsOf(pairs.map(([, score]) => score));
  // The mean square of the difference between independent scores with these means and variances.
  const expected = first.variance + second.variance + (first.mean - second.mean) ** 2;
  if (expected === 0) return undefined;
  const observed = pairs.reduce((sum, [one, other]) => sum + (one - other) ** 2, 0) / total;
  return 1 - observed / expected;
}

function momentsOf(values: readonly number[]): {
  readonly mean: number;
  readonly variance: number;
} {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return { mean, variance: squares / values.length };
}
