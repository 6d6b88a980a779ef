/** PPO's clip: losses of ratios that must stay within a range. */

import { TrainerInputError } from "../../errors.ts";
import { clamp, unboxed } from "../matrix.ts";
import { type PolicyLossSettings, slopeOfLarger } from "./policy-loss.ts";
import type { TokenBlock } from "./token-block.ts";

export interface ClipRange {
  readonly low: number;
  readonly high: number;
}

export function clipRangeOf({
  clipRatio = 0.2,
  clipRatioLow = 0.2,
  clipRatioHigh = 0.2,
}: PolicyLossSettings): ClipRange {
  return { low: clipRatioLow ?? clipRatio, high: clipRatioHigh ?? clipRatio };
}

/** How many tokens count whose losses were changed. */
export interface ClipCounts {
  /** By the range. */
  clipped: number;
  /** By the dual clip. */
  lower: number;
}

export interface ClipBounds {
  readonly range: ClipRange;
  /** A ratio whose log is beyond this has no slope. */
  readonly maxLogRatio: number;
  /** Where the advantage is below 0 a loss is at most -A times this. NaN: without this bound. */
  readonly clipRatioC: number;
}

/**
 * Makes losses of the ratios of a block: the larger of -A times the ratio, and of -A times what is
 * left of it within the range; then the dual clip.
 */
export function clipRatios(
  { length, weight, advantages, logRatios, ratios, values, slopes }: TokenBlock,
  { range, maxLogRatio, clipRatioC }: ClipBounds,
  counts: ClipCounts,
): void {
  const least = 1 - range.low;
  const most = 1 + range.high;
  const largest = unboxed(weight === 0 ? 1 : maxLogRatio);
  const lowest = unboxed(clipRatioC);
  let clipped = 0;
  let lower = 0;
  for (let index = 0; index < length; index++) {
    const advantage = advantages[index] ?? NaN;
    const ratio = ratios[index] ?? NaN;
    const isKept = Math.abs(logRatios[index] ?? NaN) <= largest;
    let value = -advantage * ratio;
    let slope = -advantage * (isKept ? ratio : 0);
    if (!(ratio >= least && ratio <= most)) {
      const inRange = -advantage * clamp(ratio, least, most);
      if (inRange > value) clipped++;
      slope = slopeOfLarger(value, slope, inRange, 0);
      value = Math.max(value, inRange);
    }
    const bound = -advantage * lowest;
    if (advantage < 0 && value >= bound) {
      if (value > bound) lower++;
      slope = slopeOfLarger(-bound, 0, -value, slope);
      value = bound;
    }
    values[index] = value;
    slopes[index] = slope;
  }
  counts.clipped += clipped * weight;
  counts.lower += lower * weight;
}

/** Returns whether the clip changes the loss of a token. */
export function isClipped(advantage: number, ratio: number, { low, high }: ClipRange): boolean {
  return -advantage * clamp(ratio, 1 - low, 1 + high) > -advantage * ratio;
}

/** @throws TrainerInputError */
export function checkDualClip(clipRatioC: number): void {
  if (clipRatioC > 1) return;
  throw new TrainerInputError(
    "clipRatioC",
    `clipRatioC, the lower bound of the dual clip, must be above 1; it is ${clipRatioC}`,
  );
}
