/**
 * Rows of one prompt: which belong together, and what their scores are like
 * (verl/utils/groupwise.py).
 */

export type GroupId = string | number;

export interface GroupStatistics {
  readonly rows: readonly number[];
  readonly mean: number;
  /** Standard deviation of the sample, divided by n - 1; 1 for a group of one. */
  readonly std: number;
}

/** Returns rows by group, in the order of their first rows. */
export function groupsOf(
  ids: readonly GroupId[],
  isUsed: (row: number) => boolean,
): Map<GroupId, number[]> {
  const groups = new Map<GroupId, number[]>();
  for (const [row, id] of ids.entries()) {
    if (!isUsed(row)) continue;
    const rows = groups.get(id);
    if (rows === undefined) groups.set(id, [row]);
    else rows.push(row);
  }
  return groups;
}

/**
 * Returns mean 0 and std 1 for a group of one, so that nothing is subtracted and nothing is scaled.
 */
export function statisticsOf(rows: readonly number[], scores: Float64Array): GroupStatistics {
  if (rows.length < 2) return { rows, mean: 0, std: 1 };
  const mean = groupMean(rows, scores);
  const squares = rows.reduce((sum, row) => sum + ((scores[row] ?? NaN) - mean) ** 2, 0);
  return { rows, mean, std: Math.sqrt(Math.max(0, squares / (rows.length - 1))) };
}

export function groupMean(rows: readonly number[], scores: Float64Array): number {
  return rows.reduce((sum, row) => sum + (scores[row] ?? NaN), 0) / rows.length;
}

/**
 * Returns numbers for ids (verl `as_torch_index`): whole numbers and their texts as they are;
 * otherwise the place of each id in the sorted list of ids.
 */
export function groupIndexOf(ids: readonly GroupId[]): readonly number[] {
  const numbers = ids.map((id) =>
    typeof id === "number" || id.trim() !== "" ? Number(id) : Number.NaN,
  );
  const isWhole = numbers.every(
    (one) => Number.isFinite(one) && Math.abs(one - Math.round(one)) <= 1e-6,
  );
  if (isWhole) return numbers.map(Math.round);
  const names = [...new Set(ids.map(String))].toSorted((left, right) => (left < right ? -1 : 1));
  const places = new Map(names.map((name, place) => [name, place]));
  return ids.map((id) => places.get(String(id)) ?? NaN);
}

/**
 * Statistics of each group by its number (verl `group_mean_std`). A number without rows has mean 0
 * and std 1. A variance is at least `eps`.
 */
export function groupMeanStd(
  scores: readonly number[],
  index: readonly number[],
  eps = 1e-6,
): {
  readonly mean: readonly number[];
  readonly std: readonly number[];
  readonly count: readonly number[];
} {
  const values = Float64Array.from(scores);
  const groups = groupsOf(index, () => true);
  const size = 1 + Math.max(-1, ...index);
  const statistics = Array.from({ length: size }, (_, id) =>
    statisticsOf(groups.get(id) ?? [], values),
  );
  return {
    mean: statistics.map(({ mean }) => mean),
    std: statistics.map(({ std }) => Math.sqrt(Math.max(std * std, eps))),
    count: statistics.map(({ rows }) => rows.length),
  };
}
