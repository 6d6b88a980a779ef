/** The metrics of a step in one line, as verl prints them. */

import type { StepMetrics } from "../tracking-logger.ts";

/**
 * Returns `step:3 - critic/score/mean:0.5 - ...`, in the order of the metrics, with at most six
 * digits.
 */
export function stepLine(metrics: StepMetrics, step: number): string {
  const parts = Object.entries(metrics).map(([name, value]) => `${name}:${figure(value)}`);
  return [`step:${step}`, ...parts].join(" - ");
}

function figure(value: number): string {
  return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)));
}
