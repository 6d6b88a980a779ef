/** verl's configuration of a training: its keys, defaults and override grammar, the recipe's names, presets, and what is said of what is wrong. */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isTree, valueAt } from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  loadTrainerConfig,
  presetNames,
  printConfig,
  readTrainerConfig,
  TrainerConfigError,
  trainingPlanOf,
} from "../../src/config/index.ts";
import { engineDefaults } from "../../src/config/verl/engine-keys.ts";
import { otherNames } from "../../src/config/verl/spellings.ts";
import { notDoneKeys } from "../../src/config/verl/unsupported-keys.ts";
import { rehearseRun } from "../../src/run/rehearse-run.ts";
import { settings as quickstart } from "../../src/quickstart/settings.ts";
import { loggerNames } from "../../src/index.ts";

const refusal = (run: () => unknown): TrainerConfigError => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(TrainerConfigError);
    return error as TrainerConfigError;
  }
  throw new Error("it was not refused");
};

const withOverrides = (...overrides: string[]) => loadTrainerConfig({ overrides });

describe("without anything", () => {
  test("there are verl's defaults", () => {
    const config = loadTrainerConfig();
    expect(config).toMatchObject({
      algorithm: {
        advEstimator: "gae",
        gamma: 1,
        lam: 1,
        normAdvByStdInGrpo: true,
        useKlInReward: false,
        klPenalty: "kl",
        klCtrl: { type: "fixed", klCoef: 0.001, horizon: 10_000, targetKl: 0.1 },
      },
      actorRolloutRef: {
        actor: {
          ppoMiniBatchSize: 256,
          ppoEpochs: 1,
          clipRatio: 0.2,
          clipRatioC: 3,
          lossAggMode: "token-mean",
          entropyCoeff: 0,
          useKlLoss: false,
          klLossCoef: 0.001,
          klLossType: "low_var_kl",
          policyLoss: { lossMode: "vanilla", ppoKlCoef: 0.1 },
          optim: { lr: 1e-6, weightDecay: 0.01, betas: [0.9, 0.999] },
        },
        rollout: {
          n: 1,
          temperature: 1,
          responseLength: 512,
          valKwargs: { n: 1, doSample: null, temperature: 0 },
        },
      },
      critic: { ppoMiniBatchSize: 256, cliprangeValue: 0.5, optim: { lr: 1e-5 } },
      data: {
        trainFiles: ["~/data/rlhf/gsm8k/train.parquet"],
        trainBatchSize: 1024,
        maxPromptLength: 512,
        shuffle: true,
        seed: null,
        truncation: "error",
      },
      reward: { num_workers: 8, reward_manager: { name: "naive" } },
      maxConcurrency: null,
      trainer: {
        totalEpochs: null,
        totalTrainingSteps: null,
        saveFreq: -1,
        testFreq: -1,
        valBeforeTrain: true,
        resumeMode: "auto",
        defaultLocalDir: "checkpoints/verl_examples/gsm8k",
      },
      rayling: { policy: "tiny", schedule: "sync", seed: 1 },
      ignored: [],
    });
  });

  test("nobody changes them", () => {
    const config = loadTrainerConfig();
    expect(() => {
      (config.actorRolloutRef.actor.optim as { lr: number }).lr = 1;
    }).toThrow(TypeError);
  });
});

