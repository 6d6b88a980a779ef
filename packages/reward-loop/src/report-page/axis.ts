/** An axis: positions of values, and round values as its ticks. */

import { itemAt } from "@rayling/reward-manager-registry/values";

export interface Axis {
  readonly ticks: readonly number[];
  /** Returns the position, from 0 at the low end to 1 at the high end. */
  readonly at: (value: number) => number;
}

/** Makes an axis from the first tick to the last one. `ticks` are rising, one at least. */
export function axisOf(ticks: readonly number[], scale: (value: number) => number = same): Axis {
  const low = scale(itemAt(ticks, 0));
  const span = scale(itemAt(ticks, ticks.length - 1)) - low;
  return { ticks, at: (value) => (span === 0 ? 0.5 : (scale(value) - low) / span) };
}

const same = (value: number): number => value;

/** About `count` of them, at 1, 2 or 5 times a power of ten, around all of the values. */
export function linearTicks(low: number, high: number, count = 5): readonly number[] {
  if (!(high > low))
    return low === 0 ? [0, 1] : [low - Math.abs(low) / 2, low, low + Math.abs(low) / 2];
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((times) => times * power >= rough) ?? 10);
  const first = Math.floor(low / step + 1e-9);
  const last = Math.ceil(high / step - 1e-9);
  // Multiples of the step, without what adding them up would add to them.
  return Array.from({ length: last - first + 1 }, (_, index) =>
    Number(((first + index) * step).toPrecision(12)),
  );
}

/** Short, and the value: 0.25, 1,500, 2e-6. */
export function numberText(value: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 0.001 || size >= 1e7) return value.toExponential(3).replace(/\.?0+e\+?/, "e");
  return value.toLocaleString("en-US", { maximumSignificantDigits: 5 });
}
