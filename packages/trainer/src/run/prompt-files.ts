/** The prompts of a configuration: verl's files, or a task's that are made here. */

import type { TrainerConfig } from "../config/options/index.ts";
import { checkKwargs, refusal } from "../config/refusal.ts";
import { PromptLoader } from "../data/prompt-loader.ts";
import type { PromptLoaderOptions } from "../data/prompt-loader.ts";
import { PromptDataset } from "../data/prompt-dataset.ts";
import type { PromptDatasetOptions } from "../data/prompt-dataset.ts";
import { arithmeticTask } from "../tasks/arithmetic.ts";
import type { ArithmeticOptions } from "../tasks/arithmetic.ts";

export interface ConfiguredPrompts {
  readonly train: PromptDataset;
  /** Undefined: there is nothing to validate on. */
  readonly validation: PromptDataset | undefined;
}

/**
 * Opens the prompts with any length. Rejects with DatasetError, also for prompts that fill no
 * batch, TrainerInputError, and TrainerConfigError for prompts that are more than text.
 */
export async function openPrompts(config: TrainerConfig): Promise<ConfiguredPrompts> {
  const prompts = await readPrompts(config);
  loaderOf(prompts.train, config);
  return prompts;
}

/** Returns the batches of a training. Throws DatasetError for prompts that fill none. */
export function loaderOf(train: PromptDataset, { data, rayling }: TrainerConfig): PromptLoader {
  const options: PromptLoaderOptions = {
    batchSize: data.trainBatchSize,
    shuffle: data.shuffle,
    seed: data.seed ?? rayling.seed,
  };
  return new PromptLoader(train, options);
}

async function readPrompts(config: TrainerConfig): Promise<ConfiguredPrompts> {
  const { data, rayling } = config;
  const { trainMaxSamples, valMaxSamples, promptKey, rewardFnKey, allowNan, shuffle } = data;
  const seed = data.seed ?? rayling.seed;
  const options = (maxSamples: number): PromptDatasetOptions => ({
    promptKey,
    rewardFnKey,
    truthKey: data.truthKey ?? undefined,
    allowNan,
    maxSamples,
    shuffle,
    seed,
  });
  if (rayling.task !== null) {
    const { train, test } = arithmeticTask(arithmeticOptionsOf(rayling.taskKwargs));
    const [own, tested] = await Promise.all([
      PromptDataset.fromRows(train, options(trainMaxSamples)),
      PromptDataset.fromRows(test, options(valMaxSamples)),
    ]);
    return { train: own, validation: tested.length === 0 ? undefined : tested };
  }
  const train = await PromptDataset.load(data.trainFiles, options(trainMaxSamples));
  refuseMedia("data.train_files", train, config);
  if (data.valFiles.length === 0) return { train, validation: undefined };
  const validation = await PromptDataset.load(data.valFiles, options(valMaxSamples));
  refuseMedia("data.val_files", validation, config);
  return { train, validation };
}

/** Refuses images and other media: they would be planned and trained on as text. */
function refuseMedia(files: string, { rows }: PromptDataset, { data }: TrainerConfig): void {
  const keys = { image_key: data.imageKey, video_key: data.videoKey, audio_key: data.audioKey };
  for (const [name, column] of Object.entries(keys)) {
    const row = rows.find(({ columns }) => isSomething(columns[column]));
    if (row === undefined) continue;
    const problem = `is ${column}, and rows of ${files} have something there (row ${row.index}), which is not done: prompts are texts`;
    throw refusal(`data.${name}`, problem, column);
  }
}

function isSomething(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  return !(Array.isArray(value) && value.length === 0);
}

/** The task checks the values. */
function arithmeticOptionsOf(kwargs: Readonly<Record<string, unknown>>): ArithmeticOptions {
  const known: readonly (keyof ArithmeticOptions)[] = [
    "low",
    "high",
    "reversed",
    "testShare",
    "seed",
  ];
  checkKwargs("rayling.task_kwargs", kwargs, known);
  return kwargs;
}
