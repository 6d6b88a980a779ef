/**
 * The compiled functions of the transformer that a network calls. Each is compiled for every shape
 * that it is called with, and uses up its arguments.
 */

import { jit, nn, numpy as np, valueAndGrad } from "@jax-js/jax";
import { padTokenId } from "../tokenizer.ts";
import type { Architecture } from "./initial-weights.ts";
import { oneHot, runNextToken, runTokens, widenMemory } from "./transformer.ts";
import type { Arrays, KeysAndValues, TokenInputs } from "./transformer.ts";

export type ResponseInputs = TokenInputs & {
  /** Ids, [rows, R]: the last R of the tokens. */
  readonly responses: np.Array;
  /** A number, by which scores are divided. */
  readonly temperature: np.Array;
};

export type Scores = {
  readonly logProbs: np.Array;
  readonly entropys: np.Array;
  readonly sumPiSquared: np.Array;
};

/** d loss / d what comes out, [rows, R]; 0 where there is no response. */
export type ScoreSlopes = { readonly logProbs: np.Array; readonly entropys: np.Array };

export interface Programs {
  scores(weights: Arrays, inputs: ResponseInputs): Scores;
  /** d loss / d weights. */
  scoreGradient(weights: Arrays, inputs: ResponseInputs, slopes: ScoreSlopes): [np.Array, Arrays];
  /** [rows, R]: at the token before each of the response. */
  values(weights: Arrays, inputs: ResponseInputs): np.Array;
  valueGradient(weights: Arrays, inputs: ResponseInputs, slopes: np.Array): [np.Array, Arrays];
  /**
   * Returns the logits after each prompt, [prompts, vocabulary], and a memory for `times` answers
   * to each in a room of `length` tokens.
   */
  readPrompts(weights: Arrays, inputs: TokenInputs, times: number, length: number): Decoded;
  /** Returns the logits after one more token, [rows, vocabulary]. */
  nextToken(
    weights: Arrays,
    memory: KeysAndValues[],
    inputs: TokenInputs & { readonly slot: np.Array },
  ): Decoded;
}

export type Decoded = { readonly logits: np.Array; readonly memory: KeysAndValues[] };

export function programsOf(architecture: Architecture): Programs {
  const { vocabularySize } = architecture;
  const scores = (weights: Arrays, inputs: ResponseInputs): Scores =>
    scoresOf(architecture, weights, inputs);
  const values = (weights: Arrays, inputs: ResponseInputs): np.Array =>
    valuesOf(architecture, weights, inputs);
  return {
    scores: jit(scores),
    scoreGradient: jit(
      valueAndGrad((weights: Arrays, inputs: ResponseInputs, slopes: ScoreSlopes) => {
        const { logProbs, entropys, sumPiSquared } = scores(weights, inputs);
        sumPiSquared.dispose();
        return np.sum(logProbs.mul(slopes.logProbs).add(entropys.mul(slopes.entropys)));
      }),
    ),
    values: jit(values),
    valueGradient: jit(
      valueAndGrad((weights: Arrays, inputs: ResponseInputs, slopes: np.Array) =>
        np.sum(values(weights, inputs).mul(slopes)),
      ),
    ),
    readPrompts: jit(
      (weights: Arrays, inputs: TokenInputs, times: number, length: number): Decoded => {
        const { outputs, memory } = runTokens(architecture, weights, inputs, { count: 1, skip: 0 });
        const logits = withoutPadding(outputs.reshape([-1, vocabularySize]), vocabularySize);
        return { logits, memory: widenMemory(memory, { times, length }) };
      },
      { staticArgnums: [2, 3] },
    ),
    nextToken: jit((weights, memory, inputs): Decoded => {
      const { outputs, memory: next } = runNextToken(architecture, weights, memory, inputs);
      return { logits: withoutPadding(outputs, vocabularySize), memory: next };
    }),
  };
}

function scoresOf(architecture: Architecture, weights: Arrays, inputs: ResponseInputs): Scores {
  const { vocabularySize } = architecture;
  const { responses, temperature, ...tokens } = inputs;
  const [rows = 0, count = 0] = responses.shape;
  const logits = responseOutputs(architecture, weights, tokens, count).div(temperature);
  const logPi = nn.logSoftmax(withoutPadding(logits, vocabularySize), -1);
  const chosen = oneHot(responses, vocabularySize).reshape([rows, count, vocabularySize]);
  const pi = np.exp(logPi.ref);
  return {
    logProbs: np.sum(logPi.ref.mul(chosen), -1),
    entropys: np.sum(pi.ref.mul(logPi), -1).mul(-1),
    sumPiSquared: np.sum(np.square(pi), -1),
  };
}

function valuesOf(architecture: Architecture, weights: Arrays, inputs: ResponseInputs): np.Array {
  const { responses, temperature, ...tokens } = inputs;
  const [rows = 0, count = 0] = responses.shape;
  responses.dispose();
  temperature.dispose();
  return responseOutputs(architecture, weights, tokens, count).reshape([rows, count]);
}

function responseOutputs(
  architecture: Architecture,
  weights: Arrays,
  inputs: TokenInputs,
  count: number,
): np.Array {
  const { outputs, memory } = runTokens(architecture, weights, inputs, { count, skip: 1 });
  forget(memory);
  return outputs;
}

/** Padding is never an answer. */
function withoutPadding(logits: np.Array, vocabularySize: number): np.Array {
  const padding = oneHot(np.array([padTokenId], { dtype: np.int32 }), vocabularySize);
  return logits.sub(padding.reshape([...logits.shape.slice(1).map(() => 1), -1]).mul(1e9));
}

function forget(memory: readonly KeysAndValues[]): void {
  for (const { keys, values } of memory) {
    keys.dispose();
    values.dispose();
  }
}
