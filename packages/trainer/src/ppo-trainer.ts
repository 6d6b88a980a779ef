/**
 * verl's trainer: checks the settings, resumes, and runs the schedule with the parts of a step. It
 * closes nothing that it was given; a reward loop that it made itself it closes.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { createAdvantageRegistry } from "./algorithms/advantages/advantage-registry.ts";
import { createPolicyLossRegistry } from "./algorithms/losses/policy-loss-registry.ts";
import { TrainerInputError } from "./errors.ts";
import { answerOf } from "./policy/policy-answers.ts";
import { OutputFolders } from "./record/output-folders.ts";
import type { NamedFolders } from "./record/output-folders.ts";
import { StepReports } from "./record/step-reports.ts";
import { RewardRequests } from "./rollouts/reward-requests.ts";
import { schedules } from "./schedules/schedule.ts";
import type { Schedule } from "./schedules/schedule.ts";
import type { ScheduleName, TrainingOptions } from "./settings/program-options.ts";
import { needsReference } from "./settings/training-settings.ts";
import type { TrainingSettings } from "./settings/training-settings.ts";
import { Learner } from "./step/learner.ts";
import { rehearse } from "./step/rehearsal.ts";
import { TrainingCheckpoints } from "./step/training-checkpoints.ts";
import { Training } from "./step/training.ts";
import { silentTracker } from "./tracking/step-tracker.ts";
import type { StepTracker } from "./tracking/step-tracker.ts";
import { Validations } from "./validation/validations.ts";
import { workThenClose } from "./values/work-then-close.ts";

/** Result of a training. */
export interface TrainingReport {
  /** Steps that were trained, from the beginning of the run. */
  readonly steps: number;
  /**
   * Metrics of each step of this call, in their order. Before them, where there was a validation
   * before the first step: its metrics, with the number of the last finished step, or 0, as
   * `training/global_step`.
   */
  readonly metrics: readonly Readonly<Record<string, number>>[];
  /** Metrics of the last validation. */
  readonly validation: Readonly<Record<string, number>> | undefined;
  /**
   * Metrics of the validation with which later ones are compared, if there was one: that before the
   * first step of the run, also where this call resumed it. `initialValidationStep` says whether it
   * is another.
   */
  readonly initialValidation: Readonly<Record<string, number>> | undefined;
  /**
   * Step of `initialValidation`: 0 before training. Another where the run had no validation before
   * its first step, or other prompts, or resumed from a checkpoint of a version that kept none: it
   * is then that of the checkpoint.
   */
  readonly initialValidationStep: number | undefined;
  /** Warnings of validations that are below `initialValidation`, in their order. */
  readonly warnings: readonly string[];
}

/** Options of a `PPOTrainer`. */
export interface PPOTrainerOptions extends TrainingOptions {
  /** One of verl's schedules by name, or a function of your own. Default: sync. */
  readonly schedule?: ScheduleName | Schedule | undefined;
}

interface TrainerParts {
  readonly learner: Learner;
  readonly rewards: RewardRequests;
  readonly outputs: OutputFolders | undefined;
}

/** verl's trainer: generates, scores and updates until all steps are trained. */
export class PPOTrainer implements AsyncDisposable {
  /** Settings of the training, with their defaults. */
  readonly settings: TrainingSettings;
  readonly #options: PPOTrainerOptions;
  readonly #schedule: Schedule;
  readonly #learner: Learner;
  readonly #rewards: RewardRequests;
  readonly #tracker: StepTracker;
  /** The caller's, who has made and holds the folders already. */
  readonly #outputs: OutputFolders | undefined;
  /** Failures that `fit` has rejected with. */
  readonly #failures = new Set<unknown>();

  private constructor(
    options: PPOTrainerOptions,
    settings: TrainingSettings,
    { learner, rewards, outputs }: TrainerParts,
  ) {
    const { schedule } = options;
    this.#options = options;
    this.settings = settings;
    this.#schedule =
      typeof schedule === "function" ? schedule : schedules[present(settings.schedule, "schedule")];
    this.#learner = learner;
    this.#rewards = rewards;
    this.#tracker = options.tracking ?? silentTracker;
    this.#outputs = outputs;
  }

  /**
   * Rejects with TrainerInputError, which names the option, and as `RewardLoopManager.create`.
   *
   * @param outputs the folders of the training, where the caller has made them and holds them
   */
  static async create(options: PPOTrainerOptions, outputs?: OutputFolders): Promise<PPOTrainer> {
    // The table of options takes time to load, and only a training needs it.
    const { readTrainingSettings } = await import("./settings/read-settings.ts");
    const settings = readTrainingSettings(options);
    const { advantageRegistry = createAdvantageRegistry() } = options;
    const { policyLossRegistry = createPolicyLossRegistry() } = options;
    const algorithms = {
      advantages: advantageRegistry,
      policyLoss: policyLossRegistry.get(settings.actor.lossMode),
    };
    rehearse(settings, algorithms);
    const learner = new Learner(options.policy, options.critic, settings, algorithms);
    const rewards = await RewardRequests.open(options.reward, settings.rewardArrangement);
    return new PPOTrainer(options, settings, { learner, rewards, outputs });
  }

