/** verl `data`. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { count, countOrNot, flag, text, whole } from "./kinds.ts";

/** One, several, or null for none. */
const files = z.union([
  text.transform((one) => [one]),
  z.array(text),
  z.null().transform((): string[] => []),
]);

export const data = z.strictObject({
  trainFiles: option(
    files,
    "~/data/rlhf/gsm8k/train.parquet",
    "Parquet or JSON Lines; one file or a list.",
  ),
  valFiles: option(
    files,
    "~/data/rlhf/gsm8k/test.parquet",
    "Prompts to validate with, as train_files; null: no validation.",
  ),
  trainMaxSamples: option(countOrNot, -1, "So many of the prompts; -1: all."),
  valMaxSamples: option(countOrNot, -1, "So many of the prompts of a validation; -1: all."),
  promptKey: option(text, "prompt", "The column of the conversation."),
  rewardFnKey: option(text, "data_source", "The column that chooses the scorer."),
  imageKey: option(text, "images", "Prompts are texts: rows with something there are refused."),
  videoKey: option(text, "videos", "As image_key."),
  audioKey: option(text, "audios", "As image_key."),
  maxPromptLength: option(count, 512, "In tokens."),
  maxResponseLength: option(count, 512, "In tokens."),
  trainBatchSize: option(count, 1024, "Prompts of a step."),
  shuffle: option(flag, true, "Whether prompts come in another order in each epoch."),
  seed: option(whole.nullable(), null, "The seed of the order; null: rayling.seed."),
  filterOverlongPrompts: option(flag, false, "Whether longer prompts are left out."),
  truncation: option(
    z.enum(["error", "left", "right", "middle"]),
    "error",
    "What becomes of prompts that are too long and not left out.",
  ),
});
