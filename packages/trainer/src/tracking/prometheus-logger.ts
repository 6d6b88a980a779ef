/**
 * The metrics of the last step as one gauge of the session, for Prometheus: `critic/score/mean` is
 * `ray_train_metric{metric="critic/score/mean"}`.
 *
 * verl's names have characters, capitals and units that names of Prometheus may not have, and two
 * of them could become one: the label has them as they are.
 */

import { metrics as ray } from "@rayling/core";
import type {
  StepMetrics,
  TrackedRun,
  TrackingLogger,
  TrainingProgress,
} from "./tracking-logger.ts";

/** Sets a gauge of the runtime's metrics to the values of the last step. */
export class PrometheusLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "prometheus";
  readonly #gauge = new ray.Gauge("train_metric", {
    description: "Metrics of a training by verl's names: their values of the last step.",
    tagKeys: ["metric", "project", "experiment"],
  });
  #run: { readonly project: string; readonly experiment: string } | undefined;

  /** Takes project and experiment, tags of the gauge. */
  open({ projectName, experimentName }: TrackedRun): void {
    this.#run = { project: projectName, experiment: experimentName };
  }

  /** Sets the values of a step's metrics. */
  log(metrics: StepMetrics, step: number): void {
    this.#set("training/global_step", step);
    for (const [name, value] of Object.entries(metrics)) this.#set(name, value);
  }

  /** Sets the number of rewards that are not there yet. */
  progress({ inFlight }: TrainingProgress): void {
    if (inFlight !== undefined) this.#set("reward/inflight_now", inFlight);
  }

  #set(metric: string, value: number): void {
    if (this.#run !== undefined) this.#gauge.set(value, { metric, ...this.#run });
  }
}
