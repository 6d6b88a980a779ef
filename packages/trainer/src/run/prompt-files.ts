/** The prompts of a configuration: verl's files, or a task's that are made here. */

import type { TrainerConfig } from "../config/trainer-config.ts";
import { PromptDataset } from "../data/prompt-dataset.ts";
import type { PromptDatasetOptions } from "../data/prompt-dataset.ts";
import { arithmeticTask } from "../tasks/arithmetic.ts";
import type { ArithmeticOptions } from "../tasks/arithmetic.ts";
import { checkKwargs } from "./kwargs.ts";

export interface ConfiguredPrompts {
  readonly train: PromptDataset;
  /** Undefined: there is nothing to validate on. */
  readonly validation: PromptDataset | undefined;
}

/** As they are, however long. Rejects with DatasetError, TrainerInputError. */
export async function openPrompts(config: TrainerConfig): Promise<ConfiguredPrompts> {
  const { data, rayling } = config;
  const { trainMaxSamples, valMaxSamples, promptKey, rewardFnKey, shuffle } = data;
  const seed = data.seed ?? rayling.seed;
  const options = (maxSamples: number): PromptDatasetOptions => ({
    promptKey,
    rewardFnKey,
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
  const hasValidation = data.valFiles.length > 0;
  return {
    train,
    validation: hasValidation
      ? await PromptDataset.load(data.valFiles, options(valMaxSamples))
      : undefined,
  };
}

/** What their values may be, the task says. */
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
