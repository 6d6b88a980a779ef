/** verl `trainer`, and what verl has no key for. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { loggerNames } from "../verl/logger-names.ts";
import { amount, count, flag, frequency, fromZero, kwargs, text } from "./kinds.ts";

const logger = z.enum(loggerNames);

/** A program has them as `run`, with the seed. */
export const run = {
  /**
   * How often all prompts are trained on; null: 30 times, or as often as total_training_steps
   * takes. (verl: 30, which also end a run that says its steps alone.)
   */
  totalEpochs: option(count.nullable(), null),
  /**
   * The number of steps; null: those of all epochs. Where both are given, the run ends with
   * whichever comes first.
   */
  totalTrainingSteps: option(count.nullable(), null),
  /** A checkpoint after every so many steps, and after the last; -1: none. */
  saveFreq: option(frequency, -1),
  /**
   * A validation after every so many steps, and after the last; -1: none. A resumed run also
   * validates if its checkpoint's step is one of these: the run before may have ended without a
   * report of it.
   */
  testFreq: option(frequency, -1),
  /**
   * Whether training goes on while a validation is scored, which is then reported with its own
   * step; null: with every schedule but sync. (Ours.)
   */
  overlapValidation: option(flag.nullable(), null),
  /**
   * Whether there is a validation before the first step, where there is something to validate on.
   */
  valBeforeTrain: option(flag, true),
  /** Whether the run ends after the validation before the first step. */
  valOnly: option(flag, false),
  /**
   * The step with which updates of the policy begin: those before it train the critic alone. 0 and
   * 1 train both in all steps; more needs a critic.
   */
  criticWarmup: option(fromZero, 0),
  /**
   * How long a policy or a critic may take for an answer or for each part of a generation. After
   * that the run fails: TrainerStateError, POLICY_TIMEOUT. (Ours.)
   */
  policyTimeoutMs: option(count.max(2 ** 31 - 1), 3_600_000),
};

export const seeds = {
  /** The seed of all random numbers. */
  seed: option(fromZero, 1),
};

/** A program has them as `checkpoints`, by shorter names. */
export const checkpoints = {
  /**
   * Whether a run resumes from the latest checkpoint of default_local_dir (auto), from that of
   * resume_from_path, or from none. (In a program that has such a path: resume_path.)
   */
  resumeMode: option(z.enum(["auto", "disable", "resume_path"]), "auto"),
  /** The folder global_step_N to resume from, with resume_mode=resume_path. */
  resumeFromPath: option(text.nullable(), null),
  /** The folder of the checkpoints. */
  defaultLocalDir: option(text, "checkpoints/${trainer.project_name}/${trainer.experiment_name}"),
  /**
   * How many checkpoints are kept; null: all. One with a critic stays while this or
   * trainer.max_critic_ckpt_to_keep keeps it.
   */
  maxActorCkptToKeep: option(count.nullable(), null),
};

/** Where rows are written. */
export const dumps = {
  /** The folder for every rollout, as {dir}/{step}.jsonl; null: none. */
  rolloutDataDir: option(text.nullable(), null),
  /** The folder for every answer of a validation, as {dir}/{step}.jsonl; null: none. */
  validationDataDir: option(text.nullable(), null),
};

export const trainer = z.strictObject({
  ...run,
  /** Names the folders of checkpoints and of the run's files. */
  projectName: option(text, "verl_examples"),
  /** Names the run below the project. */
  experimentName: option(text, "gsm8k"),
  /** The loggers that receive the run's metrics; one or a list. (verl: console and wandb.) */
  logger: option(z.union([logger.transform((one) => [one]), z.array(logger)]), ["console", "file"]),
  /** How many answers of each validation the loggers show. */
  logValGenerations: option(fromZero, 0),
  ...checkpoints,
  /** How many checkpoints with a critic are kept; null: as trainer.max_actor_ckpt_to_keep. */
  maxCriticCkptToKeep: option(count.nullable(), null),
  ...dumps,
});

const seconds = z
  .strictObject({
    gen: amount.optional(),
    oldLogProb: amount.optional(),
    ref: amount.optional(),
    values: amount.optional(),
    adv: amount.optional(),
    updateActor: amount.optional(),
    updateCritic: amount.optional(),
    testing: amount.optional(),
    saveCheckpoint: amount.optional(),
    /** Time of one sample: constant, or evenly spread from the first to the second. */
    reward: z.union([amount, z.tuple([amount, amount])]).optional(),
  })
  .readonly();

/** The order in which the parts of a step run. */
export const scheduling = {
  /**
   * How rewards, rollouts and updates overlap; one-step-pipeline is one-step-off-policy with
   * mini-batch-pipeline.
   */
  schedule: option(
    z.enum([
      "sync",
      "one-step-off-policy",
      "mini-batch-pipeline",
      "one-step-pipeline",
      "streaming",
    ]),
    "sync",
  ),
  staleness: z.strictObject({
    /** How many steps older rollouts may be than the weights that they train. With streaming. */
    limit: option(fromZero, 0),
    /** Batches whose rollouts are generated ahead; null: 1 where the limit allows it. */
    numWarmupBatches: option(fromZero.nullable(), null),
    /**
     * How groups that would be older are handled: waited for, or dropped and replaced by others.
     */
    strategy: option(z.enum(["wait", "drop"]), "wait"),
  }),
  /**
   * Whether the size of each mini-batch follows the exposed wait for the one before: half of it
   * after a wait longer than a tenth of the update, else twice as much, between a quarter of
   * ppo_mini_batch_size and all of it; groups that are scored by then come along. With the
   * schedules that train as rewards come.
   */
  adaptiveMiniBatch: option(flag, false),
};

/** How rewards are asked for. */
export const arrangement = {
  /**
   * Whether no reward begins before all of the batch before are done; to measure the cost of that.
   */
  batchBarrier: option(flag, false),
  /**
   * Whether validation waits in line with the batches of batch_barrier; to measure the cost of
   * that.
   */
  validationInLine: option(flag, false),
};

export const rayling = z.strictObject({
  /** tiny, openai, timed, or PATH[:name] of a class of yours. */
  policy: option(text, "tiny"),
  /** The settings of the policy, in snake_case or camelCase. */
  policyKwargs: option(kwargs, {}),
  /** PATH[:name] of a critic of yours; tiny and timed have one of their own. */
  critic: option(text.nullable(), null),
  /** A task that generates the prompts, in place of data.train_files and data.val_files. */
  task: option(z.enum(["arithmetic"]).nullable(), null),
  /** The settings of the task. */
  taskKwargs: option(kwargs, {}),
  /**
   * Supervised steps before the first step, on prompts with their ground truths, which must be
   * texts or numbers; with the policy tiny. A preset's value is for its task alone.
   */
  warmStartSteps: option(fromZero, 0),
  ...scheduling,
  ...arrangement,
  ...seeds,
  /**
   * The folder of the run's files; null: a folder for each run, by its time, in
   * runs/{project_name}/{experiment_name}, where `latest` leads to the newest.
   */
  directory: option(text.nullable(), null),
  /**
   * The port of the loopback on which rayling train serves its metrics for Prometheus
   * (trainer.logger prometheus); 0: any free port. RAYLING_METRICS_TOKEN is the token that must be
   * sent.
   */
  metricsPort: option(fromZero.max(65_535).nullable(), null),
  /**
   * Seconds that phases are expected to take, for --dry-run: gen, old_log_prob, ref, values, adv,
   * update_actor, update_critic, testing, save_checkpoint; and reward, of one sample: a number, or
   * [least, most].
   */
  expectedSeconds: option(seconds, {}),
});