describe("overrides", () => {
  test("of verl's GRPO quickstart are taken as they stand", () => {
    const config = withOverrides(
      "algorithm.adv_estimator=grpo",
      "data.train_files=[a.parquet,b.parquet]",
      "data.val_files=c.jsonl",
      "data.train_batch_size=512",
      "data.max_response_length=1024",
      "actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct",
      "actor_rollout_ref.actor.optim.lr=1e-6",
      "actor_rollout_ref.model.use_remove_padding=True",
      "actor_rollout_ref.actor.ppo_mini_batch_size=128",
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
      "actor_rollout_ref.actor.use_kl_loss=True",
      "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
      "actor_rollout_ref.actor.entropy_coeff=0",
      "actor_rollout_ref.actor.fsdp_config.param_offload=False",
      "actor_rollout_ref.rollout.name=vllm",
      "+actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache=True",
      "actor_rollout_ref.rollout.n=5",
      "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=4",
      "algorithm.use_kl_in_reward=False",
      "trainer.critic_warmup=0",
      "trainer.logger=[console,tensorboard]",
      "trainer.n_gpus_per_node=8",
      "trainer.save_freq=20",
      "trainer.total_epochs=15",
    );
    expect(config).toMatchObject({
      data: { trainFiles: ["a.parquet", "b.parquet"], valFiles: ["c.jsonl"], trainBatchSize: 512 },
      actorRolloutRef: {
        actor: { ppoMiniBatchSize: 128, useKlLoss: true },
        rollout: { n: 5, responseLength: 1024 },
      },
      critic: { ppoMiniBatchSize: 128 },
      trainer: { saveFreq: 20, totalEpochs: 15, logger: ["console", "tensorboard"] },
    });
    expect(config.ignored).toEqual([
      "actor_rollout_ref.actor.fsdp_config.param_offload",
      "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
      "actor_rollout_ref.model.path",
      "actor_rollout_ref.model.use_remove_padding",
      "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
      "actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache",
      "actor_rollout_ref.rollout.name",
      "trainer.n_gpus_per_node",
    ]);
  });

  test("of rewards are verl's, at their places of today and of yesterday", () => {
    const { reward } = withOverrides(
      "custom_reward_function.path=./reward.ts",
      "reward.num_workers=4",
      "reward.reward_manager.name=dapo",
      "+reward.reward_kwargs.overlong_buffer_cfg.enable=True",
      "+reward.reward_kwargs.max_resp_len=${data.max_response_length}",
      "reward.reward_model.rollout.name=vllm",
    );
    expect(reward).toMatchObject({
      num_workers: 4,
      custom_reward_function: { path: "./reward.ts", name: "compute_score" },
      reward_manager: { name: "dapo" },
      reward_kwargs: { overlong_buffer_cfg: { enable: true }, max_resp_len: 512 },
    });
    const limits = ["+reward.max_rpm=600", "+reward.timeout=20"];
    const limited = withOverrides("reward.reward_manager.name=rate_limited", ...limits);
    expect(limited.reward).toMatchObject({ max_rpm: 600, timeout: 20 });
    expect(() => withOverrides("reward.reward_manager.name=dapo", ...limits)).toThrow(
      "reward.max_rpm: is 600, and only the manager rate_limited reads it, not dapo",
    );
  });

  test.each([
    [[], "sync"],
    [["+mini_batch_pipeline=True"], "mini-batch-pipeline"],
    [["+update_pipeline=True"], "mini-batch-pipeline"],
    [["+actor_rollout_ref.actor.update_pipeline=True"], "mini-batch-pipeline"],
    [["+mini_batch_pipeline=False"], "sync"],
    [["rayling.schedule=one-step-off-policy"], "one-step-off-policy"],
    [["rayling.schedule=one-step-off-policy", "+mini_batch_pipeline=True"], "one-step-pipeline"],
    [["rayling.schedule=streaming", "+mini_batch_pipeline=True"], "streaming"],
  ])("%j is the schedule %s", (overrides, schedule) => {
    const estimator = "algorithm.adv_estimator=grpo";
    expect(withOverrides(estimator, ...overrides).rayling.schedule).toBe(schedule);
  });

  test("of the recipe's slots, and of a policy's own settings, need no such key before", () => {
    expect(withOverrides("+max_concurrency=256").maxConcurrency).toBe(256);
    const { rayling } = withOverrides(
      "rayling.policy=./policy.ts:Mine",
      "rayling.policy_kwargs.contextLength=32",
      "+rayling.policy_kwargs.model_name='a b'",
    );
    expect(rayling.policyKwargs).toEqual({ contextLength: 32, modelName: "a b" });
  });

  test.each([
    [
      "data.train_batchsize=4",
      "data.train_batchsize: there is no such key; did you mean data.train_batch_size?",
    ],
    [
      "+data.train_batchsize=4",
      "data.train_batchsize: there is no such key; did you mean data.train_batch_size?",
    ],
    ["+nonsense=4", "nonsense: there is no such key"],
    [
      "+data.trainBatchSize=4",
      "data.trainBatchSize: there is no such key; did you mean data.train_batch_size?",
    ],
    ["reward.num_worker=4", "reward.num_worker: there is no such key"],
    ["mini_batch_pipeline=maybe", 'mini_batch_pipeline: is "maybe": must be true or false'],
    [
      "data.train_batch_size=four",
      'data.train_batch_size: is "four": must be a whole number of at least 1',
    ],
    [
      "data.train_batch_size=0",
      "data.train_batch_size: is 0: must be a whole number of at least 1",
    ],
    [
      "data.train_batch_size=1000",
      "ppo_mini_batch_size: is 256, which does not divide data.train_batch_size, 1000",
    ],
    [
      "data.train_batch_size=128",
      "ppo_mini_batch_size: is 256, more than data.train_batch_size, 128",
    ],
    ["critic.ppo_mini_batch_size=300", "critic.ppo_mini_batch_size: is 300, which does not divide"],
    ["data.truncation=up", 'data.truncation: is "up": must be one of error, left, right, middle'],
    ["data.train_max_samples=0", "data.train_max_samples: is 0: must be -1 or at least 1"],
    ["data.train_files=null", "data.train_files: are needed where there is no rayling.task"],
    [
      "trainer.logger=[console,wandbb,swanlab]",
      'trainer.logger: has "wandbb": there is no such logger',
    ],
    ["trainer.resume_mode=resume_path", "trainer.resume_from_path: is needed"],
    [
      "actor_rollout_ref.actor.optim.warmup_style=wsd",
      'optim.warmup_style: is "wsd", and can only be "constant" or "cosine" or "linear" here',
    ],
    ["actor_rollout_ref.rollout.do_sample=False", "must be true"],
    [
      "actor_rollout_ref.actor.optim.betas=[0.9,1]",
      "actor_rollout_ref.actor.optim.betas.1: is 1: must be a number of at least 0 and below 1",
    ],
    [
      "rayling.staleness.limit=2",
      /is 2, which needs rayling\.schedule streaming, which alone generates further ahead .*; it is sync; did you mean rayling\.schedule=streaming\?/,
    ],
    [
      "algorithm.adv_estimator=grop",
      /adv_estimator: is "grop": there is none of that name; there are gae, .*; did you mean grpo\?/,
    ],
    [
      "actor_rollout_ref.actor.policy_loss.loss_mode=vanila",
      /loss_mode: is "vanila": there is none of that name; there are .*; did you mean vanilla\?/,
    ],
    [
      "rayling.schedule=streaming",
      /^algorithm\.adv_estimator: is gae, which needs rayling\.schedule one-step-off-policy or sync/,
    ],
    [
      "+mini_batch_pipeline=True",
      /^algorithm\.adv_estimator: is gae, .*; it is mini-batch-pipeline; did you mean algorithm\.adv_estimator=grpo\?/,
    ],
    [
      "rayling.adaptive_mini_batch=True",
      /^rayling\.adaptive_mini_batch: is true, .*; did you mean rayling\.schedule=mini-batch-pipeline\?/,
    ],
    [
      "rayling.staleness.num_warmup_batches=1",
      "is 1, more than rayling.staleness.limit, 0; did you mean rayling.staleness.num_warmup_batches=0?",
    ],
    ["algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys: is null"],
    ["rayling.schedule=both", 'rayling.schedule: is "both": must be one of sync'],
    [
      "rayling.schedule=streeming",
      /^rayling\.schedule: is "streeming": .*; did you mean streaming\?$/,
    ],
    ["actor_rollout_ref.actor.loss_agg_mode=token_mean", "; did you mean token-mean?"],
    ["trainer.logger=consol", /^trainer\.logger: is "consol": .*, tensorboard, .*mean console\?$/],
    [
      "trainer.logger=[console,tensorbord]",
      /^trainer\.logger\.1: is "tensorbord": must be one of console.*; did you mean tensorboard\?$/,
    ],
    [
      "algorithm.rollout_correction.rollout_is_threshold=-1",
      "rollout_is_threshold: is -1: must be a number above 0, or a text, or null",
    ],
    ["data.train_files=${nothing}", "data.train_files: refers to nothing, which does not exist"],
    [
      "data.prompt_key=${data.prompt_key}",
      "has a circular reference: data.prompt_key -> data.prompt_key",
    ],
    ["trainer.project_name='a ${x'", "trainer.project_name: has a ${ without its }"],
    ["data", "data: has no value; write key=value"],
    [
      "reward.reward_kwargs.x=5",
      "reward.reward_kwargs.x: there is no such key; +reward.reward_kwargs.x=5 would add it",
    ],
    ["~trainer", "trainer: is a section, which cannot be removed as a whole"],
    [
      "+reward.retry.atempts=5",
      "reward.retry.atempts: there is no such key; did you mean reward.retry.attempts?",
    ],
    [
      "reward.limits.max_rmp=5",
      "reward.limits.max_rmp: there is no such key; did you mean reward.limits.max_rpm?",
    ],
    [
      "reward.retry.attempts=0",
      "reward.retry.attempts: is 0: must be a whole number of at least 1",
    ],
    ["reward.retry.classes=[timeot]", "reward.retry.classes.0: is"],
    [
      "reward.retry.attempts=5",
      "reward.retry.attempts: is 5, and reward.retry.enable is false; did you mean reward.retry.enable=true?",
    ],
    ["reward.hedge.budget=0.2", "did you mean reward.hedge.enable=true?"],
    ["reward.limits.breaker.probes=1", "did you mean reward.limits.breaker.enable=true?"],
    ["reward.limits.adaptive.max=9", "did you mean reward.limits.max_concurrent=auto?"],
    ["reward.limits.max_concurrent=many", 'reward.limits.max_concurrent: is "many": must be '],
    ["reward.spend.cap=5", "without reward.spend.prices nobody knows what is spent"],
    [
      "reward.spend.when_reached.path=a.ts",
      "there is no reward.spend.cap, which has to be reached",
    ],
    ["reward.on_failure.fail_above=2", "reward.on_failure.fail_above: is 2: must be a number"],
    [
      "trainer.policy_timeout_ms=0",
      "trainer.policy_timeout_ms: is 0: must be a whole number of at least 1",
    ],
    ["trainer.overlap_validation=perhaps", 'trainer.overlap_validation: is "perhaps"'],
  ])("%s is refused", (override, message) => {
    const error = refusal(() => withOverrides(override));
    if (typeof message === "string") expect(error.message).toContain(message);
    else expect(error.message).toMatch(message);
    expect(error).toMatchObject({ code: "TRAINER_CONFIG", key: expect.any(String) as string });
  });

  test("gdpo without the rewards that it is made of is refused", () => {
    const none = ["algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys=[]"];
    expect(refusal(() => withOverrides(...none))).toMatchObject({
      key: "algorithm.gdpo_reward_keys",
      message: expect.stringContaining("is empty") as string,
    });
  });

  test("steps that train the critic alone are refused where there is none", () => {
    const steps = (count: number): string[] => [
      "algorithm.adv_estimator=grpo",
      `trainer.critic_warmup=${count}`,
    ];
    expect(refusal(() => withOverrides(...steps(2)))).toMatchObject({
      key: "trainer.critic_warmup",
      message: expect.stringContaining(
        "is 2, and there is no critic (critic.enable) that the steps before step 2 could train",
      ) as string,
    });
    expect(withOverrides(...steps(1)).trainer.criticWarmup).toBe(1);
    const { trainer } = withOverrides(...steps(2), "critic.enable=true");
    expect(trainer.criticWarmup).toBe(2);
  });

  test("of an estimator that whitens over a batch are refused with the value and what would do", () => {
    const gdpo = ["algorithm.adv_estimator=gdpo", "algorithm.gdpo_reward_keys=[score]"];
    expect(refusal(() => withOverrides(...gdpo, "rayling.schedule=streaming"))).toMatchObject({
      key: "algorithm.adv_estimator",
      value: "gdpo",
      nearest: "rayling.schedule=one-step-off-policy",
    });
  });

  test.each([
    "sync",
    "one-step-off-policy",
    "mini-batch-pipeline",
    "one-step-pipeline",
    "streaming",
  ])("of remax and of filtered groups are taken with %s", (schedule) => {
    const { rayling, algorithm } = withOverrides(
      `rayling.schedule=${schedule}`,
      "algorithm.adv_estimator=remax",
      "algorithm.filter_groups.enable=True",
    );
    expect([rayling.schedule, algorithm.advEstimator]).toEqual([schedule, "remax"]);
  });

  test("that are taken away fall back to the default", () => {
    expect(withOverrides("data.seed=3", "~data.seed").data.seed).toBeNull();
  });
});

