/**
 * Counts the outcomes of a run as they arrive; score-report.ts prints the counts. It keeps two
 * numbers per sample in memory.
 */

import { failureClassOf } from "@rayling/reward-loop";
import type { FailureClass, ScoredSample, ScoreFailure } from "@rayling/reward-loop";
import type { SolutionSample } from "../inputs/solutions.ts";

export class RunSummary {
  readonly scores: number[] = [];
  /** Latencies of calls; cached samples, and samples without a call, took no time. */
  readonly latenciesMs: number[] = [];
  /** Invalid samples by code, with one message as an example. */
  readonly invalid: Map<string, { count: number; readonly example: string }> = new Map();
  /** Invalid samples by class and code, for advice. */
  readonly failures: { count: number; readonly class: FailureClass; readonly code: string }[] = [];
  readonly agreement: { compared: number; equal: number } = { compared: 0, equal: 0 };
  /** The number of answers of each of several functions. */
  readonly answeredBy: Map<string, number> = new Map();
  done = 0;
  /** The number of samples that an earlier run had scored. */
  kept = 0;
  readonly #scoreThreshold: number;
  #sum = 0;

  /** @param scoreThreshold the score from which on a sample counts as right */
  constructor(scoreThreshold: number = 0.5) {
    this.#scoreThreshold = scoreThreshold;
  }

  /** Adds a sample that an earlier run has scored. */
  keep(one: ScoredSample<SolutionSample>): void {
    this.kept += 1;
    this.add(one);
  }

  add({ sample, outcome }: ScoredSample<SolutionSample>): void {
    this.done += 1;
    const { attempts, cached = false } = outcome;
    if (attempts > 0 && !cached) this.latenciesMs.push(outcome.latencyMs);
    const { answeredBy } = outcome;
    if (outcome.valid && answeredBy !== undefined) {
      this.answeredBy.set(answeredBy, (this.answeredBy.get(answeredBy) ?? 0) + 1);
    }
    if (outcome.valid) this.#addScore(outcome.rewardScore);
    else this.#addInvalid(outcome.error);
    // Grades are no answer to whether it is right.
    if (typeof sample.label !== "boolean") return;
    this.agreement.compared += 1;
    // A sample without a score agrees with nothing.
    const isRight = outcome.valid && outcome.rewardScore >= this.#scoreThreshold;
    if (outcome.valid && isRight === sample.label) this.agreement.equal += 1;
  }

  /** The number of samples that this run scored. */
  get scored(): number {
    return this.done - this.kept;
  }

  get invalidCount(): number {
    return this.done - this.scores.length;
  }

  /** Undefined: there is no score yet. */
  get meanScore(): number | undefined {
    return this.scores.length === 0 ? undefined : this.#sum / this.scores.length;
  }

  #addScore(score: number): void {
    this.scores.push(score);
    this.#sum += score;
  }

  #addInvalid(error: ScoreFailure): void {
    const { code, message } = error;
    const known = this.invalid.get(code);
    if (known !== undefined) known.count += 1;
    else this.invalid.set(code, { count: 1, example: message });
    const failure = failureClassOf(error);
    const alike = this.failures.find((one) => one.class === failure && one.code === code);
    if (alike !== undefined) alike.count += 1;
    else this.failures.push({ count: 1, class: failure, code });
  }
}
