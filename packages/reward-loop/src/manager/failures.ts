/**
 * Handles samples that cannot be scored: they stay invalid (a mask), get a fallback value, are
 * scored once more when all others are done, or fail their batch.
 */

import { RewardFailuresError } from "../errors.ts";
import { classOf } from "../faults/failure-class.ts";
import type { FailureSettings, OnFailure } from "../settings/policy-settings.ts";
import type { InvalidOutcome, SampleOutcome } from "../outcome.ts";
import type { GroupScores } from "../pipeline/reward-source.ts";

/** Applies the fallback value, if there is one: extra info has `fallback` and the reason. */
export function withFallback(outcome: SampleOutcome, { fallback }: OnFailure): SampleOutcome {
  return outcome.valid || typeof fallback !== "number" ? outcome : filled(outcome, fallback);
}

/**
 * Gives the failed answers to one prompt the mean of the valid ones, if the fallback is that mean.
 */
export function withGroupMean(
  outcomes: readonly SampleOutcome[],
  { fallback }: OnFailure,
): readonly SampleOutcome[] {
  const scores = outcomes.flatMap((one) => (one.valid ? [one.rewardScore] : []));
  if (fallback !== "groupMean" || scores.length === 0) return outcomes;
  // Adds up shares, because the sum of the scores may overflow.
  const mean = scores.reduce((sum, score) => sum + score / scores.length, 0);
  return outcomes.map((one) => (one.valid ? one : filled(one, mean)));
}

/** Gives a failed sample a score: extra info has `fallback` and the reason. */
function filled(outcome: InvalidOutcome, score: number): SampleOutcome {
  const { error, valid: _, ...measured } = outcome;
  const rewardExtraInfo = { acc: score, fallback: true, error: error.code };
  return { valid: true, rewardScore: score, rewardExtraInfo, ...measured };
}

/**
 * Applies the result of the user's postProcessScores to a group. If it failed, all of the group is
 * invalid.
 */
export function putRight(
  outcomes: readonly SampleOutcome[],
  after: GroupScores,
): readonly SampleOutcome[] {
  return outcomes.map((outcome, at): SampleOutcome => {
    const score = after.valid ? (after.scores[at] ?? null) : null;
    if (!outcome.valid) return score === null ? outcome : filled(outcome, score);
    if (score !== null) return { ...outcome, rewardScore: score };
    const { rewardScore: _score, rewardExtraInfo, valid: _, ...measured } = outcome;
    const error = { ...(after.valid ? takenAway : after.error), rewardExtraInfo };
    return { valid: false, error, ...measured };
  });
}

const takenAway = {
  code: "INVALID_SCORE",
  name: "InvalidScoreError",
  message: "postProcessScores has taken its score away",
} as const;

/** Whether it may go better when all others are done. */
export function isWorthAgain(outcome: SampleOutcome): boolean {
  return !outcome.valid && passing.has(classOf(outcome.error));
}

const passing: ReadonlySet<string> = new Set(["infrastructure", "rate-limit", "timeout"]);

/** Rows of a batch that another request has scored. */
export interface EarlierRows {
  /** How many. With Infinity no failure is a share of it, and `failAbove` never ends it. */
  readonly rows: number;
  /** How many of them are invalid, by the codes of their errors. */
  readonly failures: Readonly<Record<string, number>>;
}

/** How many of so many rows are invalid, and why. */
export class FailureTally {
  readonly #rows: number;
  readonly #failAbove: number;
  readonly #counts: Record<string, number>;
  #invalid: number;

  constructor(rows: number, { failAbove }: FailureSettings, earlier: EarlierRows = none) {
    this.#rows = rows + earlier.rows;
    this.#failAbove = failAbove;
    this.#counts = { ...earlier.failures };
    this.#invalid = Object.values(earlier.failures).reduce((sum, count) => sum + count, 0);
  }

  add(outcome: SampleOutcome): void {
    if (outcome.valid) return;
    const { code } = outcome.error;
    this.#invalid += 1;
    this.#counts[code] = (this.#counts[code] ?? 0) + 1;
  }

  /** Throws RewardFailuresError if more are invalid than may be. */
  check(): void {
    // Not `failAbove * rows`: 0.29 * 100 is below 29, and 29 / 100 is 0.29.
    if (this.#invalid === 0 || this.#invalid / this.#rows <= this.#failAbove) return;
    throw new RewardFailuresError(this.#invalid, this.#rows, { ...this.#counts });
  }
}

const none: EarlierRows = { rows: 0, failures: {} };

/** Throws RewardFailuresError if more are invalid than may be. */
export function checkFailures(
  outcomes: readonly SampleOutcome[],
  onFailure: FailureSettings,
): void {
  const tally = new FailureTally(outcomes.length, onFailure);
  for (const outcome of outcomes) tally.add(outcome);
  tally.check();
}
