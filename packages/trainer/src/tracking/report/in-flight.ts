/**
 * How many rewards were on their way over time, from the samples that have a line: from the last
 * token to the score.
 */

import type { SampleLine } from "../files/run-lines.ts";

/** Number of moments, as many as a row can show. */
const moments = 120;

export function inFlightOver(
  samples: readonly SampleLine[],
): readonly { readonly atMs: number; readonly count: number }[] {
  if (samples.length === 0) return [];
  const starts = samples.map(({ generatedMs }) => generatedMs).toSorted((a, b) => a - b);
  const ends = samples.map(({ scoredMs }) => scoredMs).toSorted((a, b) => a - b);
  const first = starts[0] ?? NaN;
  const eachMs = ((ends.at(-1) ?? NaN) - first) / moments;
  let [started, ended] = [0, 0];
  return Array.from({ length: moments + 1 }, (_, index) => {
    const atMs = first + index * eachMs;
    while (started < starts.length && (starts[started] ?? NaN) <= atMs) started += 1;
    while (ended < ends.length && (ends[ended] ?? NaN) < atMs) ended += 1;
    return { atMs, count: started - ended };
  });
}
