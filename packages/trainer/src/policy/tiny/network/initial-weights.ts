/** Shapes and first values of a tiny transformer's weights. */

import { normalOf } from "../../../values/random.ts";
import type { Weights } from "../optimizer/adamw.ts";

export interface Architecture {
  readonly vocabularySize: number;
  readonly contextLength: number;
  readonly layers: number;
  readonly width: number;
  readonly heads: number;
  /** Outputs at each position: a score of each token, or one value. */
  readonly outputs: number;
}

interface WeightShape {
  readonly name: string;
  readonly shape: readonly number[];
  /** Deviation of the normal distribution of the first weights; 0: all weights are 0. */
  readonly deviation: number;
}

/**
 * Returns the shapes in a fixed order. Norms hold their scale minus 1, so that weight decay draws
 * the scale to 1.
 */
export function weightShapes(architecture: Architecture): WeightShape[] {
  const { vocabularySize, contextLength, layers, width, outputs } = architecture;
  const inward = 1 / Math.sqrt(width);
  // Each layer adds little to the stream at first, and less the more layers there are.
  const back = inward / Math.sqrt(2 * layers);
  const norm = (name: string): WeightShape => ({ name, shape: [width], deviation: 0 });
  const matrix = (name: string, rows: number, columns: number, deviation: number): WeightShape => ({
    name,
    shape: [rows, columns],
    deviation,
  });
  return [
    matrix("tokens", vocabularySize, width, 0.02),
    matrix("positions", contextLength, width, 0.02),
    ...Array.from({ length: layers }, (_, layer) => [
      norm(`${layer}.attentionNorm`),
      matrix(`${layer}.query`, width, width, inward),
      matrix(`${layer}.keyValue`, width, 2 * width, inward),
      matrix(`${layer}.attentionOut`, width, width, back),
      norm(`${layer}.feedForwardNorm`),
      matrix(`${layer}.feedForwardIn`, width, 4 * width, inward),
      matrix(`${layer}.feedForwardOut`, 4 * width, width, back / 2),
    ]).flat(),
    norm("norm"),
    // A head that starts at 0 gives each token the same chance, and each token the value 0.
    matrix("head", width, outputs, 0),
  ];
}

export function firstWeights(architecture: Architecture, seed: number): Weights {
  return Object.fromEntries(
    weightShapes(architecture).map(({ name, shape, deviation }, tensor) => {
      const length = shape.reduce((a, b) => a * b, 1);
      const drawn = (_: unknown, i: number): number =>
        deviation === 0 ? 0 : deviation * normalOf(seed, tensor, i);
      return [name, Float32Array.from({ length }, drawn)];
    }),
  );
}
