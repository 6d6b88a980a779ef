/** What becomes of samples that cannot be scored: they stay invalid (a mask), get a fallback value, are tried once more when all others are done, or fail their batch. */

import { RewardFailuresError } from "../errors.ts";
import { classOf } from "../faults/failure-class.ts";
import type { OnFailure } from "../policy-settings.ts";
import type { SampleOutcome } from "../outcome.ts";

/** With the fallback value, if there is one: extra info says `fallback` and why. */
export function withFallback(outcome: SampleOutcome, { fallback }: OnFailure): SampleOutcome {
  if (outcome.valid || fallback === undefined) return outcome;
  const { error, valid: _, ...measured } = outcome;
  const rewardExtraInfo = { acc: fallback, fallback: true, error: error.code };
  return { valid: true, rewardScore: fallback, rewardExtraInfo, ...measured };
}

/** Whether it may go better when all others are done. */
export function isWorthAgain(outcome: SampleOutcome): boolean {
  return !outcome.valid && passing.has(classOf(outcome.error));
}

const passing: ReadonlySet<string> = new Set(["infrastructure", "rate-limit", "timeout"]);

/** Throws RewardFailuresError if more are invalid than may be. */
export function checkFailures(
  outcomes: readonly SampleOutcome[],
  { failAbove = 1 }: OnFailure,
): void {
  const counts: Record<string, number> = {};
  let invalid = 0;
  for (const outcome of outcomes) {
    if (outcome.valid) continue;
    invalid += 1;
    counts[outcome.error.code] = (counts[outcome.error.code] ?? 0) + 1;
  }
  if (invalid > failAbove * outcomes.length) {
    throw new RewardFailuresError(invalid, outcomes.length, counts);
  }
}
