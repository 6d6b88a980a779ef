/** When a run validates, and the validation whose scores are still on the way. */

import type { PromptDataset } from "../data/prompt-dataset.ts";
import { dumpOf } from "../record/dumped-rows.ts";
import type { FinishedStep, StepReports } from "../record/step-reports.ts";
import { isDue } from "../settings/training-settings.ts";
import { dumpRollouts } from "../tracking/rollout-dump.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import { beginValidation } from "./validation.ts";
import type { BegunValidation, ValidationParts } from "./validation.ts";

export interface ValidationsParts extends Omit<ValidationParts, "prompts"> {
  /** Undefined: there is nothing to validate on. */
  readonly prompts: PromptDataset | undefined;
  readonly tracker: StepTracker;
  readonly reports: StepReports;
}

export class Validations {
  readonly #parts: ValidationsParts;
  #pending: { readonly finished: FinishedStep; readonly begun: BegunValidation } | undefined;
  #latest: Readonly<Record<string, number>> | undefined;

  constructor(parts: ValidationsParts) {
    this.#parts = parts;
  }

  /** Metrics of the last validation that was scored. */
  get latest(): Readonly<Record<string, number>> | undefined {
    return this.#latest;
  }

  /** Whether scores of a validation are still on the way. */
  get isPending(): boolean {
    return this.#pending !== undefined;
  }

  /** Whether a validation belongs to the end of this step. */
  isDue(step: number): boolean {
    const { run } = this.#parts.settings;
    return isDue(run.testFreq, step, run);
  }

  /** Whether training may go on while this step's validation is scored. */
  mayOverlap(step: number): boolean {
    const { run } = this.#parts.settings;
    return run.overlapValidation && step < run.totalSteps;
  }

  /** Validates before the first step of this run. @param step the last finished step, or 0 */
  async validateFirst(step: number): Promise<void> {
    const begun = await this.#begin(step);
    if (begun === undefined) return;
    this.#parts.tracker.log(await this.#metricsOf(step, begun), step);
  }

  /** Resolves when all answers are generated; `reportPending` waits for their scores. */
  async begin(finished: FinishedStep): Promise<void> {
    const begun = await this.#begin(finished.record.step);
    if (begun !== undefined) this.#pending = { finished, begun };
  }

  /** Waits for the scores of the validation that was begun, if there is one, and reports it. */
  async reportPending(): Promise<void> {
    if (this.#pending === undefined) return;
    const { finished, begun } = this.#pending;
    this.#pending = undefined;
    this.#parts.reports.add(finished, await this.#metricsOf(finished.record.step, begun));
  }

  async #begin(step: number): Promise<BegunValidation | undefined> {
    const { prompts, ...parts } = this.#parts;
    return prompts && (await beginValidation({ ...parts, prompts }, step));
  }

  async #metricsOf(step: number, begun: BegunValidation): Promise<Record<string, number>> {
    const { tracker, settings } = this.#parts;
    const { validationDataDir } = settings;
    const { metrics, generations, rows } = await begun.result;
    if (validationDataDir !== null) await dumpRollouts(validationDataDir, dumpOf(step, rows));
    tracker.generations(step, generations);
    this.#latest = metrics;
    return metrics;
  }
}
