/**
 * Durations by size, eight buckets for each doubling: wide enough to keep, narrow enough that a
 * percentile read from them is within 9 %.
 */

const perDoubling = 8;

/** A latency of 0 is in the bucket of one microsecond. */
export function bucketOf(ms: number): number {
  return Math.floor(Math.log2(Math.max(ms, 0.001)) * perDoubling);
}

/** In ms: from this on, and below that of the next bucket. */
export function bucketStartMs(bucket: number): number {
  return 2 ** (bucket / perDoubling);
}
