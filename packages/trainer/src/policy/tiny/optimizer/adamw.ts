/**
 * AdamW (Loshchilov and Hutter) with the gradient clipped by its norm over all weights, as torch
 * computes both. On typed arrays: what is kept is float32, what is worked out is float64. Nothing
 * is changed in place: who holds the old weights still holds them.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../../errors.ts";
import type { ResolvedOptimizerSettings } from "./optimizer-settings.ts";

/** Weights by name. */
export type Weights = Readonly<Record<string, Float32Array>>;

export interface Moments {
  /** Steps so far. */
  readonly steps: number;
  readonly mean: Weights;
  readonly square: Weights;
}

export interface AdamWStep {
  readonly weights: Weights;
  readonly moments: Moments;
  /** Norm of the gradient before it was clipped. */
  readonly gradNorm: number;
}

export function noMoments(weights: Weights): Moments {
  const zeros = (): Weights =>
    Object.fromEntries(
      Object.entries(weights).map(([name, { length }]) => [name, new Float32Array(length)]),
    );
  return { steps: 0, mean: zeros(), square: zeros() };
}

/**
 * @throws TrainerInputError for a gradient that is not finite; verl leaves such a step out with a
 * line of output
 */
export function adamWStep({
  weights,
  gradients,
  moments,
  lr,
  settings,
}: {
  readonly weights: Weights;
  readonly gradients: Weights;
  readonly moments: Moments;
  readonly lr: number;
  readonly settings: ResolvedOptimizerSettings;
}): AdamWStep {
  const { betas, eps, weightDecay, clipGrad } = settings;
  const [beta1, beta2] = betas;
  const gradNorm = normOf(gradients);
  if (!Number.isFinite(gradNorm)) {
    throw new TrainerInputError(
      "gradient",
      `the gradient's norm is ${gradNorm}; no weight is changed`,
    );
  }
  const scale = Math.min(1, clipGrad / (gradNorm + 1e-6));
  const steps = moments.steps + 1;
  const meanScale = 1 - beta1 ** steps;
  const squareScale = 1 - beta2 ** steps;
  const kept = 1 - lr * weightDecay;
  const next = noMoments(weights);
  const changed: Record<string, Float32Array> = {};
  for (const [name, old] of Object.entries(weights)) {
    const weight = (changed[name] = new Float32Array(old.length));
    const gradient = present(gradients[name], name);
    const oldMean = present(moments.mean[name], name);
    const oldSquare = present(moments.square[name], name);
    const mean = present(next.mean[name], name);
    const square = present(next.square[name], name);
    for (let i = 0; i < old.length; i++) {
      const slope = (gradient[i] ?? NaN) * scale;
      const m = beta1 * (oldMean[i] ?? NaN) + (1 - beta1) * slope;
      const v = beta2 * (oldSquare[i] ?? NaN) + (1 - beta2) * slope * slope;
      mean[i] = m;
      square[i] = v;
      const step = (lr * (m / meanScale)) / (Math.sqrt(v / squareScale) + eps);
      weight[i] = (old[i] ?? NaN) * kept - step;
    }
  }
  return { weights: changed, moments: { ...next, steps }, gradNorm };
}

function normOf(gradients: Weights): number {
  let sum = 0;
  for (const gradient of Object.values(gradients)) {
    for (const slope of gradient) sum += slope * slope;
  }
  return Math.sqrt(sum);
}
