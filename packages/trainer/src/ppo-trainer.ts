/**
 * verl's trainer: validates, trains step by step as the schedule says, keeps checkpoints, tells what goes on. What it is given it does not close, but for a reward loop that it made.
 */

import * as ray from "@rayling/core";
import { createAdvantageRegistry } from "./algorithms/advantages/registry.ts";
import { createPolicyLossRegistry } from "./algorithms/losses/registry.ts";
import { schedules } from "./schedules/schedule.ts";
import type { Schedule } from "./schedules/schedule.ts";
import { resumeCheckpoint, saveCheckpoint } from "./checkpoint/checkpoint-folder.ts";
import type { ResumeOptions } from "./checkpoint/checkpoint-folder.ts";
import { Learner } from "./fit/learner.ts";
import type {
  CheckpointOptions,
  ScheduleName,
  StepTracker,
  TrainingOptions,
} from "./fit/options.ts";
import { RewardDesk } from "./fit/reward-desk.ts";
import { readTrainingSettings } from "./fit/settings.ts";
import type { TrainingSettings } from "./fit/settings.ts";
import type { StepRecord } from "./fit/step-record.ts";
import { summaryOf } from "./fit/step-summary.ts";
import { keptTraining, restoredTraining } from "./fit/training-state.ts";
import { Training } from "./fit/training.ts";
import type { TrainingStart } from "./fit/training.ts";
import { validate } from "./fit/validation.ts";
import type { ValidationResult } from "./fit/validation.ts";

export interface TrainingReport {
  /** Steps that were trained, from the beginning of the run. */
  readonly steps: number;
  /** Metrics of each step of this call, in their order. */
  readonly metrics: readonly Readonly<Record<string, number>>[];
  /** Of the last validation. */
  readonly validation: Readonly<Record<string, number>> | undefined;
}

export interface PPOTrainerOptions extends TrainingOptions {
  /** Default "sync". */
  readonly schedule?: ScheduleName | Schedule | undefined;
}

export class PPOTrainer implements AsyncDisposable {
  readonly settings: TrainingSettings;
  readonly #options: PPOTrainerOptions;
  readonly #schedule: Schedule;
  readonly #learner: Learner;
  readonly #rewards: RewardDesk;
  readonly #tracker: StepTracker;
  readonly #metrics: Record<string, number>[] = [];
  #validation: Record<string, number> | undefined;

  private constructor(
    options: PPOTrainerOptions,
    settings: TrainingSettings,
    learner: Learner,
    rewards: RewardDesk,
  ) {
    const { schedule = "sync" } = options;
    this.#options = options;
    this.settings = settings;
    this.#schedule = typeof schedule === "string" ? schedules[schedule] : schedule;
    this.#learner = learner;
    this.#rewards = rewards;
    this.#tracker = options.tracking ?? silent;
  }

  /** Rejects with TrainerInputError, which names the option, and as `RewardLoopManager.create`. */
  static async create(options: PPOTrainerOptions): Promise<PPOTrainer> {
    const { schedule = "sync" } = options;
    const settings = readTrainingSettings(
      options,
      typeof schedule === "string" ? schedule : undefined,
    );
    const { advantageRegistry = createAdvantageRegistry() } = options;
    const { policyLossRegistry = createPolicyLossRegistry() } = options;
    advantageRegistry.get(settings.algorithm.advEstimator);
    const learner = new Learner(options.policy, options.critic, settings, {
      advantages: advantageRegistry,
      policyLoss: policyLossRegistry.get(settings.actor.lossMode),
    });
    const rewards = await RewardDesk.open(options.reward, options.rewardArrangement ?? {});
    return new PPOTrainer(options, settings, learner, rewards);
  }

