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
