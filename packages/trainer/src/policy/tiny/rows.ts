/**
 * Rows of a batch as the network takes them: checked, in chunks, padded to one of a few shapes,
 * because each shape is compiled once.
 *
 * Which shape a row is in is a function of the call alone, never of calls before: another shape may
 * round otherwise, and a run that was resumed must go on bit by bit.
 */

import { zeros } from "@rayling/data-proto";
import type { Tensor } from "@rayling/data-proto";
import { TrainerInputError } from "../../errors.ts";
import type { TokenRows } from "../policy.ts";
import type { Architecture } from "./network/initial-weights.ts";
import { padTokenId } from "./tokenizer.ts";

/** Rows padded to `size`, their prompts and responses to widths of a few. */
export interface RowChunk {
  /** Numbers of the rows in the batch. */
  readonly rows: readonly number[];
  readonly size: number;
  readonly promptWidth: number;
  readonly responseWidth: number;
  /** [size, promptWidth + responseWidth], like the two below. */
  readonly tokens: Int32Array;
  readonly positions: Int32Array;
  readonly mask: Float32Array;
  /** [size, responseWidth] */
  readonly responses: Int32Array;
}

export interface RowLimits extends Pick<Architecture, "vocabularySize" | "contextLength"> {
  /** Rows of a chunk, at most. */
  readonly microBatchRows: number;
}

export class TokenBatch {
  readonly count: number;
  readonly responseLength: number;
  readonly temperature: number;
  readonly #rows: TokenRows;
  readonly #promptLength: number;
  readonly #limits: RowLimits;

  /**
   * @throws TrainerInputError for shapes that do not fit each other, and rows that the model cannot
   * read
   */
  constructor(rows: TokenRows, limits: RowLimits) {
    const { prompts, responses, attentionMask, temperature = 1 } = rows;
    const [count = 0, promptLength = 0] = prompts.shape;
    const [, responseLength = 0] = responses.shape;
    this.count = count;
    this.responseLength = responseLength;
    this.temperature = temperature;
    this.#promptLength = promptLength;
    this.#rows = rows;
    this.#limits = limits;
    requireShape("prompts", prompts, [count, promptLength]);
    requireShape("responses", responses, [count, responseLength]);
    requireShape("attentionMask", attentionMask, [count, promptLength + responseLength]);
    if (!(temperature > 0 && temperature < Infinity)) {
      throw new TrainerInputError("temperature", `temperature must be above 0, not ${temperature}`);
    }
    for (let row = 0; row < count; row++) this.#check(row);
  }

  isResponse(row: number, token: number): boolean {
    return this.#isThere(row, this.#promptLength + token);
  }

  hasResponse(row: number): boolean {
    for (let token = 0; token < this.responseLength; token++) {
      if (this.isResponse(row, token)) return true;
    }
    return false;
  }

  /**
   * Whether one of these, [rows, R], is not 0 at the row's response: of others nothing is to be
   * learned, as of a group whose scores are all the same.
   */
  isTaught(row: number, slopes: readonly Tensor[]): boolean {
    const start = row * this.responseLength;
    return slopes.some(({ data }) => {
      for (let token = 0; token < this.responseLength; token++) {
        if (data[start + token] !== 0 && this.isResponse(row, token)) return true;
      }
      return false;
    });
  }

  /** Yields chunks of the wanted rows among those with a response, in order. */
  *chunks(isWanted: (row: number) => boolean): Generator<RowChunk> {
    const { microBatchRows } = this.#limits;
    const rows = Array.from({ length: this.count }, (_, row) => row).filter(
      (row) => this.hasResponse(row) && isWanted(row),
    );
    for (let start = 0; start < rows.length; start += microBatchRows) {
      yield this.#chunk(rows.slice(start, start + microBatchRows));
    }
  }

  /** [rows, R] */
  zeros(): Tensor<"float32"> {
    return zeros([this.count, this.responseLength], "float32");
  }

