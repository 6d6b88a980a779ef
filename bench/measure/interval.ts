/** How sure a median is. */
import { percentile } from "./interleave.ts";

const draws = 2000;

/** The 95 % interval of the median by resampling, with one seed. */
export function medianInterval(values: readonly number[]): readonly [low: number, high: number] {
  let seed = 7;
  const random = (): number => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  const medians = Array.from({ length: draws }, () => {
    const drawn = values.map(() => values[Math.floor(random() * values.length)] ?? 0);
    return percentile(
      drawn.toSorted((a, b) => a - b),
      0.5,
    );
  }).toSorted((a, b) => a - b);
  return [percentile(medians, 0.025), percentile(medians, 0.975)];
}
