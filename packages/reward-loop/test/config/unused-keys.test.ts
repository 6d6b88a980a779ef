/** Keys that would do nothing are refused, by the name that they were given, with why and with what to set instead; verl's defaults never are. */

import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readRewardConfig, rewardLoopOptionsOf } from "../../src/config/reward-config.ts";
import { defaultRewardConfig } from "../../src/config/reward-keys.ts";
import { refusal } from "./refusal.ts";

describe("a key that would do nothing", () => {
  const own = { custom_reward_function: { path: "mine.ts" } };
  const managed = (name: string): object => ({ reward_manager: { name } });
  const model = {
    enable: true,
    model_path: "m",
    servers: ["a:1"],
    rollout: { name: "vllm", free_cache_engine: false, temperature: 0.5 },
  };
  const ofClass = { source: "importlib", name: "Mine", module: { path: "mine.ts" } };
  const capped = { prices: { per_call: 1 }, cap: 5 };
  const service = { url: "http://sandbox/run_code" };

  test.each([
    [{ max_rpm: 60 }, "max_rpm", "is 60, and only the manager rate_limited", "limits.max_rpm=60"],
    [{ ...managed("dapo"), timeout: 20 }, "timeout", "not dapo", "attempt_timeout_ms=20000"],
    [
      { reward_manager: ofClass, max_concurrent: 4 },
      "max_concurrent",
      "not Mine",
      "limits.max_concurrent=4",
    ],
    [{ ...managed("gdpo"), max_tpm: 9 }, "max_tpm", "not gdpo", "limits.max_tpm=9"],
    [
      { cascade: { rule: own }, estimated_tokens_per_request: 9 },
      "estimated_tokens_per_request",
      "not naive",
      "cascade.rule.limits.estimated_tokens_per_request=9",
    ],
    [
      { reward_manager: { module: { path: "mine.ts" } } },
      "reward_manager.module.path",
      "source is register",
      "reward_manager.source=importlib",
    ],
    [
      { reward_manager: { ...ofClass, module: { path: "mine.ts", name: "Other" } } },
      "reward_manager.module.name",
      "nothing reads it",
      "reward_manager.name=Other",
    ],
    [
      { custom_reward_function: { reward_kwargs: { worth: 1 } } },
      "custom_reward_function.reward_kwargs.worth",
      "there is no reward.custom_reward_function.path",
    ],
    [
      { rewards: { a: { custom_reward_function: { name: "mine" }, cascade: { rule: own } } } },
      "rewards.a.custom_reward_function.name",
      "there is no reward.rewards.a.custom_reward_function.path",
    ],
    [
      { cascade: { rule: { custom_reward_function: { name: "mine" } } } },
      "cascade.rule.custom_reward_function.name",
      "there is no reward.cascade.rule.custom_reward_function.path",
    ],
    [{ spend: { warn_at: 0.5 } }, "spend.warn_at", "no reward.spend.cap, which it is a share of"],
    [
      { rewards: { a: { ...own, spend: { prices: capped.prices, warn_at: 0.5 } } } },
      "rewards.a.spend.warn_at",
      "no reward.rewards.a.spend.cap",
    ],
    [
      { spend: { ...capped, when_reached: { prices: { per_call: 1 } } } },
      "spend.when_reached.prices.per_call",
      "no reward.spend.when_reached.path",
    ],
    [
      { spend: { ...capped, when_reached: { name: "cheap" } } },
      "spend.when_reached.name",
      "no reward.spend.when_reached.path",
    ],
    [
      { spend: { ...capped, when_reached: { reward_kwargs: { worth: 1 } } } },
      "spend.when_reached.reward_kwargs.worth",
      "no reward.spend.when_reached.path",
    ],
    [{ spent_before: "log.jsonl" }, "spent_before", "without reward.spend.prices nobody counts"],
    [{ limits: { minute_ms: 9 } }, "limits.minute_ms", "neither reward.limits.max_rpm nor"],
    [
      { cascade: { rule: own, judge: { ...own, pass_on: "invalid" } } },
      "cascade.judge.pass_on",
      "no stage comes after this one",
    ],
    [
      { rewards: { a: { cascade: { rule: { ...own, pass_on: "invalid" } } } } },
      "rewards.a.cascade.rule.pass_on",
      "no stage comes after this one",
    ],
    [{ reward_kwargs: { any: 1 } }, "reward_kwargs.any", "the manager naive does not read it"],
    [{ ...managed("remote"), reward_kwargs: { any: 1 } }, "reward_kwargs.any", "remote does not"],
    [
      { reward_kwargs: { max_resp_len: 9 } },
      "reward_kwargs.max_resp_len",
      "naive does not",
      "reward_manager.name=dapo",
    ],
    [
      { ...managed("rate_limited"), reward_kwargs: { max_rpm: 9 } },
      "reward_kwargs.max_rpm",
      "rate_limited does not",
      "max_rpm",
    ],
    [
      { reward_kwargs: { max_rpm: 9 } },
      "reward_kwargs.max_rpm",
      "naive does not",
      "limits.max_rpm",
    ],
    [
      { ...managed("dapo"), reward_kwargs: { overlong_bufer_cfg: { enable: true } } },
      "reward_kwargs.overlong_bufer_cfg",
      "dapo does not",
      "reward_kwargs.overlong_buffer_cfg",
    ],
    [
      { ...managed("dapo"), reward_kwargs: { overlong_buffer_cfg: { lne: 9 } } },
      "reward_kwargs.overlong_buffer_cfg.lne",
      "dapo does not",
      "reward_kwargs.overlong_buffer_cfg.len",
    ],
    [
      { ...managed("dapo"), reward_kwargs: { max_resp_len: 9 } },
      "reward_kwargs.max_resp_len",
      "no reward.reward_kwargs.overlong_buffer_cfg",
    ],
    [
      { experiment_name: "x" },
      "experiment_name",
      "only the manager gdpo",
      "reward_manager.name=gdpo",
    ],
    [{ ...own, sandbox_fusion: service }, "sandbox_fusion.url", "is not told of it"],
    [
      { cascade: { rule: own }, sandbox_fusion: service },
      "sandbox_fusion.url",
      "is not told of it",
    ],
    [
      { reward_model: model, sandbox_fusion: service },
      "sandbox_fusion.url",
      "a reward model scores by itself",
    ],
    [
      { sandbox_fusion: { max_concurrent: 8 } },
      "sandbox_fusion.max_concurrent",
      "no reward.sandbox_fusion.url",
    ],
    [
      { reward_model: { servers: ["a:1"] } },
      "reward_model.servers",
      "enable is false",
      "reward_model.enable=true",
    ],
    [
      { reward_model: { allowed_paths: ["/a"] } },
      "reward_model.allowed_paths",
      "enable is false",
      "reward_model.enable=true",
    ],
    [
      { reward_model: { router: { attempts: 2 } } },
      "reward_model.router.attempts",
      "enable is false",
      "reward_model.enable=true",
    ],
    [
      { reward_model: { model_path: "m" } },
      "reward_model.model_path",
      "enable is false",
      "reward_model.enable=true",
    ],
    [
      { reward_model: { rollout: { dtype: "half" } } },
      "reward_model.rollout.dtype",
      "enable is false",
      "reward_model.enable=true",
    ],
    [
      { reward_model: { ...model, rollout: { name: "vllm", max_model_len: 9 } } },
      "reward_model.rollout.max_model_len",
      "run already: start them with it",
    ],
    [
      { reward_model: model, ...managed("dapo") },
      "reward_manager.name",
      "no manager is asked where a reward model scores by itself",
    ],
  ] as [object, string, string, string?][])(
    "%j is refused by its name",
    (reward, key, why, instead) => {
      const error = refusal(() => readRewardConfig({ reward }));
      expect(error).toMatchObject({
        code: "REWARD_CONFIG",
        key: `reward.${key}`,
        nearest: instead && `reward.${instead}`,
      });
      expect(error.message).toContain(why);
    },
  );

  test.each([
    [{ reward_model: { max_rpm: 60 } }, "reward_model.max_rpm"],
    [{ reward_model: { reward_manager: "dapo", timeout: 20 } }, "reward_model.timeout"],
    [{ reward_model: { max_concurrent: 4 } }, "reward_model.max_concurrent"],
    [{ reward_model: { model: { path: "m" } } }, "reward_model.model.path"],
    [{ reward_model: { reward_kwargs: { any: 1 } } }, "reward_model.reward_kwargs.any"],
    [{ custom_reward_function: { name: "mine" } }, "custom_reward_function.name"],
    [{ sandbox_fusion: { memory_limit_mb: 9 } }, "sandbox_fusion.memory_limit_mb"],
  ])("%j is refused by its name of verl 0.7", (tree, key) => {
    expect(refusal(() => readRewardConfig(tree)).key).toBe(key);
  });

  test("is none where somebody reads it", () => {
    const limits = { max_rpm: 60, max_tpm: 9, max_concurrent: 4, timeout: 5 };
    const estimated = { estimated_tokens_per_request: 9 };
    const minute = { minute_ms: 9 };
    const limited = { ...limits, ...estimated, limits: minute };
    for (const reward of [
      { ...managed("rate_limited"), ...limited },
      {
        ...managed("limited"),
        ...limits,
        ...estimated,
        rewards: { a: { ...own, limits: minute } },
      },
      { reward_manager: ofClass, reward_kwargs: { any: 1 } },
      { reward_manager: { ...ofClass, module: { path: "mine.ts", name: "Mine" } } },
      { ...managed("gdpo"), experiment_name: "x" },
      { ...managed("dapo"), reward_model: model, ...own },
      { spent_before: "log.jsonl", cascade: { judge: { ...own, spend: capped } } },
      { sandbox_fusion: { ...service, max_concurrent: 8 }, rewards: { a: own, by_source: {} } },
    ]) {
      expect(readRewardConfig({ reward })).toMatchObject(reward);
    }
  });

  test("is none where it is as verl's defaults have it, nor where it waits behind a switch that says off", () => {
    const defaults = parse(verlDefaults) as { reward: object };
    const limits = {
      max_concurrent: 1,
      max_rpm: null,
      max_tpm: null,
      estimated_tokens_per_request: 2000,
      timeout: 300,
    };
    const changed = readRewardConfig({ ...defaults, reward: { ...defaults.reward, ...limits } });
    expect(rewardLoopOptionsOf(changed)).toEqual(rewardLoopOptionsOf(defaultRewardConfig));
    const named = ["enable=true", "model_path=m", "servers=[a:1]", "rollout.name=vllm"];
    const served = readRewardConfig(
      defaults,
      named.map((one) => `++reward.reward_model.${one}`),
    );
    expect(rewardLoopOptionsOf(served).rewardModel).toMatchObject({ servers: ["a:1"] });
    expect(rewardLoopOptionsOf(served).rewardModel).not.toHaveProperty("router");
    const waiting = { ...model, enable: false };
    expect(rewardLoopOptionsOf(readRewardConfig({ reward: { reward_model: waiting } }))).toEqual(
      rewardLoopOptionsOf(defaultRewardConfig),
    );
  });
});

