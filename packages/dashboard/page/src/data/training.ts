/** Training runs as they travel, and their curves side by side. */
import type uPlot from "uplot";

export interface Run {
  readonly run: number;
  readonly name: string;
  readonly folder: string;
  readonly isOwn: boolean;
  /** -1 before the first. */
  readonly lastStep: number;
}

interface Curve {
  readonly run: number;
  readonly steps: readonly number[];
  readonly values: readonly number[];
}

export interface Metric {
  readonly name: string;
  readonly curves: readonly Curve[];
}

export interface CurvesAnswer {
  readonly total: number;
  readonly found: number;
  readonly metrics: readonly Metric[];
}

/** Returns all steps, and the smoothed values of each curve at them; null where it has none. */
export function alignedCurves(curves: readonly Curve[], smoothing: number): uPlot.AlignedData {
  const steps = [...new Set(curves.flatMap((one) => one.steps))].toSorted((a, b) => a - b);
  const columns = curves.map((curve) => {
    const values = smoothed(curve.values, smoothing);
    const byStep = new Map(curve.steps.map((step, at) => [step, values[at]]));
    return steps.map((step) => byStep.get(step) ?? null);
  });
  return [steps, ...columns];
}

/** An exponential mean that does not begin at zero, as TensorBoard's. */
function smoothed(values: readonly number[], weight: number): readonly number[] {
  let mean = 0;
  let total = 0;
  return values.map((value) => {
    mean = weight * mean + (1 - weight) * value;
    total = weight * total + (1 - weight);
    return mean / total;
  });
}
