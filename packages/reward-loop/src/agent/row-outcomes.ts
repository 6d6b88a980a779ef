/** The outcomes of a batch's rows, and when each was set. */

import type { SampleOutcome } from "../outcome.ts";

export class RowOutcomes {
  /** Outcomes by row, before post-processing. */
  readonly #scored: (SampleOutcome | undefined)[];
  /** Outcomes that the user's postProcessScores changed, by row. */
  readonly #putRight = new Map<number, SampleOutcome>();
  readonly #known: Set<number> = new Set();
  readonly #settledMs: Float64Array;
  #left: number;

  constructor(rows: number) {
    this.#scored = Array<SampleOutcome | undefined>(rows);
    this.#settledMs = new Float64Array(rows);
    this.#left = rows;
  }

  /** Rows without an outcome. */
  get left(): number {
    return this.#left;
  }

  of(row: number): SampleOutcome | undefined {
    return this.#putRight.get(row) ?? this.#scored[row];
  }

  /** Returns the outcome without postProcessScores. */
  scoredOf(row: number): SampleOutcome | undefined {
    return this.#scored[row];
  }

  /** Whether the outcome was known before. */
  isKnown(row: number): boolean {
    return this.#known.has(row);
  }

  /** Returns when the outcome was set, in ms since 1970; 0 before that. */
  settledMsOf(row: number): number {
    return this.#settledMs[row] ?? 0;
  }

  set(row: number, outcome: SampleOutcome, isKnown: boolean): void {
    if (isKnown) this.#known.add(row);
    this.#scored[row] = outcome;
    this.#settledMs[row] = performance.timeOrigin + performance.now();
    this.#left -= 1;
  }

  /** Sets what a row's group made of its outcome. */
  putRight(row: number, outcome: SampleOutcome): void {
    if (outcome !== this.#scored[row]) this.#putRight.set(row, outcome);
  }
}