/** reward.yaml and legacy_reward_impl.yaml of verl 0.9.1 (verl/trainer/config) as ppo_trainer.yaml puts them together, their comments left out. */
const verlDefaults = `
reward:
  _target_: verl.workers.config.RewardConfig
  num_workers: 8
  custom_reward_function:
    path: null
    name: compute_score
  reward_manager:
    _target_: verl.workers.config.reward.RewardManagerConfig
    source: register
    name: naive
    module:
      _target_: verl.trainer.config.config.ModuleConfig
      path: null
      name: custom_reward_manager
  reward_model:
    _target_: verl.workers.config.RewardModelConfig
    enable: False
    enable_resource_pool: False
    n_gpus_per_node: 8
    nnodes: 0
    model_path: null
    rollout:
      _target_: verl.workers.config.RolloutConfig
      name: ???
      dtype: bfloat16
      gpu_memory_utilization: 0.5
      enforce_eager: true
      cudagraph_capture_sizes: null
      free_cache_engine: true
      data_parallel_size: 1
      expert_parallel_size: 1
      tensor_model_parallel_size: 2
      pipeline_model_parallel_size: 1
      max_num_batched_tokens: 8192
      max_model_len: null
      max_num_seqs: 1024
      load_format: auto
      layered_summon: false
      scheduling_policy: fcfs
      full_determinism: false
      seed: 42
      multi_stage_wake_up: false
      engine_kwargs: {}
      limit_images: null
      enable_chunked_prefill: true
      enable_prefix_caching: true
      disable_log_stats: true
      skip_tokenizer_init: false
      ignore_eos: false
      temperature: 1.0
      top_k: -1
      top_p: 1
      do_sample: true
      n: 1
      prompt_length: 2048
      response_length: 2048
      quantization: null
      quantization_config_file: null
      mtp: null
      disaggregation:
        enabled: false
        prefill_replicas: 1
        decode_replicas: 1
        decode_tensor_model_parallel_size: null
        transfer_backend: nixl
        bootstrap_port: null
        ib_device: null
  sandbox_fusion:
    _target_: verl.workers.config.SandboxFusionConfig
    url: null
    max_concurrent: 64
    memory_limit_mb: 1024
custom_reward_function:
  path: null
  name: null
reward_model:
  num_workers: null
  reward_manager: null
  enable: null
  enable_resource_pool: null
  n_gpus_per_node: null
  nnodes: null
  reward_loop_source: null
  reward_loop_module_path: null
  reward_loop_class_name: null
  model:
    path: null
    external_lib: null
    trust_remote_code: null
  rollout:
    name: null
    dtype: null
    gpu_memory_utilization: null
    enforce_eager: null
    cudagraph_capture_sizes: null
    free_cache_engine: null
    data_parallel_size: null
    expert_parallel_size: null
    tensor_model_parallel_size: null
    max_num_batched_tokens: null
    max_model_len: null
    max_num_seqs: null
    load_format: null
    engine_kwargs: null
    limit_images: null
    enable_chunked_prefill: null
    enable_prefix_caching: null
    disable_log_stats: null
    skip_tokenizer_init: null
    prompt_length: null
    response_length: null
sandbox_fusion:
  url: null
  max_concurrent: null
  memory_limit_mb: null
`;
