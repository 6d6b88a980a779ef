/** How many scores there are of which size: a bar for each of a few values, or equal steps. */

export interface Bar {
  readonly from: number;
  /** Equal to `from` for a bar of one value. */
  readonly to: number;
  readonly count: number;
}

export type Histogram = readonly Bar[];

/** More different values than this are put into steps. */
const mostValues = 16;
const steps = 20;

export function histogramOf(values: readonly number[]): Histogram {
  const counts = new Map<number, number>();
  for (const value of values) {
    counts.set(value, (counts.get(value) ?? 0) + 1);
    if (counts.size > mostValues) return inSteps(values);
  }
  return [...counts]
    .toSorted(([a], [b]) => a - b)
    .map(([value, count]) => ({ from: value, to: value, count }));
}

function inSteps(values: readonly number[]): Histogram {
  const low = values.reduce((least, value) => Math.min(least, value), Infinity);
  const high = values.reduce((most, value) => Math.max(most, value), -Infinity);
  const width = (high - low) / steps;
  const counts = Array<number>(steps).fill(0);
  for (const value of values) {
    const at = Math.min(steps - 1, Math.floor((value - low) / width));
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts.map((count, at) => ({
    from: low + at * width,
    to: at === steps - 1 ? high : low + (at + 1) * width,
    count,
  }));
}
