/**
 * verl's trainer: validates, trains step by step as the schedule says, keeps checkpoints, tells what goes on. What it is given it does not close, but for a reward loop that it made.
 */

import { createAdvantageRegistry } from "./algorithms/advantages/registry.ts";
import { createPolicyLossRegistry } from "./algorithms/losses/registry.ts";
import { schedules } from "./schedules/schedule.ts";
import type { Schedule } from "./schedules/schedule.ts";
import { resumeCheckpoint, saveCheckpoint } from "./checkpoint/checkpoint-folder.ts";
import { Learner } from "./fit/learner.ts";
import type { ScheduleName, StepTracker, TrainingOptions } from "./fit/options.ts";
import { TrainerInputError } from "./errors.ts";
import { dumpOf } from "./fit/dumps.ts";
import { rehearse } from "./fit/rehearsal.ts";
import { makeOutputFolders } from "./fit/output-folders.ts";
import { answerOf } from "./fit/policy-answers.ts";
import { RewardDesk } from "./fit/reward-desk.ts";
import type { TrainingSettings } from "./fit/settings.ts";
import { silentTracker } from "./fit/silent-tracker.ts";
import type { StepRecord } from "./fit/step-record.ts";
import { summaryOf, timesOf } from "./fit/step-summary.ts";
import { keptTraining, restoredTraining } from "./fit/training-state.ts";
import { Training } from "./fit/training.ts";
import { dumpRollouts } from "./tracking/rollout-dump.ts";
import type { TrainingStart } from "./fit/training.ts";
import { beginValidation } from "./fit/validation.ts";
import type { BegunValidation } from "./fit/validation.ts";
import { warn } from "@rayling/core/terminal";

export interface TrainingReport {
  /** Steps that were trained, from the beginning of the run. */
  readonly steps: number;
  /** Metrics of each step of this call, in their order. */
  readonly metrics: readonly Readonly<Record<string, number>>[];
  /** Of the last validation. */
  readonly validation: Readonly<Record<string, number>> | undefined;
}

export interface PPOTrainerOptions extends TrainingOptions {
  /** verl's, or one of your own. Default: sync. */
  readonly schedule?: ScheduleName | Schedule | undefined;
}

interface FinishedStep {
  readonly step: number;
  /** That were told so far. */
  readonly metrics: Record<string, number>;
}

export class PPOTrainer implements AsyncDisposable {
  readonly settings: TrainingSettings;
  readonly #options: PPOTrainerOptions;
  readonly #schedule: Schedule;
  readonly #learner: Learner;
  readonly #rewards: RewardDesk;
  readonly #tracker: StepTracker;
  #metrics: Record<string, number>[] = [];
  #validation: Record<string, number> | undefined;
  /** The step that was finished last, as long as its validation is judged. */
  #judged: (FinishedStep & { readonly begun: BegunValidation }) | undefined;

  private constructor(
    options: PPOTrainerOptions,
    settings: TrainingSettings,
    learner: Learner,
    rewards: RewardDesk,
  ) {
    const { schedule } = options;
    this.#options = options;
    this.settings = settings;
    this.#schedule =
      typeof schedule === "function" ? schedule : schedules[settings.schedule as ScheduleName];
    this.#learner = learner;
    this.#rewards = rewards;
    this.#tracker = options.tracking ?? silentTracker;
  }

  /** Rejects with TrainerInputError, which names the option, and as `RewardLoopManager.create`. */
  static async create(options: PPOTrainerOptions): Promise<PPOTrainer> {
    // The table of options takes time to load, and is needed by nobody who trains nothing.
    const { readTrainingSettings } = await import("./fit/settings.ts");
    const settings = readTrainingSettings(options);
    const { advantageRegistry = createAdvantageRegistry() } = options;
    const { policyLossRegistry = createPolicyLossRegistry() } = options;
    const algorithms = {
      advantages: advantageRegistry,
      policyLoss: policyLossRegistry.get(settings.actor.lossMode),
    };
    rehearse(settings, algorithms);
    const learner = new Learner(options.policy, options.critic, settings, algorithms);
    const rewards = await RewardDesk.open(options.reward, settings.rewardArrangement);
    return new PPOTrainer(options, settings, learner, rewards);
  }