test("every logger that there is may be named", () => {
  const { logger } = withOverrides(`trainer.logger=[${loggerNames.join(",")}]`).trainer;
  expect(logger).toEqual(loggerNames);
});

describe("files", () => {
  let folder: string;
  const file = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "rayling-config-"));
    await file("mine.yaml", "defaults: [grpo]\ndata: { train_batch_size: 64 }\n");
    await file("over.yaml", "defaults: [_self_, mine]\ndata: { train_batch_size: 128, seed: 5 }\n");
    await file("grpo-of-mine.yml", "");
    await file(
      "recipe.yaml",
      "hydra:\n  searchpath: [file://verl/trainer/config]\ndefaults: [ppo_megatron_trainer, _self_]\nactor_rollout_ref: { actor: { megatron: { seed: 1 } } }\n",
    );
    await file("circle.yaml", "defaults: [circle]\n");
    await file("group.yaml", "defaults: [{ data: legacy }]\n");
    await file("broken.yaml", "data: [\n");
    await file("list.yaml", "[1]\n");
    await file("wrong.yaml", "data: { train_batchsize: 1 }\n");
    await file("legacy.yaml", "reward_model: { reward_manager: dapo }\n");
  });
  afterAll(() => rm(folder, { recursive: true }));
  const load = (name: string, ...overrides: string[]) =>
    loadTrainerConfig({ name, folder, overrides });

  test("stand on what they list, each over those before it", () => {
    expect(load("mine")).toMatchObject({
      algorithm: { advEstimator: "grpo" },
      data: { trainBatchSize: 64 },
    });
    expect(load("mine.yaml", "data.train_batch_size=96").data.trainBatchSize).toBe(96);
    expect(load("over").data).toMatchObject({ trainBatchSize: 64, seed: null });
    expect(load(join(folder, "mine.yaml")).data.trainBatchSize).toBe(64);
  });

  test("may choose among verl's engines, which are nothing here", async () => {
    await file(
      "engine.yaml",
      "defaults: [ppo_trainer, { model_engine: dp }, { optim@critic.optim: fsdp }, _self_]\ndata: { seed: 3 }\n",
    );
    expect(load("engine").data.seed).toBe(3);
  });

  test("of verl's recipes are read, and what they say of engines is told", () => {
    expect(load("recipe").ignored).toEqual(["actor_rollout_ref.actor.megatron.seed"]);
    expect(load("legacy", "reward.num_workers=3").reward).toMatchObject({
      reward_manager: { name: "dapo" },
      num_workers: 3,
    });
  });

  test.each([
    ["mime", /^mime: there is no such configuration; there are .*grpo.*; did you mean mine\?$/],
    ["./no/such.yaml", /no\/such\.yaml: cannot be read: there is no file/],
    ["circle", /circle\.yaml: has itself as a base/],
    ["group", /^data\/legacy: there is no such configuration/],
    ["broken", /broken\.yaml: is no YAML/],
    ["list", /list\.yaml: must hold keys/],
    [
      "wrong",
      /^data\.train_batchsize: there is no such key; did you mean data\.train_batch_size\?/,
    ],
  ])("%s is refused", (name, message) => {
    expect(refusal(() => load(name)).message).toMatch(message);
  });

  test("of a folder that is not there are refused", () => {
    const nowhere = (): unknown => loadTrainerConfig({ name: "grpo", folder: "/no/such" });
    expect(refusal(nowhere).message).toMatch(/^\/no\/such: cannot be read/);
  });
});

