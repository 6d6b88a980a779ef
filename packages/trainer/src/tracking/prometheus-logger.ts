/**
 * The metrics of the last step as gauges of the session, for Prometheus: `critic/score/mean` is
 * `ray_train_critic_score_mean`.
 *
 * Names there have only letters, digits and "_", so that two of verl's can become one: the label
 * `metric` has the whole name and keeps them apart.
 */

import { metrics as ray } from "@rayling/core";
import type {
  StepMetrics,
  TrackedRun,
  TrackingLogger,
  TrainingProgress,
} from "./tracking-logger.ts";

/** Sets gauges of the runtime's metrics to the values of the last step. */
export class PrometheusLogger implements TrackingLogger {
  /** The name of the logger in `trainer.logger`. */
  readonly name = "prometheus";
  readonly #gauges: Map<string, ray.Gauge> = new Map();
  #run: { readonly project: string; readonly experiment: string } | undefined;

  /** Takes project and experiment, the tags of each gauge. */
  open({ projectName, experimentName }: TrackedRun): void {
    this.#run = { project: projectName, experiment: experimentName };
  }

  /** Sets the gauges of a step's metrics. */
  log(metrics: StepMetrics, step: number): void {
    this.#set("training/global_step", step);
    for (const [name, value] of Object.entries(metrics)) this.#set(name, value);
  }

  /** Sets the gauge of rewards that are not there yet. */
  progress({ inFlight }: TrainingProgress): void {
    if (inFlight !== undefined) this.#set("reward/inflight_now", inFlight);
  }

  #set(metric: string, value: number): void {
    if (this.#run === undefined) return;
    this.#gauge(`train_${metric.replaceAll(/\W/g, "_")}`).set(value, { metric, ...this.#run });
  }

  #gauge(name: string): ray.Gauge {
    let gauge = this.#gauges.get(name);
    if (gauge === undefined) {
      const description = "A metric of training: its value of the last step.";
      gauge = new ray.Gauge(name, { description, tagKeys: ["metric", "project", "experiment"] });
      this.#gauges.set(name, gauge);
    }
    return gauge;
  }
}