  /**
   * Returns values of the batch's response tokens for a chunk, 0 elsewhere.
   *
   * @throws TrainerInputError for a value that is not finite
   */
  spread(name: string, values: Tensor, chunk: RowChunk): Float32Array {
    const spread = new Float32Array(chunk.size * chunk.responseWidth);
    this.#eachToken(chunk, (inBatch, inChunk) => {
      const value = values.data[inBatch] ?? NaN;
      if (!Number.isFinite(value)) {
        const row = Math.floor(inBatch / this.responseLength);
        throw new TrainerInputError(name, `${name} of row ${row} must be finite, not ${value}`);
      }
      spread[inChunk] = value;
    });
    return spread;
  }

  /** The other way: into the batch's matrix, [rows, R]. */
  gather(values: ArrayLike<number>, chunk: RowChunk, into: Float32Array): void {
    this.#eachToken(chunk, (inBatch, inChunk) => {
      into[inBatch] = values[inChunk] ?? NaN;
    });
  }

  #eachToken(
    { rows, responseWidth }: RowChunk,
    visit: (inBatch: number, inChunk: number) => void,
  ): void {
    rows.forEach((row, i) => {
      for (let token = 0; token < this.responseLength; token++) {
        if (this.isResponse(row, token)) {
          visit(row * this.responseLength + token, i * responseWidth + token);
        }
      }
    });
  }

  #chunk(rows: readonly number[]): RowChunk {
    const size = Math.min(powerOfTwo(Math.max(rows.length, 8)), this.#limits.microBatchRows);
    const promptWidth = widthFor(this.#promptLength);
    const responseWidth = widthFor(this.responseLength);
    const width = promptWidth + responseWidth;
    const tokens = new Int32Array(size * width).fill(padTokenId);
    const positions = new Int32Array(size * width);
    const mask = new Float32Array(size * width);
    const responses = new Int32Array(size * responseWidth).fill(padTokenId);
    rows.forEach((row, i) => {
      // The prompts' padding stands before them.
      const shift = i * width + promptWidth - this.#promptLength;
      let position = 0;
      for (let place = 0; place < this.#promptLength + this.responseLength; place++) {
        if (!this.#isThere(row, place)) continue;
        const id = this.#idAt(row, place);
        tokens[shift + place] = id;
        mask[shift + place] = 1;
        positions[shift + place] = position++;
        const token = place - this.#promptLength;
        if (token >= 0) responses[i * responseWidth + token] = id;
      }
    });
    return { rows, size, promptWidth, responseWidth, tokens, positions, mask, responses };
  }

  #check(row: number): void {
    const { vocabularySize, contextLength } = this.#limits;
    const length = this.#promptLength + this.responseLength;
    let tokens = 0;
    for (let place = 0; place < length; place++) {
      if (!this.#isThere(row, place)) continue;
      tokens += 1;
      const id = this.#idAt(row, place);
      if (Number.isInteger(id) && id >= 0 && id < vocabularySize) continue;
      const [name, at] =
        place < this.#promptLength ? ["prompts", place] : ["responses", place - this.#promptLength];
      throw new TrainerInputError(
        name,
        `${name} row ${row} has the id ${id} at ${at}; the vocabulary has ${vocabularySize}`,
      );
    }
    if (tokens > contextLength) {
      throw new TrainerInputError(
        "attentionMask",
        `row ${row} has ${tokens} tokens; the context has room for ${contextLength}`,
      );
    }
    if (this.hasResponse(row) && !this.#isThere(row, this.#promptLength - 1)) {
      throw new TrainerInputError(
        "prompts",
        `row ${row} has a response, but no token at the end of its prompt: prompts are padded on the left`,
      );
    }
  }

  #isThere(row: number, place: number): boolean {
    const width = this.#promptLength + this.responseLength;
    return place >= 0 && this.#rows.attentionMask.data[row * width + place] !== 0;
  }

  #idAt(row: number, place: number): number {
    const { prompts, responses } = this.#rows;
    const id =
      place < this.#promptLength
        ? prompts.data[row * this.#promptLength + place]
        : responses.data[row * this.responseLength + place - this.#promptLength];
    return id ?? NaN;
  }
}

/** @throws TrainerInputError */
export function requireShape(name: string, tensor: Tensor, shape: readonly number[]): void {
  if (shape.length === tensor.shape.length && shape.every((size, i) => size === tensor.shape[i])) {
    return;
  }
  throw new TrainerInputError(
    name,
    `${name} must be of shape [${shape.join(", ")}]; it is [${tensor.shape.join(", ")}]`,
  );
}

export function powerOfTwo(atLeast: number): number {
  return 2 ** Math.ceil(Math.log2(atLeast));
}

/**
 * Four widths between one power of two and the next, so at most a quarter is padding; below 16 all
 * even ones.
 */
export function widthFor(length: number): number {
  const step = Math.max(2, powerOfTwo(Math.max(length, 1)) / 8);
  return Math.max(step, Math.ceil(length / step) * step);
}