describe("the warm start of a preset", () => {
  const stepsWith = (...overrides: string[]): number =>
    loadTrainerConfig({ name: "grpo", overrides }).rayling.warmStartSteps;
  const own = ["rayling.task=null", "data.train_files=mine.jsonl"];

  test("is of its own task, and of data of the user's where the user says so", () => {
    expect(stepsWith()).toBe(425);
    expect(stepsWith("rayling.warm_start_steps=3")).toBe(3);
    expect(stepsWith(...own)).toBe(0);
    expect(stepsWith(...own, "rayling.warm_start_steps=7")).toBe(7);
  });

  test("is said by a file of the user's that stands on one", async () => {
    const folder = await mkdtemp(join(tmpdir(), "rayling-warm-"));
    try {
      const text =
        "defaults: [grpo, _self_]\nrayling: { task: null, warm_start_steps: 9 }\ndata: { train_files: a.jsonl }\n";
      await writeFile(join(folder, "said.yaml"), text);
      await writeFile(join(folder, "unsaid.yaml"), text.replace(", warm_start_steps: 9", ""));
      const steps = (name: string) => loadTrainerConfig({ name, folder }).rayling.warmStartSteps;
      expect([steps("said"), steps("unsaid")]).toEqual([9, 0]);
    } finally {
      await rm(folder, { recursive: true });
    }
  });
});

test("the epochs of a preset end no run that the user gives its steps; those of the user do", () => {
  const epochsWith = (...overrides: string[]) =>
    loadTrainerConfig({ name: "grpo", overrides }).trainer.totalEpochs;
  const steps = "trainer.total_training_steps=500";
  expect([epochsWith(), epochsWith(steps)]).toEqual([1, null]);
  expect(epochsWith(steps, "trainer.total_epochs=1")).toBe(1);
});

