/** Values over the time that the page has watched. */
import { useRef } from "preact/hooks";
import type uPlot from "uplot";

const mostPoints = 600;

/**
 * Returns the times, in seconds since 1970, and the values of each series until now.
 *
 * @param at a mark of the look: a value is added for each new one
 */
export function useHistory(
  at: unknown,
  values: readonly (number | undefined)[],
): uPlot.AlignedData {
  const kept = useRef<{ at: unknown; data: uPlot.AlignedData }>({
    at: undefined,
    data: [[], ...values.map(() => [])],
  });
  if (at !== undefined && at !== kept.current.at) {
    const [times, ...series] = kept.current.data;
    const next = [
      [...times, Date.now() / 1000].slice(-mostPoints),
      ...series.map((one, index) => [...one, values[index] ?? null].slice(-mostPoints)),
    ];
    kept.current = { at, data: next as uPlot.AlignedData };
  }
  return kept.current.data;
}
