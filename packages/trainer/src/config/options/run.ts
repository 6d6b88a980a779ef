/** verl `trainer`, and what verl has no key for. */

import { option } from "@rayling/config-tree/options";
import { z } from "zod";
import { loggerNames } from "../verl/spellings.ts";
import { amount, count, flag, frequency, fromZero, kwargs, text } from "./kinds.ts";

const logger = z.enum(loggerNames);

export const run = z.strictObject({
  totalEpochs: option(count, 30, "How often all prompts are trained on."),
  totalTrainingSteps: option(count.nullable(), null, "null: those of all epochs."),
  projectName: option(
    text,
    "verl_examples",
    "Names the folders of checkpoints and of the run's files.",
  ),
  experimentName: option(text, "gsm8k", "Names the run below the project."),
  logger: option(
    z.union([logger.transform((one) => [one]), z.array(logger)]),
    ["console", "file"],
    "Who is told of the run; one or a list. (verl: console and wandb.)",
  ),
  logValGenerations: option(fromZero, 0, "Answers of each validation that are shown."),
  saveFreq: option(
    frequency,
    -1,
    "A checkpoint after every so many steps, and after the last; -1: none.",
  ),
  testFreq: option(
    frequency,
    -1,
    "A validation after every so many steps, and after the last; -1: none.",
  ),
  overlapValidation: option(
    flag.nullable(),
    null,
    "Whether training goes on while a validation is judged; null: but with the schedule sync. (Ours.)",
  ),
  valBeforeTrain: option(flag, true, "Whether there is a validation before the first step."),
  valOnly: option(flag, false, "Whether the run ends after the validation before the first step."),
  criticWarmup: option(fromZero, 0, "Steps that train the critic alone."),
  resumeMode: option(
    z.enum(["auto", "disable", "resume_path"]),
    "auto",
    "Whether the latest checkpoint of default_local_dir is gone on with, none, or that of resume_from_path.",
  ),
  resumeFromPath: option(
    text.nullable(),
    null,
    "A folder global_step_N, with resume_mode=resume_path.",
  ),
  defaultLocalDir: option(
    text,
    "checkpoints/${trainer.project_name}/${trainer.experiment_name}",
    "Where checkpoints are.",
  ),
  rolloutDataDir: option(
    text.nullable(),
    null,
    "Every rollout, as {dir}/{step}.jsonl; null: nowhere.",
  ),
  validationDataDir: option(
    text.nullable(),
    null,
    "Every answer of a validation, as rollout_data_dir.",
  ),
  maxActorCkptToKeep: option(count.nullable(), null, "Checkpoints that stay; null: all."),
  maxCriticCkptToKeep: option(
    count.nullable(),
    null,
    "Checkpoints with a critic that stay; null: all.",
  ),
  policyTimeoutMs: option(
    count.max(2 ** 31 - 1),
    3_600_000,
    "How long a policy or a critic may take for an answer; to generate, for each part of it that comes. (Ours.)",
  ),
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

export const rayling = z.strictObject({
  policy: option(text, "tiny", "tiny, openai, timed, or PATH[:name] of a class of yours."),
  policyKwargs: option(kwargs, {}, "The settings of the policy, in snake_case or camelCase."),
  critic: option(
    text.nullable(),
    null,
    "PATH[:name] of a critic of yours; tiny and timed have one of their own.",
  ),
  task: option(
    z.enum(["arithmetic"]).nullable(),
    null,
    "Makes prompts of its own, in the place of data.train_files and data.val_files.",
  ),
  taskKwargs: option(kwargs, {}, "The settings of the task."),
  warmStartSteps: option(
    fromZero,
    0,
    "Supervised steps before the first: prompts with their ground truths. Of the policy tiny. A preset's are of its task alone.",
  ),
  schedule: option(
    z.enum([
      "sync",
      "one-step-off-policy",
      "mini-batch-pipeline",
      "one-step-pipeline",
      "streaming",
    ]),
    "sync",
    "How rewards, rollouts and updates overlap; one-step-pipeline has both of the two before it.",
  ),
  staleness: z.strictObject({
    limit: option(
      fromZero,
      0,
      "By how many steps rollouts may be older than the weights that they train. With streaming.",
    ),
    numWarmupBatches: option(
      fromZero.nullable(),
      null,
      "Batches whose rollouts are generated ahead; null: 1 where the limit allows it.",
    ),
    strategy: option(
      z.enum(["wait", "drop"]),
      "wait",
      "What becomes of groups that would be older: they are waited for, or others taken instead.",
    ),
  }),
  adaptiveMiniBatch: option(
    flag,
    false,
    "Whether the size of each mini-batch follows the exposed wait for the one before: half where it was waited for longer than a tenth of its update's time, else twice as much, between a quarter of ppo_mini_batch_size and all of it; what else is done by then comes along. With the schedules that train as rewards come.",
  ),
  batchBarrier: option(
    flag,
    false,
    "To measure what it costs: no reward before all of the batch before are done.",
  ),
  validationInLine: option(
    flag,
    false,
    "To measure what it costs: validation behind the barrier, in the same line.",
  ),
  directory: option(
    text.nullable(),
    null,
    "Where the files of a run are; null: runs/{project_name}/{experiment_name}.",
  ),
  seed: option(fromZero.max(2 ** 31 - 1), 1, "The seed of everything that is drawn at random."),
  metricsPort: option(
    fromZero.max(65_535).nullable(),
    null,
    "Where rayling train serves its metrics for Prometheus (trainer.logger prometheus), on the loopback; 0: any port that is free. RAYLING_METRICS_TOKEN is what must be sent.",
  ),
  expectedSeconds: option(
    seconds,
    {},
    "Seconds that phases are expected to take, for --dry-run: gen, old_log_prob, ref, values, adv, update_actor, update_critic, testing, save_checkpoint; and reward, of one sample: a number, or [least, most].",
  ),
});