describe("presets", () => {
  test.each(presetNames())("%s is a configuration", (name) => {
    expect(loadTrainerConfig({ name }).ignored).toEqual([]);
  });

  test("have each schedule once, with the quickstart otherwise", () => {
    const names = ["sync", "one-step-off", "pipeline", "both", "streaming"];
    const configs = names.map((name) => loadTrainerConfig({ name }));
    expect(configs.map(({ rayling }) => rayling.schedule)).toEqual([
      "sync",
      "one-step-off-policy",
      "mini-batch-pipeline",
      "one-step-pipeline",
      "streaming",
    ]);
    const { rayling, ...grpo } = loadTrainerConfig({ name: "grpo" });
    for (const config of configs) {
      const { experimentName, defaultLocalDir } = config.trainer;
      const trainer = { ...grpo.trainer, experimentName, defaultLocalDir };
      const { schedule } = config.rayling;
      const reward = { ...grpo.reward, experiment_name: experimentName };
      // Those that train as rewards come cut a batch into parts; the critic follows the actor.
      const { actor } = config.actorRolloutRef;
      const { ppoMiniBatchSize } = actor;
      expect(config).toEqual({
        ...grpo,
        actorRolloutRef: { ...grpo.actorRolloutRef, actor },
        critic: { ...grpo.critic, ppoMiniBatchSize },
        trainer,
        reward,
        rayling: { ...rayling, schedule },
      });
      const parts = ["sync", "one-step-off-policy"].includes(schedule) ? 1 : 4;
      expect(config.data.trainBatchSize / ppoMiniBatchSize).toBe(parts);
    }
  });

  test("of GRPO train the quickstart's task in batches of its size", () => {
    const config = loadTrainerConfig({ name: "grpo" });
    const { actor, rollout } = config.actorRolloutRef;
    const { optim } = actor;
    expect({
      trainBatchSize: config.data.trainBatchSize,
      n: rollout.n,
      ppoMiniBatchSize: actor.ppoMiniBatchSize,
      minLrRatio: optim.minLrRatio,
      bypassMode: config.algorithm.rolloutCorrection.bypassMode,
      slots: trainingPlanOf(config, { train: undefined, validation: undefined }).rewardSlots,
    }).toEqual({
      trainBatchSize: quickstart.trainBatchSize,
      n: quickstart.n,
      ppoMiniBatchSize: quickstart.ppoMiniBatchSize,
      minLrRatio: quickstart.minLrRatio,
      bypassMode: quickstart.rolloutCorrection.bypassMode,
      slots: quickstart.slots,
    });
    expect(optim.lrSchedulerType).toBe("linear");
    expect(rollout.promptLength + rollout.responseLength).toBe(12);
    expect(config.rayling.warmStartSteps % quickstart.warmSteps.each).toBe(0);
  });

  test.each(["grpo", "ppo"])("of %s train as many epochs as they are told", (name) => {
    const overrides = ["trainer.total_epochs=2", "algorithm.adv_estimator=grpo"];
    const config = loadTrainerConfig({ name, overrides });
    expect(trainingPlanOf(config, { train: 320, validation: 0 }).totalSteps).toBe(20);
  });

  test("know verl's word for the first one", () => {
    expect(loadTrainerConfig({ name: "ppo_trainer" })).toEqual(loadTrainerConfig());
    expect(loadTrainerConfig({ name: "ppo.yaml" }).algorithm.advEstimator).toBe("gae");
  });
});

test("files that a task would leave unread are refused, with what reads them", () => {
  const own = ["data.train_files=mine.jsonl", "rayling.task=null", "data.val_files=null"];
  for (const [key, value] of [
    ["data.train_files", "mine.jsonl"],
    ["data.val_files", "null"],
  ] as const) {
    const refused = refusal(() =>
      loadTrainerConfig({ name: "grpo", overrides: [`${key}=${value}`] }),
    );
    expect(refused).toMatchObject({ key, nearest: "rayling.task=null" });
    expect(refused.message).toContain("and rayling.task arithmetic makes its own prompts");
  }
  expect(loadTrainerConfig({ name: "grpo", overrides: own }).data.trainFiles).toEqual([
    "mine.jsonl",
  ]);
});