  /**
   * Trains all steps that are left.
   *
   * Rejects with what the policy, the critic or the reward loop failed with, and with TrainerStateError.
   */
  async fit(): Promise<TrainingReport> {
    const { policy, referencePolicy, critic, prompts } = this.#options;
    const { run } = this.settings;
    const policyInfo = await ray.get(policy.describe.remote());
    const start = await this.#resume();
    const training = new Training(
      {
        policy,
        policyInfo,
        referencePolicy,
        critic,
        prompts,
        rewards: this.#rewards,
        learner: this.#learner,
        settings: this.settings,
        tracker: this.#tracker,
        onStepEnd: (record) => this.#endStep(record, training),
      },
      start,
    );
    if (run.valBeforeTrain || run.valOnly) {
      this.#tracker.log(await this.#validate(start.finishedSteps), start.finishedSteps);
    }
    if (!run.valOnly && training.hasSteps) await this.#schedule(training);
    return {
      steps: training.finishedSteps,
      metrics: this.#metrics,
      validation: this.#validation,
    };
  }

  /** Closes the reward loop, if it was made here. */
  close(): Promise<void> {
    return this.#rewards.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #resume(): Promise<TrainingStart> {
    const { checkpoints, policy, critic, prompts } = this.#options;
    const resumed = checkpoints && (await resumeCheckpoint(resumeOptionsOf(checkpoints)));
    if (resumed === undefined) return { finishedSteps: 0, nextBatch: 0, outstanding: [] };
    for (const { message } of resumed.passedOver) {
      process.emitWarning(`a checkpoint was passed over: ${message}`, "RaylingWarning");
    }
    await ray.get(policy.setState.remote(resumed.policy));
    if (critic !== undefined && resumed.critic !== undefined) {
      await ray.get(critic.setState.remote(resumed.critic));
    }
    const { start, klCoef } = restoredTraining(resumed, prompts, this.#rewards);
    this.#learner.klCoef = klCoef;
    return start;
  }

  async #save(step: number, training: Training): Promise<void> {
    const { checkpoints, policy, critic, prompts } = this.#options;
    if (checkpoints === undefined) return;
    const { folder, keep } = checkpoints;
    const state = await ray.get(policy.state.remote());
    const criticState = critic && (await ray.get(critic.state.remote()));
    const { klCoef } = this.#learner;
    const own = keptTraining(training, prompts, klCoef);
    const checkpoint = { globalStep: step, policy: state, critic: criticState, ...own };
    await saveCheckpoint(checkpoint, { folder, keep });
  }

  async #endStep(record: StepRecord, training: Training): Promise<void> {
    const { step } = record;
    const { run } = this.settings;
    const isLast = step >= run.totalSteps;
    const isTime = (every: number): boolean => every > 0 && (isLast || step % every === 0);
    if (isTime(run.saveFreq)) {
      await record.clock.time("save_checkpoint", () => this.#save(step, training));
    }
    let validation: Record<string, number> = {};
    if (isTime(run.testFreq) && this.#options.validationPrompts !== undefined) {
      validation = await record.clock.time("testing", () => this.#validate(step));
    }
    const metrics = {
      ...summaryOf(record, { gpus: 1, slots: this.#rewards.loop.slots }),
      ...validation,
    };
    this.#metrics.push(metrics);
    this.#tracker.samples(step, record.told);
    this.#tracker.log(metrics, step);
  }

  async #validate(step: number): Promise<Record<string, number>> {
    const { validationPrompts, policy } = this.#options;
    if (validationPrompts === undefined) return {};
    const parts = { policy, prompts: validationPrompts, rewards: this.#rewards };
    const result: ValidationResult = await validate({ ...parts, settings: this.settings }, step);
    this.#tracker.generations(step, result.generations);
    this.#validation = result.metrics;
    return result.metrics;
  }
}

function resumeOptionsOf(options: CheckpointOptions): ResumeOptions {
  const { folder, resumeMode, resumePath } = options;
  return { folder, mode: resumeMode, path: resumePath };
}

const silent: StepTracker = {
  log: () => undefined,
  phase: () => undefined,
  samples: () => undefined,
  generations: () => undefined,
  progress: () => undefined,
};
