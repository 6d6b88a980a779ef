/**
 * How many rewards were on their way over time, from the samples that have a line: from the last
 * token to the score.
 */

import type { SampleLine } from "../files/run-lines.ts";

/** Numbers of rewards at moments that lie equally far apart. */
export interface InFlight {
  /** The first moment, in ms since the start of the step. */
  readonly fromMs: number;
  /** Time between two moments. */
  readonly eachMs: number;
  readonly counts: readonly number[];
}

/** Number of moments, as many as a row can show. */
const moments = 120;

/** Returns null without samples. */
export function inFlightOver(samples: readonly SampleLine[], startMs: number): InFlight | null {
  if (samples.length === 0) return null;
  const starts = samples.map(({ generatedMs }) => generatedMs).toSorted((a, b) => a - b);
  const ends = samples.map(({ scoredMs }) => scoredMs).toSorted((a, b) => a - b);
  const first = starts[0] ?? NaN;
  const eachMs = ((ends.at(-1) ?? NaN) - first) / moments;
  let [started, ended] = [0, 0];
  const counts = Array.from({ length: moments + 1 }, (_, index) => {
    const atMs = first + index * eachMs;
    while (started < starts.length && (starts[started] ?? NaN) <= atMs) started += 1;
    while (ended < ends.length && (ends[ended] ?? NaN) < atMs) ended += 1;
    return started - ended;
  });
  return { fromMs: first - startMs, eachMs, counts };
}
