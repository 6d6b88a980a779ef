/** A configuration as the options of a PPOTrainer: the same things by the names of the library. Pure. */

import { hasOwnReward, rewardLoopOptionsOf } from "@rayling/reward-loop/config";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { rewardBoundOf } from "../config/training-plan.ts";
import type { OptimConfig, TrainerConfig } from "../config/options/index.ts";
import type { PPOTrainerOptions } from "../ppo-trainer.ts";
import type { AlgorithmOptions, RolloutOptions } from "../fit/options.ts";
import { arithmeticReward } from "../tasks/arithmetic-reward.ts";

/** All but the actors and the data. */
export type TrainerSettingsOfConfig = Omit<
  PPOTrainerOptions,
  "policy" | "referencePolicy" | "critic" | "prompts" | "validationPrompts" | "tracking"
>;

/** @param baseDirectory where relative paths start */
export function trainerOptionsOf(
  config: TrainerConfig,
  baseDirectory: string,
): TrainerSettingsOfConfig {
  const { trainer, rayling, critic } = config;
  const { actor } = config.actorRolloutRef;
  const { policyLoss, gradClip: _gradClip, optim: _optim, lossScaleFactor, ...ownActor } = actor;
  const { droBeta, ...ownLoss } = policyLoss;
  const { staleness } = rayling;
  return {
    schedule: rayling.schedule,
    reward: rewardOptionsOf(config, baseDirectory),
    rewardArrangement: {
      batchBarrier: rayling.batchBarrier,
      validationInLine: rayling.validationInLine,
    },
    rollout: rolloutOptionsOf(config),
    algorithm: algorithmOptionsOf(config),
    actor: {
      ...ownActor,
      ...ownLoss,
      lossScaleFactor: lossScaleFactor ?? undefined,
      ...(droBeta === null ? {} : { droBeta }),
    },
    criticOptions: {
      cliprangeValue: critic.cliprangeValue,
      ppoMiniBatchSize: critic.ppoMiniBatchSize,
      ppoEpochs: critic.ppoEpochs,
      lossAggMode: critic.lossAggMode,
    },
    staleness: {
      limit: staleness.limit,
      numWarmupBatches: staleness.numWarmupBatches ?? undefined,
      strategy: staleness.strategy,
    },
    adaptiveMiniBatch: rayling.adaptiveMiniBatch,
    run: {
      totalTrainingSteps: trainer.totalTrainingSteps ?? undefined,
      totalEpochs: trainer.totalEpochs,
      testFreq: trainer.testFreq,
      overlapValidation: trainer.overlapValidation ?? undefined,
      valBeforeTrain: trainer.valBeforeTrain,
      valOnly: trainer.valOnly,
      saveFreq: trainer.saveFreq,
      criticWarmup: trainer.criticWarmup,
      seed: rayling.seed,
      policyTimeoutMs: trainer.policyTimeoutMs,
    },
    rolloutDataDir: trainer.rolloutDataDir ?? undefined,
    validationDataDir: trainer.validationDataDir ?? undefined,
    checkpoints: {
      folder: trainer.defaultLocalDir,
      keep: keptOf(config),
      resumeMode: trainer.resumeMode,
      resumePath: trainer.resumeFromPath ?? undefined,
    },
  };
}

/** verl's reward loop, with the recipe's bound over all of its workers. */
export function rewardOptionsOf(config: TrainerConfig, baseDirectory: string): RewardLoopOptions {
  const { reward, maxConcurrency, rayling } = config;
  const options = rewardLoopOptionsOf(reward);
  const isOwn = hasOwnReward(reward) || reward.reward_model.enable;
  const { workers = reward.num_workers } = options;
  const own = {
    ...options,
    baseDirectory,
    ...(rayling.task === "arithmetic" && !isOwn ? { reward: { path: arithmeticReward } } : {}),
  };
  if (options.rewards !== undefined || options.cascade !== undefined) {
    // Limits belong to one function: the workers of each have no more slots than that together.
    const slots = maxConcurrency === null ? undefined : Math.floor(maxConcurrency / workers);
    return slots === undefined ? own : { ...own, concurrency: Math.max(1, slots) };
  }
  return {
    ...own,
    ...(maxConcurrency === null ? {} : { concurrency: Math.ceil(maxConcurrency / workers) }),
    // Where the workers' slots are more than that together, they share what there is.
    ...(maxConcurrency === null || maxConcurrency % workers === 0
      ? {}
      : { limits: withBound(options.limits, Math.min(maxConcurrency, rewardBoundOf(reward))) }),
  };
}

function withBound(limits: RewardLoopOptions["limits"], most: number): RewardLoopOptions["limits"] {
  const adaptive = limits?.concurrency;
  return {
    ...limits,
    concurrency: typeof adaptive === "object" ? { ...adaptive, max: most } : most,
  };
}

function rolloutOptionsOf({ actorRolloutRef }: TrainerConfig): RolloutOptions {
  const { n, responseLength, temperature, topP, topK, valKwargs } = actorRolloutRef.rollout;
  const draws = valKwargs.doSample && valKwargs.temperature > 0;
  return {
    n,
    maxResponseLength: responseLength,
    temperature,
    topP,
    topK,
    validation: {
      n: valKwargs.n,
      doSample: draws,
      topP: valKwargs.topP,
      topK: valKwargs.topK,
      ...(draws ? { temperature: valKwargs.temperature } : {}),
    },
  };
}

function algorithmOptionsOf({ algorithm }: TrainerConfig): AlgorithmOptions {
  const { filterGroups, gdpoRewardKeys, gdpoRewardWeights, ...own } = algorithm;
  return {
    ...own,
    ...(gdpoRewardKeys === null ? {} : { gdpoRewardKeys }),
    ...(gdpoRewardWeights === null ? {} : { gdpoRewardWeights }),
    ...(filterGroups.enable
      ? {
          filterGroups: {
            metric: filterGroups.metric ?? undefined,
            maxNumGenBatches: filterGroups.maxNumGenBatches,
          },
        }
      : {}),
  };
}

/** One checkpoint holds both, and stays as long as one of them is to. Undefined: for ever. */
function keptOf({ trainer, critic, algorithm }: TrainerConfig): number | undefined {
  const { maxActorCkptToKeep: actor, maxCriticCkptToKeep: ofCritic } = trainer;
  const kept = needsCritic({ critic, algorithm }) ? [actor, ofCritic] : [actor];
  const most = Math.max(...kept.map((count) => count ?? Infinity));
  return most === Infinity ? undefined : most;
}

/** Whether the configuration has one. */
export function needsCritic({
  critic,
  algorithm,
}: Pick<TrainerConfig, "critic" | "algorithm">): boolean {
  return critic.enable ?? algorithm.advEstimator === "gae";
}

/** verl's names of the optimiser are the policy's, but for what the run knows. */
export function optimSettingsOf(
  optim: OptimConfig,
  totalSteps: number | undefined,
): Omit<OptimConfig, "totalTrainingSteps"> & { readonly totalTrainingSteps: number } {
  const { totalTrainingSteps } = optim;
  return {
    ...optim,
    totalTrainingSteps: totalTrainingSteps === -1 ? (totalSteps ?? -1) : totalTrainingSteps,
  };
}
