/** Numbers in a score function's extra info that the training needs. */

import { TrainerStateError } from "../errors.ts";
import type { ScoredSample } from "./rollout-batch.ts";

/**
 * @param option that asks for it. Throws TrainerStateError, which names sample and key, where a
 *   valid outcome has no number there.
 */
export function extraInfoNumber(
  { outcome, sample }: ScoredSample,
  key: string,
  option: string,
): number {
  const value = outcome.valid ? outcome.rewardExtraInfo[key] : undefined;
  const number = typeof value === "boolean" ? Number(value) : value;
  if (typeof number === "number" && Number.isFinite(number)) return number;
  throw new TrainerStateError(
    "NO_METRIC",
    `${option} is ${key}, but the extra info of sample ${sample.id} has no number of that name`,
  );
}
