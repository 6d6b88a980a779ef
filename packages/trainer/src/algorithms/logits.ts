/**
 * Log-probabilities, entropies and sums of squared probabilities of a model's logits, with
 * gradients (verl/utils/torch_functional.py).
 */

import { asTensor, type Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../errors.ts";

/** Values of tokens that were computed from logits, with their gradient. */
export interface OfLogits {
  /** In the shape of the logits without the vocabulary. */
  readonly values: Tensor<"float32">;
  /** d of the sum of all values / d logits. */
  readonly gradLogits: Tensor<"float32">;
}

/** verl `entropy_from_logits`. @param logits [..., vocabulary]. Throws TrainerInputError. */
export function entropyFromLogits(logits: Tensor): OfLogits {
  return ofEach(logits, (logProbs, gradient) => {
    let entropy = 0;
    for (const one of logProbs) if (one !== -Infinity) entropy -= Math.exp(one) * one;
    for (const [at, one] of logProbs.entries()) {
      gradient[at] = one === -Infinity ? 0 : -Math.exp(one) * (one + entropy);
    }
    return entropy;
  });
}

/**
 * verl `logprobs_from_logits`.
 *
 * @param labels [...], places in the vocabulary. Throws TrainerInputError.
 */
export function logProbsFromLogits(logits: Tensor, labels: Tensor): OfLogits {
  const vocabulary = logits.shape.at(-1) ?? 0;
  if (labels.data.length * vocabulary !== logits.data.length) {
    throw new TrainerInputError(
      "labels",
      `labels must be one for each distribution of logits [${logits.shape.join(", ")}]; they have shape [${labels.shape.join(", ")}]`,
    );
  }
  return ofEach(logits, (logProbs, gradient, row) => {
    const label = labels.data[row] ?? NaN;
    const value = logProbs[label];
    if (value === undefined) {
      throw new TrainerInputError(
        "labels",
        `label ${label} is not within a vocabulary of ${vocabulary}`,
      );
    }
    for (const [at, one] of logProbs.entries())
      gradient[at] = (at === label ? 1 : 0) - Math.exp(one);
    return value;
  });
}

/**
 * verl `calculate_sum_pi_squared_from_logits`: what the optimal token baselines need. Throws
 * TrainerInputError.
 */
export function sumPiSquaredFromLogits(logits: Tensor): OfLogits {
  return ofEach(logits, (logProbs, gradient) => {
    let sum = 0;
    for (const one of logProbs) sum += Math.exp(2 * one);
    for (const [at, one] of logProbs.entries()) {
      const probability = Math.exp(one);
      gradient[at] = 2 * probability * (probability - sum);
    }
    return sum;
  });
}

/**
 * @param work is given the log-probabilities of a distribution, and where its gradient goes; both
 *   are used again for the next one
 */
function ofEach(
  logits: Tensor,
  work: (logProbs: Float64Array, gradient: Float64Array, row: number) => number,
): OfLogits {
  const vocabulary = logits.shape.at(-1) ?? 0;
  if (vocabulary === 0) {
    throw new TrainerInputError(
      "logits",
      `logits must have shape [..., vocabulary]; they have [${logits.shape.join(", ")}]`,
    );
  }
  const rows = logits.data.length / vocabulary;
  const values = new Float32Array(rows);
  const gradLogits = new Float32Array(logits.data.length);
  const logProbs = new Float64Array(vocabulary);
  const gradient = new Float64Array(vocabulary);
  for (let row = 0; row < rows; row++) {
    const from = row * vocabulary;
    let most = -Infinity;
    for (let at = 0; at < vocabulary; at++) most = Math.max(most, logits.data[from + at] ?? NaN);
    let sum = 0;
    for (let at = 0; at < vocabulary; at++) sum += Math.exp((logits.data[from + at] ?? NaN) - most);
    const shift = most + Math.log(sum);
    for (let at = 0; at < vocabulary; at++) logProbs[at] = (logits.data[from + at] ?? NaN) - shift;
    values[row] = work(logProbs, gradient, row);
    gradLogits.set(gradient, from);
  }
  return {
    values: asTensor(values, logits.shape.slice(0, -1)),
    gradLogits: asTensor(gradLogits, logits.shape),
  };
}
