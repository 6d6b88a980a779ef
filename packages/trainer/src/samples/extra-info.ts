/** Numbers in a score function's extra info that the training needs. */

import { TrainerStateError } from "../errors.ts";
import type { ScoredSample } from "./rollout-batch.ts";

/**
 * @param option that asks for it. Throws TrainerStateError, which names sample and key, where a
 *   valid outcome has no number there.
 */
export function extraInfoNumber(scored: ScoredSample, key: string, option: string): number {
  const number = numberIn(scored, key);
  if (number !== undefined) return number;
  throw new TrainerStateError(
    "NO_METRIC",
    `${option} is ${key}, but the extra info of sample ${scored.sample.id} has no number of that name`,
  );
}

/** Returns the finite number (true counts as 1) that a valid outcome has there, or undefined. */
export function numberIn({ outcome }: ScoredSample, key: string): number | undefined {
  const value = outcome.valid ? outcome.rewardExtraInfo[key] : undefined;
  const number = typeof value === "boolean" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}
