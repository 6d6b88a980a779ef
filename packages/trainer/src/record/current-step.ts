/** The step that is trained now, and the one that was reported last until it is complete. */

import { TrainerStateError } from "../errors.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import { StepRecord } from "./step-record.ts";
import type { FinishedStep, StepReports } from "./step-reports.ts";

export interface CurrentStepParts {
  readonly tracker: StepTracker;
  readonly rewards: { readonly inFlight: number };
  /** Milliseconds, for waits. */
  readonly now: () => number;
  readonly reports: StepReports;
}

export class CurrentStep {
  readonly #parts: CurrentStepParts;
  #finishedSteps: number;
  /** Undefined after a report, until something is done for the next step. */
  #record: StepRecord | undefined;
  #reported: FinishedStep | undefined;

  constructor(parts: CurrentStepParts, finishedSteps: number) {
    this.#parts = parts;
    this.#finishedSteps = finishedSteps;
    this.#record = this.#newRecord();
  }

  get finishedSteps(): number {
    return this.#finishedSteps;
  }

  /** Record of the step that is trained now: after a report, that of the next step. */
  get record(): StepRecord {
    this.#record ??= this.#newRecord();
    return this.#record;
  }

  /** Counts the step as finished. */
  finish(): void {
    this.#finishedSteps += 1;
  }

  /** @param hasOwnLogProbs whether old log-probabilities are the policy's own */
  async report(hasOwnLogProbs: boolean): Promise<void> {
    const { record } = this;
    const { reports } = this.#parts;
    // A schedule that does not validate leaves this to the next step.
    if (this.#reported !== undefined) reports.complete(this.#reported);
    this.#reported = await reports.report(record, hasOwnLogProbs);
    this.#record = undefined;
  }

  /** Throws TrainerStateError where no step was reported since the last one was complete. */
  reported(method: string): FinishedStep {
    if (this.#reported !== undefined) return this.#reported;
    const message = `${method}() was called without report() before it: no step is finished`;
    throw new TrainerStateError("NO_FINISHED_STEP", message);
  }

  /** Reports the remaining times of the reported step, and begins the next one. */
  complete(): void {
    if (this.#reported !== undefined) this.#parts.reports.complete(this.#reported);
    this.#reported = undefined;
    this.#record ??= this.#newRecord();
  }

  #newRecord(): StepRecord {
    const { tracker, rewards, now } = this.#parts;
    return new StepRecord(this.#finishedSteps + 1, tracker, () => rewards.inFlight, now);
  }
}
