/** verl `trainer`, and what verl has no key for. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { loggerNames } from "../verl/spellings.ts";
import { amount, count, flag, frequency, fromZero, kwargs, text } from "./kinds.ts";

const logger = z.enum(loggerNames);

/** A program has them as `run`, with the seed. */
export const run = {
  /** How often all prompts are trained on. */
  totalEpochs: option(count, 30),
  /** null: those of all epochs. */
  totalTrainingSteps: option(count.nullable(), null),
  /** A checkpoint after every so many steps, and after the last; -1: none. */
  saveFreq: option(frequency, -1),
  /**
   * A validation after every so many steps, and after the last; -1: none. One is made, too, where a
   * run goes on behind such a step: whether the run before told of it is not known.
   */
  testFreq: option(frequency, -1),
  /**
   * Whether training goes on while a validation is judged, which is told with its step all the
   * same; null: but with the schedule sync. (Ours.)
   */
  overlapValidation: option(flag.nullable(), null),
  /**
   * Whether there is a validation before the first step, where there is something to validate on.
   */
  valBeforeTrain: option(flag, true),
  /** Whether the run ends after the validation before the first step. */
  valOnly: option(flag, false),
  /** Steps that train the critic alone. */
  criticWarmup: option(fromZero, 0),
  /**
   * How long a policy or a critic may take for an answer; to generate, for each part of it that
   * comes. Then the run ends: TrainerStateError, POLICY_TIMEOUT. (Ours.)
   */
  policyTimeoutMs: option(count.max(2 ** 31 - 1), 3_600_000),
};

export const seeds = {
  /** The seed of everything that is drawn at random. */
  seed: option(fromZero, 1),
};

/** A program has them as `checkpoints`, by shorter names. */
export const checkpoints = {
  /**
   * Whether the latest checkpoint of default_local_dir is gone on with, none, or that of
   * resume_from_path. (In a program that has such a path: resume_path.)
   */
  resumeMode: option(z.enum(["auto", "disable", "resume_path"]), "auto"),
  /** A folder global_step_N, with resume_mode=resume_path. */
  resumeFromPath: option(text.nullable(), null),
  /** Where checkpoints are. */
  defaultLocalDir: option(text, "checkpoints/${trainer.project_name}/${trainer.experiment_name}"),
  /** Checkpoints that stay; null: all. */
  maxActorCkptToKeep: option(count.nullable(), null),
};

/** Where rows are written. */
export const dumps = {
  /** Every rollout, as {dir}/{step}.jsonl; null: nowhere. */
  rolloutDataDir: option(text.nullable(), null),
  /** Every answer of a validation, as rollout_data_dir. */
  validationDataDir: option(text.nullable(), null),
};

export const trainer = z.strictObject({
  ...run,
  /** Names the folders of checkpoints and of the run's files. */
  projectName: option(text, "verl_examples"),
  /** Names the run below the project. */
  experimentName: option(text, "gsm8k"),
  /** Who is told of the run; one or a list. (verl: console and wandb.) */
  logger: option(z.union([logger.transform((one) => [one]), z.array(logger)]), ["console", "file"]),
  /** Answers of each validation that are shown. */
  logValGenerations: option(fromZero, 0),
  ...checkpoints,
  /** Checkpoints with a critic that stay; null: all. */
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
    /** Of one sample: always the same, or even from the first to the second. */
    reward: z.union([amount, z.tuple([amount, amount])]).optional(),
  })
  .readonly();

/** In which order the parts of a step run. */
export const scheduling = {
  /** How rewards, rollouts and updates overlap; one-step-pipeline has both of the two before it. */
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
    /** By how many steps rollouts may be older than the weights that they train. With streaming. */
    limit: option(fromZero, 0),
    /** Batches whose rollouts are generated ahead; null: 1 where the limit allows it. */
    numWarmupBatches: option(fromZero.nullable(), null),
    /** What becomes of groups that would be older: they are waited for, or others taken instead. */
    strategy: option(z.enum(["wait", "drop"]), "wait"),
  }),
  /**
   * Whether the size of each mini-batch follows the exposed wait for the one before: half where it
   * was waited for longer than a tenth of its update's time, else twice as much, between a quarter
   * of ppo_mini_batch_size and all of it; what else is done by then comes along. With the schedules
   * that train as rewards come.
   */
  adaptiveMiniBatch: option(flag, false),
};

/** How rewards are asked for. */
export const arrangement = {
  /** To measure what it costs: no reward before all of the batch before are done. */
  batchBarrier: option(flag, false),
  /** To measure what it costs: validation behind the barrier, in the same line. */
  validationInLine: option(flag, false),
};

export const rayling = z.strictObject({
  /** tiny, openai, timed, or PATH[:name] of a class of yours. */
  policy: option(text, "tiny"),
  /** The settings of the policy, in snake_case or camelCase. */
  policyKwargs: option(kwargs, {}),
  /** PATH[:name] of a critic of yours; tiny and timed have one of their own. */
  critic: option(text.nullable(), null),
  /** Makes prompts of its own, in the place of data.train_files and data.val_files. */
  task: option(z.enum(["arithmetic"]).nullable(), null),
  /** The settings of the task. */
  taskKwargs: option(kwargs, {}),
  /**
   * Supervised steps before the first: prompts with their ground truths. Of the policy tiny. A
   * preset's are of its task alone.
   */
  warmStartSteps: option(fromZero, 0),
  ...scheduling,
  ...arrangement,
  ...seeds,
  /**
   * Where the files of a run are; null: a folder for each run, by its time, in
   * runs/{project_name}/{experiment_name}, where `latest` leads to the newest.
   */
  directory: option(text.nullable(), null),
  /**
   * Where rayling train serves its metrics for Prometheus (trainer.logger prometheus), on the
   * loopback; 0: any port that is free. RAYLING_METRICS_TOKEN is what must be sent.
   */
  metricsPort: option(fromZero.max(65_535).nullable(), null),
  /**
   * Seconds that phases are expected to take, for --dry-run: gen, old_log_prob, ref, values, adv,
   * update_actor, update_critic, testing, save_checkpoint; and reward, of one sample: a number, or
   * [least, most].
   */
  expectedSeconds: option(seconds, {}),
});
