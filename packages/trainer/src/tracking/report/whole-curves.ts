/**
 * The curves of a run that goes on: a look works out what has come since the look before, and of
 * all that was there, only the points that are shown.
 */

import type { MetricsLine } from "../files/run-lines.ts";

/** Values of one metric at rising steps. */
export interface Curve {
  readonly steps: readonly number[];
  readonly values: readonly number[];
}

interface WholeCurve {
  readonly steps: number[];
  readonly values: number[];
}

/** Points of one curve, at most. */
const mostPoints = 500;

export class WholeCurves {
  #lines: readonly MetricsLine[] = [];
  readonly #curves: Map<string, WholeCurve> = new Map();

  /**
   * Returns the curves of all metrics, without values that a curve has no place for.
   *
   * @param lines in the order of their steps; one that was changed is another object
   */
  shown(lines: readonly MetricsLine[]): Readonly<Record<string, Curve>> {
    const before = this.#lines;
    let same = 0;
    while (same < before.length && before[same] === lines[same]) same += 1;
    const step = before[same]?.step;
    if (step !== undefined) this.#forgetFrom(step);
    for (const line of lines.slice(same)) this.#add(line);
    this.#lines = lines;
    return Object.fromEntries([...this.#curves].map(([name, curve]) => [name, thinned(curve)]));
  }

  #forgetFrom(step: number): void {
    for (const [name, { steps, values }] of this.#curves) {
      while ((steps.at(-1) ?? -Infinity) >= step) {
        steps.pop();
        values.pop();
      }
      if (steps.length === 0) this.#curves.delete(name);
    }
  }

  #add({ step, data }: MetricsLine): void {
    for (const [name, value] of Object.entries(data)) {
      if (value === null || !Number.isFinite(value)) continue;
      const curve = this.#curves.get(name) ?? { steps: [], values: [] };
      this.#curves.set(name, curve);
      curve.steps.push(step);
      curve.values.push(value);
    }
  }
}

/** Keeps the last point, and one of every few before it. */
function thinned({ steps, values }: WholeCurve): Curve {
  const every = Math.ceil(steps.length / mostPoints);
  const shown: WholeCurve = { steps: [], values: [] };
  for (let at = (steps.length - 1) % every; at < steps.length; at += every) {
    shown.steps.push(steps[at] ?? NaN);
    shown.values.push(values[at] ?? NaN);
  }
  return shown;
}