  /**
   * Trains all steps that are left. With a policy that does not train (`describe`) it only
   * validates, as with `run.valOnly`. At its end rewards that nobody waits for are given up, also
   * those of a loop that goes on.
   *
   * Rejects with what the policy, the critic or the reward loop failed with, with TrainerInputError
   * for a folder that cannot be written to, FolderBusyError for one in which another training
   * trains, JsonlError for rollouts that cannot be written,
   * CheckpointError, and TrainerStateError.
   */
  async fit(): Promise<TrainingReport> {
    try {
      if (this.#outputs !== undefined) return await this.#train();
      const outputs = await OutputFolders.open(this.#folders());
      return await workThenClose(outputs, () => this.#train());
    } catch (error) {
      this.#failures.add(error);
      throw error;
    } finally {
      this.#rewards.giveUp();
    }
  }

  async #train(): Promise<TrainingReport> {
    const { policy, referencePolicy, critic, prompts } = this.#options;
    const { now = (): number => performance.now() } = this.#options;
    const { settings } = this;
    const { run } = settings;
    const asked = policy.describe.remote();
    const policyInfo = await answerOf("the policy, asked what it is,", asked, run);
    const valOnly = run.valOnly || !policyInfo.trains;
    this.#checkValidation(valOnly);
    await this.#checkReference(valOnly);
    const tracker = this.#tracker;
    const rewards = this.#rewards;
    const learner = this.#learner;
    const { slots } = rewards;
    const { maxPromptLength } = prompts;
    const reports = new StepReports({ tracker, settings, slots, maxPromptLength });
    const actors = { policy, policyInfo, referencePolicy, critic };
    const parts = { ...actors, prompts, rewards, learner, settings, tracker, now, reports };
    const checkpoints = new TrainingCheckpoints(parts);
    const validations = new Validations({ ...parts, prompts: this.#options.validationPrompts });
    const start = await checkpoints.resume(!valOnly);
    const step = start.finishedSteps;
    validations.resume(start.firstValidation);
    // The run that saved this checkpoint may have ended before it reported its validation.
    const isOwed = step > 0 && validations.isDue(step);
    if (run.valBeforeTrain || valOnly || isOwed) await validations.validateFirst(step);
    // The clock of the first step begins here.
    const training = new Training({ ...parts, checkpoints, validations }, start);
    if (!valOnly && training.hasSteps) await this.#schedule(training);
    await validations.reportPending();
    const { latest: validation, first, warnings } = validations;
    const { metrics: initialValidation, step: initialValidationStep } = first ?? {};
    const { metrics } = reports;
    const initial = { initialValidation, initialValidationStep };
    return { steps: training.finishedSteps, metrics, validation, ...initial, warnings };
  }

  /** Closes the reward loop, if it was made here. */
  close(): Promise<void> {
    return this.#rewards.close();
  }

  /**
   * Closes it, for `await using`. A failure that `fit` has rejected with is not thrown again: both
   * would be one SuppressedError, whose message says nothing.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close().catch((error: unknown) => {
      if (!this.#failures.has(error)) throw error;
    });
  }

  #folders(): NamedFolders {
    const { checkpoints, rolloutDataDir, validationDataDir, run } = this.settings;
    const trains = !run.valOnly;
    return {
      "checkpoints.folder": trains && run.saveFreq > 0 ? checkpoints?.folder : undefined,
      rolloutDataDir: trains ? rolloutDataDir : undefined,
      validationDataDir,
    };
  }

  #checkValidation(valOnly: boolean): void {
    if (!valOnly || this.#options.validationPrompts !== undefined) return;
    const { valOnly: isAsked } = this.settings.run;
    const why = isAsked ? "run.valOnly asks for nothing else" : "the policy does not train";
    const message = `validationPrompts are missing, and ${why}: there is nothing to do`;
    throw new TrainerInputError("validationPrompts", message);
  }

  /** Refuses a reference policy that cannot score tokens, before anything is generated. */
  async #checkReference(valOnly: boolean): Promise<void> {
    const { referencePolicy } = this.#options;
    const { run, algorithm } = this.settings;
    if (valOnly || referencePolicy === undefined || !needsReference(this.settings)) return;
    const asked = "the reference policy, asked what it is,";
    const { name, scoresTokens } = await answerOf(asked, referencePolicy.describe.remote(), run);
    if (scoresTokens) return;
    const option = algorithm.useKlInReward ? "algorithm.useKlInReward" : "actor.useKlLoss";
    throw new TrainerInputError(
      "referencePolicy",
      `referencePolicy must be able to score tokens (logProbs), which ${option} needs; ${name} is not`,
    );
  }
}