describe("what does not change the training is told, never refused", () => {
  test.each([
    [
      "trainer.logger=[console,clearml]",
      "trainer.logger: clearml is not here; the run is logged to console, file",
    ],
    ["trainer.logger=[console,tracking]", "trainer.logger: tracking is verl's old name of wandb"],
    ["trainer.logger=swanlab", "trainer.logger: swanlab is not here; the run is logged to file"],
    [
      "trainer.resume_from_path=checkpoints/",
      'trainer.resume_from_path is "checkpoints/", and nothing reads it: trainer.resume_mode is "auto"',
    ],
    [
      "actor_rollout_ref.rollout.val_kwargs.n=4",
      "actor_rollout_ref.rollout.val_kwargs.n is 4, and without a temperature all of them are the same",
    ],
    [
      "actor_rollout_ref.rollout.val_kwargs={n: 4, do_sample: false}",
      "actor_rollout_ref.rollout.val_kwargs.n is 4, and without do_sample all of them are the same",
    ],
    [
      "actor_rollout_ref.rollout.val_kwargs={do_sample: false, temperature: 0.6}",
      "actor_rollout_ref.rollout.val_kwargs.do_sample is false: answers are the likeliest tokens, where verl's agent loop draws them at the temperature, 0.6",
    ],
    [
      "actor_rollout_ref.actor.policy_loss.loss_mode=sapo",
      'actor_rollout_ref.actor.policy_loss.loss_mode is sapo, whose loss is always put together by seq-mean-token-mean (as verl\'s): loss_agg_mode "token-mean" is for entropy and divergence',
    ],
  ])("%s", (override, note) => {
    expect(withOverrides(override).notes).toEqual([note]);
  });

  test("of gspo with another loss_agg_mode, which verl 0.9.1 follows", () => {
    const notesOn = (mode: string): readonly string[] =>
      withOverrides(
        "actor_rollout_ref.actor.policy_loss.loss_mode=gspo",
        `actor_rollout_ref.actor.loss_agg_mode=${mode}`,
      ).notes;
    expect(notesOn("token-sum")).toEqual([
      'actor_rollout_ref.actor.policy_loss.loss_mode is gspo, whose loss is always put together by seq-mean-token-mean (verl 0.9.1\'s gspo follows loss_agg_mode): loss_agg_mode "token-sum" is for entropy and divergence',
    ]);
    expect(notesOn("seq-mean-token-mean")).toEqual([]);
  });

  test("of both divergences at once", () => {
    const both = ["algorithm.use_kl_in_reward", "actor_rollout_ref.actor.use_kl_loss"];
    const { notes } = withOverrides(...both.map((key) => `${key}=True`));
    expect(notes).toEqual([`${both.join(" and ")} are both true: the divergence counts twice`]);
  });

  test.each([
    ["trainer.test_freq=false", { trainer: { testFreq: -1 } }],
    ["trainer.save_freq=null", { trainer: { saveFreq: -1 } }],
    ["trainer.experiment_name=0125", { trainer: { experimentName: "0125" } }],
    ["trainer.project_name=17", { trainer: { projectName: "17" } }],
    ["critic.optim.lr_warmup_steps=null", { critic: { optim: { lrWarmupSteps: -1 } } }],
    ["+data.train_batch_size=512", { data: { trainBatchSize: 512 } }],
  ])("%s is what it means", (override, config) => {
    expect(withOverrides(override)).toMatchObject({ ...config, notes: [] });
  });

  test.each([
    ["model_engine=megatron", "model_engine"],
    ["optim@critic.optim=megatron", "optim"],
    [
      "+actor_rollout_ref.actor.fsdp_config.of_next_year=1",
      "actor_rollout_ref.actor.fsdp_config.of_next_year",
    ],
    [
      "actor_rollout_ref.rollout.agent.num_workers=8",
      "actor_rollout_ref.rollout.agent.num_workers",
    ],
    ["ray_init.num_cpus=4", "ray_init.num_cpus"],
  ])("%s is told", (override, key) => {
    expect(withOverrides(override).ignored).toEqual([key]);
  });

  test("a worker's key of verl 0.7 says nothing", () => {
    const { reward } = withOverrides(
      "reward_model.micro_batch_size_per_gpu=4",
      "+reward_model.model.fsdp_config.x=1",
    );
    expect(reward).toEqual(loadTrainerConfig().reward);
  });

  test("an old key wins over one at the new place, as in verl", () => {
    const overrides = ["reward.num_workers=2", "reward_model.num_workers=4"];
    expect(withOverrides(...overrides).reward.num_workers).toBe(4);
    expect(
      loadTrainerConfig({ name: "grpo", overrides: ["reward_model.num_workers=4"] }).reward
        .num_workers,
    ).toBe(4);
  });

  test("the engine has its own default of the schedule, which anybody may change", () => {
    const schedule = (...overrides: string[]) => {
      const { actorRolloutRef, critic } = withOverrides(...overrides);
      return [actorRolloutRef.actor.optim.lrSchedulerType, critic.optim.lrSchedulerType];
    };
    expect(schedule("model_engine=veomni")).toEqual(["cosine", "cosine"]);
    expect(schedule("model_engine=veomni", "critic.optim.lr_scheduler_type=linear")).toEqual([
      "cosine",
      "linear",
    ]);
    expect(schedule("model_engine=megatron")).toEqual(["constant", "constant"]);
    expect(schedule("model_engine=torchtitan", "model_engine=dp")).toEqual([
      "constant",
      "constant",
    ]);
    expect(schedule("model_engine=veomni", "optim@critic.optim=torchtitan")).toEqual([
      "cosine",
      "linear",
    ]);
    expect(loadTrainerConfig({ name: "ppo_veomni_trainer" }).critic.optim.lrSchedulerType).toBe(
      "cosine",
    );
  });
});

test("torchtitan's names of the decay are read, and its schedule is linear unless they say another", () => {
  const optimOf = (...overrides: string[]) =>
    withOverrides("model_engine=torchtitan", ...overrides).actorRolloutRef.actor.optim;
  const place = "actor_rollout_ref.actor.optim";
  expect(optimOf(`${place}.min_lr_factor=0.1`, `${place}.eps=1e-5`)).toMatchObject({
    lrSchedulerType: "linear",
    minLrRatio: 0.1,
    eps: 1e-5,
  });
  expect(optimOf(`${place}.decay_type=cosine`).lrSchedulerType).toBe("cosine");
  expect(withOverrides(`${place}.min_lr_ratio=null`)).toMatchObject({
    actorRolloutRef: { actor: { optim: { minLrRatio: 0 } } },
  });
});

test.each([
  ["model_engine=mindspeed", "model_engine", undefined],
  ["model_engine=megatorn", "model_engine", "megatron"],
  ["optim@critic.optim=automodel", "optim@critic.optim", undefined],
])("%s is refused: its defaults would be missing", (override, key, nearest) => {
  expect(refusal(() => withOverrides(override))).toMatchObject({ key, nearest });
});

const below = (prefix: string, names: string): string[] =>
  names.split(" ").map((name) => prefix + name);

