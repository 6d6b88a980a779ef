/** How far a stream of samples is: counted as it goes, read as a snapshot. The clock comes in as an argument. */

import type { SampleOutcome } from "../outcome.ts";
import type { SpendState } from "../spend/purse.ts";
import { AnswerCounts } from "./answer-counts.ts";

export interface RewardProgress {
  readonly done: number;
  /** Undefined while the input has not told its end. */
  readonly total: number | undefined;
  readonly inFlight: number;
  /** Over the whole run so far. */
  readonly ratePerSecond: number;
  /** How long the oldest sample in flight has been there; 0 if none is. */
  readonly oldestMs: number;
  readonly invalid: number;
  /** How many each of several functions has answered: stages of a cascade, judges before and behind a cap. */
  readonly answeredBy: Readonly<Record<string, number>>;
  /** How far each cap is. */
  readonly spending: readonly SpendState[];
}

export class ProgressCounter {
  readonly #now: () => number;
  readonly #spending: () => readonly SpendState[];
  readonly #answers = new AnswerCounts();
  readonly #startedAt: number;
  /** By index, in order of their start. */
  readonly #inFlight: Map<number, number> = new Map();
  #done = 0;
  #invalid = 0;
  total: number | undefined;

  constructor(
    total: number | undefined,
    spending: () => readonly SpendState[] = () => [],
    now: () => number = () => performance.now(),
  ) {
    this.total = total;
    this.#spending = spending;
    this.#now = now;
    this.#startedAt = now();
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  started(index: number): void {
    this.#inFlight.set(index, this.#now());
  }

  finished(index: number, outcome: SampleOutcome): void {
    this.#inFlight.delete(index);
    this.#done += 1;
    if (!outcome.valid) this.#invalid += 1;
    this.#answers.add(outcome);
  }

  snapshot(): RewardProgress {
    const now = this.#now();
    const [oldest = now] = this.#inFlight.values();
    const elapsedMs = now - this.#startedAt;
    return {
      done: this.#done,
      total: this.total,
      inFlight: this.#inFlight.size,
      ratePerSecond: elapsedMs > 0 ? (this.#done * 1000) / elapsedMs : 0,
      oldestMs: now - oldest,
      invalid: this.#invalid,
      answeredBy: this.#answers.counts,
      spending: this.#spending(),
    };
  }
}
