/**
 * Finds what a run would refuse before its first step. No actor is started, nothing is generated,
 * and no server is asked.
 */

import { resolve } from "node:path";
import { checkRewardLoop } from "@rayling/reward-loop";
import { rewardModelsIn } from "@rayling/reward-loop/config";
import { codeOf, isRecord, messageOf } from "@rayling/reward-manager-registry/values";
import type { TrainerConfig } from "../config/options/index.ts";
import { refusal } from "../config/refusal.ts";
import { mlflowAddress } from "../tracking/mlflow/mlflow-client.ts";
import { checkAlgorithms } from "./check-algorithms.ts";
import { planPolicies } from "./configured-policies.ts";
import { openPrompts } from "./prompt-files.ts";
import type { ConfiguredPrompts } from "./prompt-files.ts";
import { checkOutputs } from "./run-outputs.ts";
import { totalStepsOf } from "./total-steps.ts";
import { rewardOptionsOf } from "./trainer-options.ts";

export interface RehearseOptions {
  /** Base of relative module paths. Default: the current directory. */
  readonly baseDirectory?: string | undefined;
}

/**
 * Loads the user's modules in this thread, and reads the prompts. Resolves to them.
 *
 * Rejects as `runTraining` would: TrainerConfigError for what the configuration asks for and cannot
 * be had, for algorithms, policies and loggers that lack something, for folders and files that
 * cannot be written to; DatasetError; CheckpointError for a folder of checkpoints that cannot be
 * read; and why a reward
 * function, its module or its manager cannot be had.
 */
export async function rehearseRun(
  config: TrainerConfig,
  { baseDirectory = process.cwd() }: RehearseOptions = {},
): Promise<ConfiguredPrompts> {
  checkAlgorithms(config);
  checkLoggers(config);
  await checkOutputs(config, baseDirectory);
  const prompts = await openPrompts(config);
  const totalSteps = totalStepsOf(config, prompts);
  const { kind } = await planPolicies(config, { baseDirectory, totalSteps, ...prompts });
  await kind.rehearse?.();
  await withKeys(config, baseDirectory, () =>
    checkRewardLoop(rewardOptionsOf(config, baseDirectory)),
  );
  return prompts;
}

/** Errors of modules name the module; here they name the key that does, too. */
async function withKeys(
  { reward }: TrainerConfig,
  baseDirectory: string,
  check: () => Promise<void>,
): Promise<void> {
  try {
    await check();
  } catch (error) {
    const code = codeOf(error) ?? "";
    const message = messageOf(error);
    const path = isRecord(error) ? error["path"] : undefined;
    const { policy_tokenizer: policy } = reward;
    const isPolicys = policy !== null && path === resolve(baseDirectory, policy);
    const model = rewardModelsIn(reward).find(
      ({ model: { model_path: own } }) => own !== null && path === resolve(baseDirectory, own),
    );
    const ofModel = model === undefined ? keyOf[code] : `${model.at}.model_path`;
    const key = isPolicys ? "reward.policy_tokenizer" : ofModel;
    if (key === undefined) throw error;
    throw refusal(key, message, undefined, { cause: error });
  }
}

const keyOf: Readonly<Record<string, string>> = {
  UNKNOWN_REWARD_MANAGER: "reward.reward_manager.name",
  INVALID_MANAGER_OPTION: "reward.reward_kwargs",
  REWARD_MODULE_NOT_FOUND: "reward.custom_reward_function.path",
  REWARD_MODULE_IMPORT: "reward.custom_reward_function.path",
  REWARD_MODULE_LANGUAGE: "reward.custom_reward_function.path",
  REWARD_EXPORT_NOT_FOUND: "reward.custom_reward_function.name",
  REWARD_EXPORT_TYPE: "reward.custom_reward_function.name",
  REWARD_FUNCTION_SIGNATURE: "reward.custom_reward_function.name",
  REWARD_HOOK_NAME: "reward.reward_manager.name",
  TOKENIZER_FOLDER: "reward.reward_model.model_path",
};

/** Throws TrainerConfigError. */
export function checkLoggers({ trainer, rayling }: TrainerConfig): void {
  if (trainer.logger.includes("mlflow")) {
    try {
      mlflowAddress();
    } catch (cause) {
      throw refusal("trainer.logger", `has mlflow: ${messageOf(cause)}`, "mlflow", { cause });
    }
  }
  if (!trainer.logger.includes("prometheus") || rayling.metricsPort !== null) return;
  const problem =
    "is null, and trainer.logger has prometheus: nobody could ask for its metrics; 0 is any port that is free";
  throw refusal("rayling.metrics_port", problem, null);
}
