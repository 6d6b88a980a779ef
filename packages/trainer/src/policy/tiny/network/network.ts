/**
 * A tiny transformer: weights and rows in, numbers out, all as typed arrays. Memory of jax-js is
 * allocated and freed within a call, or belongs to a decoding, which must be disposed.
 */

import { numpy as np, tree } from "@jax-js/jax";
import { present } from "@rayling/reward-manager-registry/values";
import type { Weights } from "../optimizer/adamw.ts";
import type { RowChunk } from "../rows.ts";
import { weightShapes } from "./initial-weights.ts";
import type { Architecture } from "./initial-weights.ts";
import { programsOf } from "./programs.ts";
import type { Programs, ResponseInputs } from "./programs.ts";
import type { Arrays, KeysAndValues, TokenInputs } from "./transformer.ts";

/** [size, responseWidth] of a chunk, each. */
export interface ChunkScores {
  readonly logProbs: Float32Array;
  readonly entropys: Float32Array;
  readonly sumPiSquared: Float32Array;
}

export interface Gradient {
  /** The sum of what came out, each times its slope: of which the gradient is. */
  readonly weighted: number;
  /** d loss / d weights. */
  readonly gradients: Weights;
}

export interface PromptChunk {
  /** Padded on the left, [prompts, width], like the two below. */
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
  readonly mask: Float32Array;
  readonly prompts: number;
  readonly width: number;
  /** Answers to each. */
  readonly times: number;
  /** Tokens of an answer, at most. */
  readonly responseWidth: number;
}

export class Network {
  readonly architecture: Architecture;
  readonly #programs: Programs;

  constructor(architecture: Architecture) {
    this.architecture = architecture;
    this.#programs = programsOf(architecture);
  }

  scores(weights: Weights, chunk: RowChunk, temperature: number): ChunkScores {
    const { logProbs, entropys, sumPiSquared } = this.#programs.scores(
      this.#upload(weights),
      responseInputs(chunk, temperature),
    );
    return {
      logProbs: floats(logProbs),
      entropys: floats(entropys),
      sumPiSquared: floats(sumPiSquared),
    };
  }

  /** For d loss / d log-prob and d loss / d entropy. */
  scoreGradient(
    weights: Weights,
    chunk: RowChunk,
    temperature: number,
    slopes: { readonly logProbs: Float32Array; readonly entropys: Float32Array },
  ): Gradient {
    const shape = [chunk.size, chunk.responseWidth];
    const gradient = this.#programs.scoreGradient(
      this.#upload(weights),
      responseInputs(chunk, temperature),
      {
        logProbs: floatArray(slopes.logProbs, shape),
        entropys: floatArray(slopes.entropys, shape),
      },
    );
    return downloaded(gradient);
  }

  values(weights: Weights, chunk: RowChunk): Float32Array {
    return floats(this.#programs.values(this.#upload(weights), responseInputs(chunk, 1)));
  }

  valueGradient(weights: Weights, chunk: RowChunk, slopes: Float32Array): Gradient {
    const shape = [chunk.size, chunk.responseWidth];
    const gradient = this.#programs.valueGradient(
      this.#upload(weights),
      responseInputs(chunk, 1),
      floatArray(slopes, shape),
    );
    return downloaded(gradient);
  }

  /** Begins a decoding, which the caller disposes. */
  decode(weights: Weights, prompts: PromptChunk): Decoding {
    return new Decoding(this.#programs, this.#upload(weights), prompts);
  }

  #upload(weights: Weights): Arrays {
    return Object.fromEntries(
      weightShapes(this.architecture).map(({ name, shape }) => [
        name,
        floatArray(present(weights[name], name), shape),
      ]),
    );
  }
}

/**
 * Answers on their way: `times` rows for each prompt, one after the other; each `next` goes one
 * token further.
 */
