/** When a run validates, and the validation whose scores are still on the way. */

import type { PromptDataset } from "../data/prompt-dataset.ts";
import { dumpOf } from "../record/dumped-rows.ts";
import type { FinishedStep, StepReports } from "../record/step-reports.ts";
import type { FirstValidation } from "../rollouts/training-state.ts";
import { isDue } from "../settings/training-settings.ts";
import { dumpRollouts } from "../tracking/rollout-dump.ts";
import type { StepTracker } from "../tracking/step-tracker.ts";
import { beginValidation } from "./validation.ts";
import type { BegunValidation, ValidationParts } from "./validation.ts";
import { ValidationFalls } from "./validation-falls.ts";
import { warn } from "@rayling/core/terminal";

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
  #first: FirstValidation | undefined;
  readonly #falls: ValidationFalls = new ValidationFalls();
  readonly #warnings: string[] = [];

  constructor(parts: ValidationsParts) {
    this.#parts = parts;
  }

  /** Metrics of the last validation that was scored. */
  get latest(): Readonly<Record<string, number>> | undefined {
    return this.#latest;
  }

  /** The validation with which later ones are compared, if there was one. */
  get first(): FirstValidation | undefined {
    return this.#first;
  }

  /** Warnings of validations that are below the first one, in their order. */
  get warnings(): readonly string[] {
    return this.#warnings;
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

  /**
   * Goes on with the first validation of the run whose checkpoint this is: the one of the
   * checkpoint itself says nothing about what the steps before it did. One of other prompts is no
   * measure.
   */
  resume(first: FirstValidation | undefined): void {
    if (first !== undefined && first.fingerprint === this.#parts.prompts?.fingerprint) {
      this.#compareWith(first);
    }
  }

  /** Validates before the first step of this call. @param step the last finished step, or 0 */
  async validateFirst(step: number): Promise<void> {
    const { prompts, reports } = this.#parts;
    const begun = await this.#begin(step);
    if (begun === undefined || prompts === undefined) return;
    const metrics = await this.#metricsOf(step, begun);
    reports.addFirst(metrics, step);
    if (this.#first !== undefined) return this.#warnOf(metrics, step);
    this.#compareWith({ step, metrics, fingerprint: prompts.fingerprint });
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
    const { step } = finished.record;
    const metrics = await this.#metricsOf(step, begun);
    this.#parts.reports.add(finished, metrics);
    this.#warnOf(metrics, step);
  }

  #compareWith(first: FirstValidation): void {
    this.#first = first;
    this.#falls.begin(first.metrics, first.step);
  }

  #warnOf(metrics: Readonly<Record<string, number>>, step: number): void {
    const warning = this.#falls.warningOf(metrics, step);
    if (warning === undefined) return;
    const { tracker } = this.#parts;
    this.#warnings.push(warning);
    if (tracker.warning === undefined) warn(warning);
    else tracker.warning(step, warning);
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