  /**
   * Trains all steps that are left. With a policy that does not train (`describe`) it only validates, as with `run.valOnly`.
   *
   * Rejects with what the policy, the critic or the reward loop failed with, with TrainerInputError for a folder that cannot be written to, CheckpointError, and TrainerStateError.
   */
  async fit(): Promise<TrainingReport> {
    const { policy, referencePolicy, critic, prompts } = this.#options;
    const { run } = this.settings;
    this.#metrics = [];
    this.#validation = undefined;
    this.#judged = undefined;
    await this.#makeFolders();
    const policyInfo = await answerOf(
      "the policy, asked what it is,",
      policy.describe.remote(),
      run,
    );
    const valOnly = run.valOnly || !policyInfo.trains;
    if (valOnly && this.#options.validationPrompts === undefined) {
      const why = run.valOnly ? "run.valOnly asks for nothing else" : "the policy does not train";
      const message = `validationPrompts are missing, and ${why}: there is nothing to do`;
      throw new TrainerInputError("validationPrompts", message);
    }
    await this.#checkReference(valOnly);
    const start = await this.#resume();
    const step = start.finishedSteps;
    // The run that kept this checkpoint may have been ended while its validation was judged: then nobody told of it.
    const isOwed = step > 0 && this.#isTime(run.testFreq, step);
    if (run.valBeforeTrain || valOnly || isOwed) {
      const begun = await this.#beginValidation(step);
      if (begun !== undefined) this.#tracker.log(await this.#validated(step, begun), step);
    }
    // Its first step begins here.
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
        now: this.#options.now ?? (() => performance.now()),
        onStepEnd: (record) => this.#endStep(record, training),
      },
      start,
    );
    if (!valOnly && training.hasSteps) await this.#schedule(training);
    await this.#tellJudged();
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

  async #makeFolders(): Promise<void> {
    const { checkpoints, rolloutDataDir, validationDataDir, run } = this.settings;
    await makeOutputFolders({
      "checkpoints.folder": run.saveFreq > 0 ? checkpoints?.folder : undefined,
      rolloutDataDir,
      validationDataDir,
    });
  }

  /** Before anything is generated that it would have to score. */
  async #checkReference(valOnly: boolean): Promise<void> {
    const { referencePolicy } = this.#options;
    const { run, algorithm } = this.settings;
    if (valOnly || referencePolicy === undefined || !this.#learner.needsReference) return;
    const asked = "the reference policy, asked what it is,";
    const { name, scoresTokens } = await answerOf(asked, referencePolicy.describe.remote(), run);
    if (scoresTokens) return;
    const option = algorithm.useKlInReward ? "algorithm.useKlInReward" : "actor.useKlLoss";
    throw new TrainerInputError(
      "referencePolicy",
      `referencePolicy must be able to score tokens (logProbs), which ${option} needs; ${name} is not`,
    );
  }

  async #resume(): Promise<TrainingStart> {
    const { policy, critic, prompts } = this.#options;
    const { run, checkpoints } = this.settings;
    const resumed =
      checkpoints &&
      (await resumeCheckpoint({
        folder: checkpoints.folder,
        mode: checkpoints.resumeMode,
        path: checkpoints.resumePath ?? undefined,
      }));
    if (resumed === undefined) return { finishedSteps: 0, nextBatch: 0, outstanding: [] };
    for (const { message } of resumed.passedOver) {
      warn(`a checkpoint was passed over: ${message}`);
    }
    const { n } = this.settings.rollout;
    const { start, klCoef } = restoredTraining(resumed, prompts, this.#rewards, n);
    await answerOf("the policy, given its weights,", policy.setState.remote(resumed.policy), run);
    if (critic !== undefined && resumed.critic !== undefined) {
      await answerOf("the critic, given its weights,", critic.setState.remote(resumed.critic), run);
    } else if (critic !== undefined) {
      const message = `the checkpoint of step ${start.finishedSteps} is of a run without a critic: the critic begins with the weights that it has`;
      warn(message);
    }
    // A fixed one is what the configuration says, also where that was changed.
    if (this.settings.algorithm.klCtrl.type === "adaptive") this.#learner.klCoef = klCoef;
    return start;
  }

  async #save(step: number, training: Training): Promise<void> {
    const { policy, critic, prompts } = this.#options;
    const { run, checkpoints } = this.settings;
    if (checkpoints === undefined) return;
    const { folder, keep } = checkpoints;
    // A schedule may have begun the next batch: its prompts would be missing in both.
    await training.whenGenerated();
    const state = await answerOf("the policy, asked for its weights,", policy.state.remote(), run);
    const criticState =
      critic && (await answerOf("the critic, asked for its weights,", critic.state.remote(), run));
    const { klCoef } = this.#learner;
    const own = keptTraining(training, prompts, klCoef);
    const checkpoint = { globalStep: step, policy: state, critic: criticState, ...own };
    await saveCheckpoint(checkpoint, { folder, keep: keep ?? undefined });
  }

  async #endStep(record: StepRecord, training: Training): Promise<void> {
    const { step } = record;
    const { run, rolloutDataDir } = this.settings;
    if (rolloutDataDir !== null) {
      await record.clock.time("dump_rollout_generations", () =>
        dumpRollouts(rolloutDataDir, dumpOf(step, record.samples)),
      );
    }
    // Before the checkpoint, which the next run begins behind: nobody would tell of this step again, nor of the validation of the one before.
    const finished = this.#tell(record, training);
    if (this.#judged !== undefined) await record.clock.time("testing", () => this.#tellJudged());
    const more: Record<string, number> = {};
    if (this.#isTime(run.saveFreq, step)) {
      await record.clock.time("save_checkpoint", () => this.#save(step, training));
      Object.assign(more, timesOf(record, 1));
    }
    if (this.#isTime(run.testFreq, step)) {
      const begun = await record.clock.time("testing", () => this.#beginValidation(step));
      if (begun !== undefined) this.#judged = { ...finished, begun };
      if (!run.overlapValidation || step >= run.totalSteps) {
        await record.clock.time("testing", () => this.#tellJudged());
      }
    }
    const { testing } = record.clock.timings();
    this.#tellMore(finished, {
      ...more,
      ...(testing === undefined ? {} : { "timing_s/testing": testing }),
    });
  }

  /** For what is done after every so many steps, and after the last. */
  #isTime(every: number, step: number): boolean {
    return every > 0 && (step % every === 0 || step >= this.settings.run.totalSteps);
  }

  /** The step whose validation is still judged: waits for it. */
  async #tellJudged(): Promise<void> {
    if (this.#judged === undefined) return;
    const { begun, ...finished } = this.#judged;
    this.#judged = undefined;
    this.#tellMore(finished, await this.#validated(finished.step, begun));
  }

  #tell(record: StepRecord, training: Training): FinishedStep {
    const { step } = record;
    const metrics = summaryOf(record, {
      gpus: 1,
      slots: this.#rewards.slots,
      maxResponseLength: this.settings.rollout.maxResponseLength,
      maxPromptLength: this.#options.prompts.maxPromptLength,
      hasOwnLogProbs: training.hasOwnLogProbs,
    });
    this.#metrics.push(metrics);
    this.#tracker.samples(step, record.told);
    this.#tracker.log({ ...metrics }, step);
    return { step, metrics };
  }

  /** What became known of a step after it was told: its validation, and how long that and its checkpoint took. */
  #tellMore({ step, metrics }: FinishedStep, more: Readonly<Record<string, number>>): void {
    const news = Object.entries(more).filter(([name, value]) => metrics[name] !== value);
    if (news.length === 0) return;
    Object.assign(metrics, more);
    this.#tracker.log(Object.fromEntries(news), step);
  }

  /** Undefined where there is nothing to validate on. */
  async #beginValidation(step: number): Promise<BegunValidation | undefined> {
    const { validationPrompts, policy } = this.#options;
    if (validationPrompts === undefined) return undefined;
    const parts = { policy, prompts: validationPrompts, rewards: this.#rewards };
    return await beginValidation({ ...parts, settings: this.settings }, step);
  }

  async #validated(step: number, begun: BegunValidation): Promise<Record<string, number>> {
    const { validationDataDir } = this.settings;
    const { metrics, generations, rows } = await begun.result;
    if (validationDataDir !== null) await dumpRollouts(validationDataDir, dumpOf(step, rows));
    this.#tracker.generations(step, generations);
    this.#validation = metrics;
    return metrics;
  }
}