/** Why keys of verl's engines, or all below one, may be ignored: they change nothing here. */
const reasons: Readonly<Record<string, readonly string[]>> = {
  "read by a schedule that is refused": below("optim.lr_wsd_decay_", "steps style"),
  "read by an optimiser that is refused": below(
    "optim.muon_",
    "coefficient_type extra_scale_factor fp32_matmul_prec match_adamw_update_rms momentum nesterov num_ns_steps scalar_optimizer scale_mode split_qkv tp_mode",
  ),
  "where and how exactly an engine keeps the optimiser's state": below(
    "optim.",
    "exp_avg_dtype exp_avg_sq_dtype main_grads_dtype use_checkpoint_opt_param_scheduler use_layer_wise_distributed_optimizer use_precision_aware_optimizer",
  ),
  "read where lora_rank is above 0, which is refused": below(
    "model.",
    "lora lora_alpha target_modules exclude_modules",
  ),
  "the weights, which the policy loads by itself, and how an engine computes with them": below(
    "model.",
    "enable_activation_offload enable_gradient_checkpointing external_lib fsdp_config fused_kernel_options hf_config_path mtp override_config path tiled_mlp tokenizer_path trust_remote_code use_fused_kernels use_liger use_remove_padding use_shm",
  ),
  "a part of a key that is refused": below("data.", "custom_cls.name datagen.name"),
  "how verl's loader works and what it hands on; pictures are refused": below(
    "data.",
    "dataloader_num_workers filter_overlong_prompts_workers image_patch_size mm_processor_kwargs return_full_prompt return_multi_modal_inputs return_raw_chat return_raw_input_ids tokenizer trust_remote_code use_shm",
  ),
  "the order and the parts of a validation, whose mean stays": below(
    "data.",
    "val_batch_size validation_shuffle",
  ),
  "machines, processes, and what verl does with checkpoints elsewhere": below(
    "trainer.",
    "balance_batch checkpoint_callback_class default_hdfs_dir device del_local_ckpt_after_load esi_redundant_time n_gpus_per_node nnodes ray_wait_register_center_timeout use_legacy_worker_impl use_v1",
  ),
  "read by a trainer_mode or a sampler that is refused": below(
    "trainer.v1.",
    "colocate_async separate_async sync sampler.custom_sampler.name sampler.max_off_policy_strategy sampler.max_off_policy_threshold sampler.sampler_kwargs",
  ),
};

test("a key of verl's optimisers, models, data or trainer is read, refused, or ignored for a reason", () => {
  const leaves = (tree: ConfigTree, prefix: string): string[] =>
    Object.entries(tree).flatMap(([key, value]) =>
      isTree(value) && Object.keys(value).length > 0
        ? leaves(value, `${prefix}${key}.`)
        : [prefix + key],
    );
  const given = new Set(Object.values(reasons).flat());
  const used = new Set<string>();
  const places = ["actor_rollout_ref.actor.optim", "actor_rollout_ref.model", "data", "trainer"];
  const unsaid = [...places, "critic.optim", "critic.model"].flatMap((place) => {
    const section = valueAt(engineDefaults(), place.split("."));
    expect(isTree(section), place).toBe(true);
    const known = (key: string): boolean => notDoneKeys.includes(key) || otherNames.includes(key);
    return leaves(section as ConfigTree, `${place}.`).filter((key) => {
      if (known(key)) return false;
      const short = key.replace(/^(actor_rollout_ref\.actor|actor_rollout_ref|critic)\./, "");
      const reason = [...given].find((one) => short === one || short.startsWith(`${one}.`));
      if (reason !== undefined) used.add(reason);
      return reason === undefined;
    });
  });
  expect(unsaid).toEqual([]);
  expect([...given].filter((one) => !used.has(one))).toEqual([]);
});

describe("what changes the training and is not done", () => {
  test.each([
    ["critic.model.lora_rank=32", "can only be 0"],
    ["critic.model.lora.rank=32", "can only be 0"],
    ["actor_rollout_ref.model.custom_chat_template=mine", "knows its own template"],
    ["actor_rollout_ref.model.mtp.enable_train=True", "prediction of several tokens"],
    ["data.tool_config_path=tools.yaml", "a rollout calls no tools"],
    ["trainer.v1.sampler.custom_sampler.path=my.py", "in the order of the schedule"],
    ["trainer.v1.sampler.sync_refill_failed_groups=True", "no other one is generated"],
    ["actor_rollout_ref.actor.optim.lr_min=1e-7", "min_lr_ratio says what is left"],
    ["actor_rollout_ref.actor.optim.lr_start=1e-7", "begins with 0"],
    ["critic.optim.lr_decay_ratio=0.5", "where the decay ends"],
    ["critic.optim.name=SGD", "can only be AdamW"],
    ["critic.optim.optimizer_impl=bitsandbytes.optim", "can only be torch.optim"],
    ["critic.optim.weight_decay_incr_style=cosine", "the weight decay stays"],
    ["actor_rollout_ref.model.lora_rank=32", "can only be 0"],
    ["actor_rollout_ref.model.lora.rank=32", "can only be 0"],
    ["actor_rollout_ref.rollout.multi_turn.enable=True", "a rollout has one turn"],
    ["actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent", "a rollout has one turn"],
    ["+data.apply_chat_template_kwargs.enable_thinking=False", "the policy knows its own template"],
    ["data.custom_cls.path=mine.py", "is given to PPOTrainer.create as prompts"],
    ["data.sampler.class_name=Mine", "prompts come in their order, or shuffled"],
    ["data.gen_batch_size=64", "batches are generated as they are trained"],
    ["distillation.enabled=True", "there is no distillation"],
    ["actor_rollout_ref.actor.shuffle=True", "trained on in their order"],
    ["+critic.optim.min_lr=1e-6", "min_lr_ratio says what is left"],
    [
      "actor_rollout_ref.actor.optim.lr_decay_steps=100",
      "total_training_steps says where the decay ends",
    ],
    ["actor_rollout_ref.actor.optim.optimizer=SGD", "can only be AdamW"],
    [
      "+actor_rollout_ref.actor.optim.override_optimizer_config.eps=1e-5",
      "the settings beside it and no others",
    ],
  ])("%s is read, printed and read again, and refused by a rehearsal", async (override, hint) => {
    const config = withOverrides(override);
    expect(config.notDone).toHaveLength(1);
    const printed = parse(printConfig(config)) as Record<string, unknown>;
    expect(readTrainerConfig(printed).notDone).toEqual(config.notDone);
    const key = config.notDone[0]?.key;
    await expect(rehearseRun(config)).rejects.toMatchObject({
      code: "TRAINER_CONFIG",
      key,
      message: expect.stringContaining(hint) as string,
    });
  });

  test("what says that it is not wanted is nothing", () => {
    const config = withOverrides(
      "actor_rollout_ref.model.lora_rank=0",
      "actor_rollout_ref.rollout.multi_turn.enable=False",
      "data.custom_cls.path=null",
      "+actor_rollout_ref.actor.optim.override_optimizer_config.optimizer_cpu_offload=True",
      "actor_rollout_ref.actor.optim.optimizer=AdamW",
    );
    expect(config.notDone).toEqual([]);
  });
});

