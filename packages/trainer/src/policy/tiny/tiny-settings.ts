/** Settings of the tiny policy and the tiny critic: plain data, checked once, here. */

import { TrainerInputError } from "../../errors.ts";
import { optimizerSettingsOf } from "./optimizer/optimizer-settings.ts";
import type {
  OptimizerSettings,
  ResolvedOptimizerSettings,
} from "./optimizer/optimizer-settings.ts";

export interface TinySettings {
  /**
   * Characters that the policy reads and writes, each once. A prompt with another character is
   * refused.
   */
  readonly alphabet: string;
  /** Tokens of a prompt and its answer together, at most. */
  readonly contextLength: number;
  /** Default 2. */
  readonly layers?: number;
  /** Width of the stream through the layers. A multiple of `heads`. Default 48. */
  readonly width?: number;
  /** Heads of the attention. Default 2. */
  readonly heads?: number;
  /**
   * Text between the contents of a prompt's messages when they are read as one text. Default:
   * empty.
   */
  readonly separator?: string;
  /** Seed of the first weights, and of sampling where a call names no seed. Default 0. */
  readonly seed?: number;
  /** Rows that are worked on at once: the more, the more memory. A power of two. Default 64. */
  readonly microBatchRows?: number;
  readonly optim?: OptimizerSettings;
}

export interface ResolvedTinySettings extends Required<Omit<TinySettings, "optim">> {
  readonly optim: ResolvedOptimizerSettings;
}

/** @throws TrainerInputError that names the setting */
export function tinySettingsOf(settings: TinySettings): ResolvedTinySettings {
  const { alphabet, contextLength, layers = 2, width = 48, heads = 2 } = settings;
  const { separator = "", seed = 0, microBatchRows = 64, optim = {} } = settings;
  const characters = Array.from(alphabet);
  if (characters.length === 0 || new Set(characters).size !== characters.length) {
    throw new TrainerInputError(
      "alphabet",
      `alphabet must hold characters, each once; it is ${JSON.stringify(alphabet)}`,
    );
  }
  for (const [name, value] of Object.entries({ contextLength, layers, width, heads })) {
    requireCount(name, value);
  }
  if (width % heads !== 0) {
    throw new TrainerInputError(
      "heads",
      `heads must divide width ${width}, which ${heads} does not`,
    );
  }
  requireCount("microBatchRows", microBatchRows);
  if (!Number.isInteger(Math.log2(microBatchRows))) {
    throw new TrainerInputError(
      "microBatchRows",
      `microBatchRows must be a power of two; it is ${microBatchRows}`,
    );
  }
  if (!Number.isSafeInteger(seed)) {
    throw new TrainerInputError("seed", `seed must be a whole number; it is ${seed}`);
  }
  return {
    alphabet,
    contextLength,
    layers,
    width,
    heads,
    separator,
    seed,
    microBatchRows,
    optim: optimizerSettingsOf(optim),
  };
}

/** @throws TrainerInputError */
export function requireCount(name: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 1) {
    throw new TrainerInputError(
      name,
      `${name} must be a whole number of at least 1; it is ${value}`,
    );
  }
}
