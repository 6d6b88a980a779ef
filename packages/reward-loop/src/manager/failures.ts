/** What becomes of samples that cannot be scored: they stay invalid (a mask), get a fallback value, are tried once more when all others are done, or fail their batch. */

import { RewardFailuresError } from "../errors.ts";
import { classOf } from "../faults/failure-class.ts";
import type { FailureSettings, OnFailure } from "../policy-settings.ts";
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

/** How many of so many rows are invalid, and why. */
export class FailureTally {
  readonly #rows: number;
  readonly #failAbove: number;
  readonly #counts: Record<string, number> = {};
  #invalid = 0;

  constructor(rows: number, { failAbove }: FailureSettings) {
    this.#rows = rows;
    this.#failAbove = failAbove;
  }

  add(outcome: SampleOutcome): void {
    if (outcome.valid) return;
    const { code } = outcome.error;
    this.#invalid += 1;
    this.#counts[code] = (this.#counts[code] ?? 0) + 1;
  }

  /** Throws RewardFailuresError if more are invalid than may be. */
  check(): void {
    if (this.#invalid <= this.#failAbove * this.#rows) return;
    throw new RewardFailuresError(this.#invalid, this.#rows, { ...this.#counts });
  }
}

/** Throws RewardFailuresError if more are invalid than may be. */
export function checkFailures(
  outcomes: readonly SampleOutcome[],
  onFailure: FailureSettings,
): void {
  const tally = new FailureTally(outcomes.length, onFailure);
  for (const outcome of outcomes) tally.add(outcome);
  tally.check();
}