test("all keys of verl's own files are read at once, and told", () => {
  const { ignored, notDone } = readTrainerConfig(engineDefaults());
  expect(ignored.length).toBeGreaterThan(800);
  expect(notDone).toEqual([]);
});

test("rewards take the policy's tokenizer, and its GPUs, from where verl has them; else these are told as not used", () => {
  const model = fileURLToPath(new URL("../../../../test/fixtures/tiny-model", import.meta.url));
  const own = [`actor_rollout_ref.model.path=${model}`, "trainer.n_gpus_per_node=4"];
  const alone = withOverrides(...own);
  expect(alone.reward).toMatchObject({ policy_tokenizer: model });
  expect(alone.ignored).toEqual(["trainer.n_gpus_per_node"]);
  const shared = withOverrides(
    ...own,
    "reward_model.enable=true",
    "reward_model.model.path=${actor_rollout_ref.model.path}",
  );
  expect(shared.reward.reward_model).toMatchObject({ model_path: model, shared_gpus: 4 });
  expect(shared.ignored).toEqual([]);
});

describe("references into keys that are not used", () => {
  test.each([
    ["actor_rollout_ref.model.path=/models/mine", "/models/mine"],
    ["trainer.nnodes=1", "~/models/deepseek-llm-7b-chat"],
  ])("resolve to what stands there, or to verl's default (%s)", (override, path) => {
    const config = withOverrides(
      override,
      "reward.reward_model.enable=True",
      "reward.reward_model.rollout.name=vllm",
      "reward.reward_model.model_path=${actor_rollout_ref.model.path}",
    );
    expect(config.reward.reward_model.model_path).toBe(path);
  });
});

describe("references", () => {
  const read = (tree: Record<string, unknown>) => readTrainerConfig(tree).trainer;

  test("are values, or texts in a text", () => {
    expect(read({ trainer: { experiment_name: "x-${data.train_batch_size}" } })).toMatchObject({
      experimentName: "x-1024",
      defaultLocalDir: "checkpoints/verl_examples/x-1024",
    });
    expect(read({ trainer: { total_epochs: "${oc.select:nothing.there,7}" } }).totalEpochs).toBe(7);
    expect(
      read({ trainer: { total_epochs: "${oc.select:data.max_prompt_length,7}" } }).totalEpochs,
    ).toBe(512);
  });

  test("may have others for a default, and braces", () => {
    const trainer = (experiment_name: string): unknown =>
      read({ trainer: { project_name: "maths", experiment_name } }).experimentName;
    expect(trainer("${oc.env:RAYLING_NOT_SET,${trainer.project_name}}-1")).toBe("maths-1");
    expect(trainer("x ${oc.select:no.${trainer.project_name},{a: 1}}")).toBe("x {'a': 1}");
  });

  test("may be of the environment", () => {
    const trainer = { project_name: "${oc.env:RAYLING_NOT_SET,standard}" };
    expect(read({ trainer }).projectName).toBe("standard");
    const missing = { trainer: { project_name: "${oc.env:RAYLING_NOT_SET}" } };
    expect(refusal(() => read(missing)).message).toBe(
      "trainer.project_name: refers to the environment variable RAYLING_NOT_SET, which is not set",
    );
    const other = { trainer: { project_name: "${oc.encode:1}" } };
    expect(refusal(() => read(other)).message).toContain("there is no resolver oc.encode");
  });
});

test("what is printed is read as the same", () => {
  for (const name of presetNames()) {
    const overrides = [
      "+max_concurrency=7",
      "rayling.policy_kwargs={some_thing: {a: 1}}",
      "reward.limits={endpoint: judge, max_rpm: 60, max_concurrent: auto, shares: {validation: 2}}",
      "reward.retry={enable: true, attempts: 5, classes: [timeout]}",
      "reward.hedge={enable: true, quantile: 0.9}",
      "reward.on_failure={fallback: 0, again: true}",
      "reward.spend={prices: {per_call: 1}, cap: 5, when_reached: {path: cheap.ts}}",
      "reward.total_timeout_ms=1000",
      "trainer.overlap_validation=true",
    ];
    const config = loadTrainerConfig({ name, overrides });
    const printed = parse(printConfig(config)) as Record<string, unknown>;
    expect(readTrainerConfig(printed)).toEqual(config);
    expect(printed).toMatchObject({ actor_rollout_ref: { actor: { ppo_epochs: 1 } } });
  }
});

test("the learning rate's schedule has one name, whichever of verl's it was given by; what verl says of an optimiser by default is accepted", () => {
  const overrides = [
    "actor_rollout_ref.actor.optim.warmup_style=cosine",
    "+actor_rollout_ref.actor.optim.override_optimizer_config={}",
    "actor_rollout_ref.actor.optim.optimizer=AdamW",
    "actor_rollout_ref.actor.optim.zero_indexed_step=True",
    "critic.optim.lr_decay_style=linear",
    "critic.optim.warmup_style=null",
    "critic.optim.lr_decay_steps=null",
    "critic.optim.min_lr=0.0",
    "critic.optim.optimizer=adam",
  ];
  const { actorRolloutRef, critic } = loadTrainerConfig({ overrides });
  expect(actorRolloutRef.actor.optim.lrSchedulerType).toBe("cosine");
  expect(critic.optim.lrSchedulerType).toBe("linear");
});