export class Decoding {
  readonly rows: number;
  readonly #programs: Programs;
  readonly #weights: Arrays;
  readonly #mask: Float32Array;
  readonly #length: number;
  readonly #vocabularySize: number;
  /** Logits of the next token: at first a line for each prompt, then one for each row. */
  #logits: Float32Array;
  #memory: KeysAndValues[];
  /** Place of the next token. */
  #slot: number;

  /** @param weights given away */
  constructor(programs: Programs, weights: Arrays, chunk: PromptChunk) {
    const { prompts, width, times, responseWidth } = chunk;
    this.#programs = programs;
    this.#weights = weights;
    this.rows = prompts * times;
    this.#length = width + responseWidth;
    this.#slot = width;
    this.#mask = new Float32Array(this.rows * this.#length);
    for (let row = 0; row < this.rows; row++) {
      const prompt = Math.floor(row / times);
      const own = chunk.mask.subarray(prompt * width, (prompt + 1) * width);
      this.#mask.set(own, row * this.#length);
    }
    const inputs = tokenInputs(chunk, [prompts, width]);
    const read = programs.readPrompts(tree.ref(weights), inputs, times, this.#length);
    this.#logits = floats(read.logits);
    this.#memory = read.memory;
    this.#vocabularySize = this.#logits.length / prompts;
  }

  /** [vocabulary], before the temperature. */
  scores(line: number): Float32Array {
    const start = line * this.#vocabularySize;
    return this.#logits.subarray(start, start + this.#vocabularySize);
  }

  /**
   * @param tokens the last of each row, [rows]
   * @param positions which of its row that is, [rows]
   */
  next(tokens: Int32Array, positions: Int32Array): void {
    const length = this.#length;
    const slot = new Float32Array(length);
    slot[this.#slot] = 1;
    for (let row = 0; row < this.rows; row++) this.#mask[row * length + this.#slot] = 1;
    this.#slot += 1;
    const next = this.#programs.nextToken(tree.ref(this.#weights), this.#memory, {
      tokens: intArray(tokens, [this.rows, 1]),
      positions: intArray(positions, [this.rows, 1]),
      mask: floatArray(this.#mask, [this.rows, length]),
      slot: floatArray(slot, [length]),
    });
    this.#logits = floats(next.logits);
    this.#memory = next.memory;
  }

  dispose(): void {
    tree.dispose(this.#weights);
    tree.dispose(this.#memory);
  }
}

function tokenInputs(
  { tokens, positions, mask }: Pick<RowChunk, "tokens" | "positions" | "mask">,
  shape: number[],
): TokenInputs {
  return {
    tokens: intArray(tokens, shape),
    positions: intArray(positions, shape),
    mask: floatArray(mask, shape),
  };
}

function responseInputs(chunk: RowChunk, temperature: number): ResponseInputs {
  const { size, promptWidth, responseWidth, responses } = chunk;
  return {
    ...tokenInputs(chunk, [size, promptWidth + responseWidth]),
    responses: intArray(responses, [size, responseWidth]),
    temperature: np.array(temperature),
  };
}

function downloaded([weighted, gradients]: [np.Array, Arrays]): Gradient {
  return {
    weighted: floats(weighted)[0] ?? NaN,
    gradients: Object.fromEntries(
      Object.entries(gradients).map(([name, array]) => [name, floats(array)]),
    ),
  };
}

/**
 * Returns a copy in the memory of jax-js. `values` belongs to this thread, never to another one.
 */
function floatArray(values: Float32Array, shape: readonly number[]): np.Array {
  return np.array(values as Float32Array<ArrayBuffer>, { shape: [...shape] });
}

function intArray(values: Int32Array, shape: readonly number[]): np.Array {
  return np.array(values as Int32Array<ArrayBuffer>, { shape: [...shape], dtype: np.int32 });
}

function floats(array: np.Array): Float32Array {
  const values = array.dataSync();
  if (values instanceof Float32Array) return values;
  throw new TypeError("an array of the network has another type than float32");
}
