/** Curves of training runs side by side. */
import type { Curve } from "@rayling/trainer/runs";
import type uPlot from "uplot";

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
