/**
 * The warm start's batches: pairs of a prompt and its answer as rows of tokens, drawn by the seed
 * and the step alone.
 */

import { asTensor } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";
import type { ChatMessage, TokenRows } from "../policy.ts";
import { uniformOf } from "../../values/random.ts";
import { requireCount } from "./tiny-settings.ts";
import { eosTokenId } from "./tokenizer.ts";
import type { CharTokenizer } from "./tokenizer.ts";
import { sumOf } from "../../values/sums.ts";

export interface SupervisedPair {
  readonly prompt: readonly ChatMessage[];
  /** The end of sequence comes after it by itself. */
  readonly answer: string;
}

export interface Supervision {
  readonly pairs: readonly SupervisedPair[];
  /** Steps of the optimiser. */
  readonly steps: number;
  /** Pairs of a step, drawn with repetition. Default 64. */
  readonly batchSize?: number;
  /** Default 3e-3. */
  readonly lr?: number;
}

export interface SupervisionResult {
  /** Loss of each step: the mean of -log-prob over the answers' tokens. */
  readonly losses: Float32Array;
}

export interface SupervisedRows extends TokenRows {
  /** Gradient of the mean of -log-prob, [rows, R]. */
  readonly gradLogProbs: Tensor<"float32">;
}

export class SupervisedPairs {
  readonly #prompts: readonly Int32Array[];
  readonly #answers: readonly Int32Array[];

  /** @throws TrainerInputError */
  constructor(pairs: readonly SupervisedPair[], tokenizer: CharTokenizer) {
    if (pairs.length === 0) throw new TrainerInputError("pairs", "there must be a pair");
    this.#prompts = pairs.map(({ prompt }) => tokenizer.encodeMessages(prompt));
    this.#answers = pairs.map(({ answer }) =>
      Int32Array.of(...tokenizer.encode(answer), eosTokenId),
    );
  }

  /** Widths are those of all pairs, so that every batch has one shape. */
  batch({ size, seed, step }: { size: number; seed: number; step: number }): SupervisedRows {
    requireCount("batchSize", size);
    const promptLength = longest(this.#prompts);
    const responseLength = longest(this.#answers);
    const prompts = new Int32Array(size * promptLength);
    const responses = new Int32Array(size * responseLength);
    const width = promptLength + responseLength;
    const mask = new Uint8Array(size * width);
    const gradLogProbs = new Float32Array(size * responseLength);
    const drawn = Array.from({ length: size }, (_, row) =>
      Math.floor(uniformOf(seed, step, row) * this.#prompts.length),
    );
    const tokens = sumOf(drawn.map((pair) => this.#answers[pair]?.length ?? NaN));
    drawn.forEach((pair, row) => {
      const prompt = present(this.#prompts[pair], `prompt ${pair}`);
      const answer = present(this.#answers[pair], `answer ${pair}`);
      prompts.set(prompt, (row + 1) * promptLength - prompt.length);
      responses.set(answer, row * responseLength);
      const start = row * width + promptLength;
      mask.fill(1, start - prompt.length, start + answer.length);
      gradLogProbs.fill(-1 / tokens, row * responseLength, row * responseLength + answer.length);
    });
    return {
      prompts: asTensor(prompts, [size, promptLength]),
      responses: asTensor(responses, [size, responseLength]),
      attentionMask: asTensor(mask, [size, width]),
      gradLogProbs: { dtype: "float32", shape: [size, responseLength], data: gradLogProbs },
    };
  }
}

function longest(sequences: readonly Int32Array[]): number {
  return Math.max(...sequences.map(({ length }) => length));
}
