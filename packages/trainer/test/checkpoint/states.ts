/** Checkpoints whose content tells which step they are of, so that a wrong byte anywhere shows. */

import type { Checkpoint, PolicyState } from "../../src/index.ts";

/** Quickly made: a process that is to be killed while it saves must not spend its time here. */
const numbersOf = (seed: number, length: number): Float32Array => {
  const numbers = new Float32Array(length).fill(seed);
  numbers.set(Array.from({ length: Math.min(length, 8) }, (_, at) => Math.sin(seed + at)));
  return numbers;
};

/** @param size of the weights, in numbers */
export function stateOf(step: number, size = 1000): PolicyState {
  return {
    version: 4 * step,
    weights: { "layer.0": numbersOf(step, size), bias: Float32Array.of(step, -0, Number.NaN) },
    optimizer: { "layer.0.m": numbersOf(step + 0.5, size), empty: new Float32Array(0) },
  };
}

export function checkpointOf(step: number, size = 1000): Checkpoint {
  return {
    globalStep: step,
    policy: stateOf(step, size),
    critic: stateOf(step + 100, 10),
    trainer: { globalStep: step, position: { epoch: 1, batch: step }, klCoef: 0.001 },
    outstanding: [
      {
        step: step + 1,
        batch: { responses: { dtype: "int32", shape: [2, 2], data: Int32Array.of(step, 2, 3, 4) } },
        outcomes: [{ valid: true, score: 0.5 }, undefined],
      },
    ],
  };
}
