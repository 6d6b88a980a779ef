/** PPO's clip: losses of ratios that must stay within a range. */

import { TrainerInputError } from "../../errors.ts";
import { clamp } from "../matrix.ts";
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

/**
 * Fills a block with the ratios, and with their slopes, for the clip to make losses of. Where a
 * token does not count NaN does harm, and a ratio that is too large does not.
 */
export function ratiosInto(
  { length, mask, logRatios, values, slopes }: TokenBlock,
  maxLogRatio: number,
): void {
  for (let index = 0; index < length; index++) {
    const logRatio = logRatios[index] ?? NaN;
    const most = mask[index] === 0 ? 1 : maxLogRatio;
    const kept = clamp(logRatio, -most, most);
    const ratio = Math.exp(kept);
    values[index] = ratio;
    slopes[index] = kept === logRatio ? ratio : 0;
  }
}

/**
 * Makes losses of the ratios of a block: the larger of -A times the ratio, and of -A times what is
 * left of it within the range. Returns how many tokens count for which that is the second.
 */
export function clipRatios(
  { length, mask, advantages, values, slopes }: TokenBlock,
  { low, high }: ClipRange,
): number {
  let sum = 0;
  for (let index = 0; index < length; index++) {
    const advantage = advantages[index] ?? NaN;
    const ratio = values[index] ?? NaN;
    const kept = clamp(ratio, 1 - low, 1 + high);
    const plain = -advantage * ratio;
    const plainSlope = -advantage * (slopes[index] ?? NaN);
    values[index] = plain;
    slopes[index] = plainSlope;
    if (kept === ratio) continue;
    const clipped = -advantage * kept;
    if (clipped > plain) sum += mask[index] ?? NaN;
    values[index] = Math.max(plain, clipped);
    slopes[index] = slopeOfLarger(plain, plainSlope, clipped, 0);
  }
  return sum;
}

/** Returns whether the clip changes the loss of a token. */
export function isClipped(advantage: number, ratio: number, { low, high }: ClipRange): boolean {
  return -advantage * clamp(ratio, 1 - low, 1 + high) > -advantage * ratio;
}

/**
 * Bounds the losses of a block where the advantage is below 0: at most -A times that ratio. Returns
 * how many tokens count whose losses were above it.
 */
export function boundLosses(
  { length, mask, advantages, values, slopes }: TokenBlock,
  clipRatioC: number,
): number {
  let sum = 0;
  for (let index = 0; index < length; index++) {
    const advantage = advantages[index] ?? NaN;
    if (!(advantage < 0)) continue;
    const value = values[index] ?? NaN;
    const most = -advantage * clipRatioC;
    if (!(value >= most)) continue;
    if (value > most) sum += mask[index] ?? NaN;
    values[index] = most;
    slopes[index] = slopeOfLarger(-most, 0, -value, slopes[index] ?? NaN);
  }
  return sum;
}

/** @throws TrainerInputError */
export function checkDualClip(clipRatioC: number): void {
  if (clipRatioC > 1) return;
  throw new TrainerInputError(
    "clipRatioC",
    `clipRatioC, the lower bound of the dual clip, must be above 1; it is ${clipRatioC}`,
  );
}
