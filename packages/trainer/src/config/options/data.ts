/** verl `data`. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { count, countOrNot, flag, text, whole } from "./kinds.ts";

/** One file, several, or null for none. */
const files = z.union([
  text.transform((one) => [one]),
  z.array(text),
  z.null().transform((): string[] => []),
]);

export const data = z.strictObject({
  /**
   * Parquet, JSON Lines or a JSON array, the latter two also with .gz; one file or a list. Rows are
   * verl's, or of a shape that rayling score reads.
   */
  trainFiles: option(files, "~/data/rlhf/gsm8k/train.parquet"),
  /** Prompts to validate with, as train_files; null: no validation. */
  valFiles: option(files, "~/data/rlhf/gsm8k/test.parquet"),
  /** The most prompts to train on; -1: all. */
  trainMaxSamples: option(countOrNot, -1),
  /** The most prompts of a validation; -1: all. */
  valMaxSamples: option(countOrNot, -1),
  /**
   * The column, or the path as doc.question, of the conversation, or of a text that a user says.
   * Where it is prompt and a row has none: messages without the answer, input (verl's dumps),
   * arguments (lm-evaluation-harness).
   */
  promptKey: option(text, "prompt"),
  /**
   * The column or path of the ground truth; null: reward_model.ground_truth, or in rows without a
   * reward_model: ground_truth, gts, solution, answer or target. (Ours.)
   */
  truthKey: option(text.nullable(), null),
  /** Whether NaN and Infinity are read in JSON, as Python writes them. (Ours.) */
  allowNan: option(flag, false),
  /**
   * The column that chooses the scorer. Where it is data_source and rows that are not verl's have
   * none: the file's name.
   */
  rewardFnKey: option(text, "data_source"),
  /** The column of images. Prompts are texts here: rows with images are refused. */
  imageKey: option(text, "images"),
  /** The column of videos; rows with videos are refused. */
  videoKey: option(text, "videos"),
  /** The column of audio; rows with audio are refused. */
  audioKey: option(text, "audios"),
  /** The longest prompt, in tokens. */
  maxPromptLength: option(count, 512),
  /** The longest response, in tokens. */
  maxResponseLength: option(count, 512),
  /** Prompts of a step. */
  trainBatchSize: option(count, 1024),
  /** Whether prompts come in another order in each epoch. */
  shuffle: option(flag, true),
  /** The seed of the order; null: rayling.seed. */
  seed: option(whole.nullable(), null),
  /** Whether longer prompts are left out. */
  filterOverlongPrompts: option(flag, false),
  /** How prompts that are too long and not left out are cut; error: the run fails. */
  truncation: option(z.enum(["error", "left", "right", "middle"]), "error"),
});
