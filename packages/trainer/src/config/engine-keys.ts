/**
 * Keys of verl that have no meaning here, because they are about its engines, its GPUs or its processes: a configuration of verl's may have them, and they are told. And those that
 * would change what a training comes to, and cannot be had here: refused, unless they say what is done anyway.
 */

import {
  isTree,
  RewardConfigError,
  valueAt,
  withoutValue,
  withValue,
} from "@rayling/reward-loop/config";
import type { ConfigTree, ConfigValue } from "@rayling/reward-loop/config";

/** With all that is below them. */
const engineKeys: readonly string[] = [
  "hydra",
  "actor_rollout_ref.hybrid_engine",
  "actor_rollout_ref.nccl_timeout",
  "actor_rollout_ref.model",
  "actor_rollout_ref.ref",
  ...[
    "checkpoint",
    "calculate_entropy",
    "calculate_sum_pi_squared",
    "data_loader_seed",
    "entropy_checkpointing",
    "entropy_from_logits_chunk_size",
    "entropy_from_logits_with_chunking",
    "freeze_vision_tower",
    "fsdp_config",
    "load_weight",
    "megatron",
    "pad_to_length",
    "ppo_max_token_len_per_gpu",
    "ppo_micro_batch_size",
    "ppo_micro_batch_size_per_gpu",
    "profile",
    "profiler",
    "qat",
    "rollout_n",
    "router_replay",
    "strategy",
    "ulysses_sequence_parallel_size",
    "use_dynamic_bsz",
    "use_fused_kernels",
    "use_prefix_grouper",
    "use_remove_padding",
    "use_torch_compile",
    "veomni",
    "nccl_timeout",
    "optim.exp_avg_dtype",
    "optim.exp_avg_sq_dtype",
    "optim.lr_wsd_decay_steps",
    "optim.lr_wsd_decay_style",
    "optim.main_grads_dtype",
    "optim.muon_coefficient_type",
    "optim.muon_extra_scale_factor",
    "optim.muon_fp32_matmul_prec",
    "optim.muon_match_adamw_update_rms",
    "optim.muon_momentum",
    "optim.muon_nesterov",
    "optim.muon_num_ns_steps",
    "optim.muon_scalar_optimizer",
    "optim.muon_scale_mode",
    "optim.muon_split_qkv",
    "optim.muon_tp_mode",
    "optim.optimizer_impl",
    "optim.use_checkpoint_opt_param_scheduler",
    "optim.use_layer_wise_distributed_optimizer",
    "optim.use_precision_aware_optimizer",
    "optim.weight_decay_incr_style",
    // The first step of a schedule counts as 1 here, whatever it says.
    "optim.zero_indexed_step",
  ].flatMap((key) => [`actor_rollout_ref.actor.${key}`, `critic.${key}`]),
  ...[
    "forward_max_token_len_per_gpu",
    "forward_micro_batch_size",
    "forward_micro_batch_size_per_gpu",
    "fsdp",
    "model",
  ].map((key) => `critic.${key}`),
  ...[
    "agent",
    "calculate_log_probs",
    "checkpoint_engine",
    "cudagraph_capture_sizes",
    "data_parallel_size",
    "disable_log_stats",
    "disaggregation",
    "dtype",
    "enable_chunked_prefill",
    "enable_prefix_caching",
    "enable_rollout_routing_replay",
    "enforce_eager",
    "engine_kwargs",
    "expert_parallel_size",
    "free_cache_engine",
    "full_determinism",
    "gpu_memory_utilization",
    "layer_name_map",
    "layered_summon",
    "limit_images",
    "load_format",
    "log_prob_max_token_len_per_gpu",
    "log_prob_micro_batch_size",
    "log_prob_micro_batch_size_per_gpu",
    "log_prob_use_dynamic_bsz",
    "logprobs_mode",
    "max_model_len",
    "max_num_batched_tokens",
    "max_num_seqs",
    "mode",
    "moe_load_balance_metrics_interval",
    "mtp",
    "multi_stage_wake_up",
    "n_gpus_per_node",
    "name",
    "nnodes",
    "over_sample_rate",
    "pipeline_model_parallel_size",
    "profiler",
    "prometheus",
    "qat",
    "quantization",
    "quantization_config_file",
    "scheduling_policy",
    "seed",
    "skip_tokenizer_init",
    "tensor_model_parallel_size",
    "trace",
    "update_weights_bucket_megabytes",
  ].map((key) => `actor_rollout_ref.rollout.${key}`),
  ...[
    "apply_chat_template_kwargs",
    "audio_key",
    "dataloader_num_workers",
    "filter_overlong_prompts_workers",
    "function_tool_path",
    "image_key",
    "image_patch_size",
    "mm_processor_kwargs",
    "return_full_prompt",
    "return_multi_modal_inputs",
    "return_raw_chat",
    "return_raw_input_ids",
    "tokenizer",
    "tool_config_path",
    "trust_remote_code",
    "use_shm",
    "val_batch_size",
    "validation_shuffle",
    "video_key",
  ].map((key) => `data.${key}`),
  "algorithm.filter_groups.max_inflight_gen_batches",
  "global_profiler",
  "ray_init",
  "ray_kwargs",
  "skip",
  "transfer_queue",
  ...[
    "balance_batch",
    "default_hdfs_dir",
    "del_local_ckpt_after_load",
    "device",
    "esi_redundant_time",
    "n_gpus_per_node",
    "nnodes",
    "npu_profile",
    "profile_steps",
    "ray_wait_register_center_timeout",
    "use_legacy_worker_impl",
    "use_v1",
  ].map((key) => `trainer.${key}`),
];

/** Where an optimiser's settings are. */
const optimisers = ["actor_rollout_ref.actor.optim", "critic.optim"] as const;

/** Older names of lr_scheduler_type, and Megatron's: the one that comes last counts. */
const schedulerNames = ["lr_decay_style", "warmup_style"] as const;

const schedulers: readonly ConfigValue[] = ["constant", "cosine", "linear"];

type Refusals = Readonly<Record<string, readonly [allowed: readonly ConfigValue[], hint: string]>>;

const ofOptimisers: Refusals = {
  lr_decay_steps: [[null], "total_training_steps says where the decay ends"],
  lr_warmup_init: [[null, 0], "a warm-up begins with 0"],
  min_lr: [[null, 0], "min_lr_ratio says what is left at the end"],
  optimizer: [[null, "AdamW", "adamw", "adam"], "the optimiser is AdamW"],
  override_optimizer_config: [[null], "the optimiser has the settings beside it and no others"],
};

/** What they may say, and what to do instead. */
const unsupported: Refusals = {
  ...Object.fromEntries(
    optimisers.flatMap((place) =>
      Object.entries(ofOptimisers).map(([key, refusal]) => [`${place}.${key}`, refusal]),
    ),
  ),
  "critic.loss_scale_factor": [[null], "a loss is scaled as its mode says"],
  "actor_rollout_ref.actor.shuffle": [[false], "rows of a batch are trained on in their order"],
  "critic.shuffle": [[false], "rows of a batch are trained on in their order"],
  "actor_rollout_ref.rollout.multi_turn.enable": [[false], "a rollout has one turn"],
  "actor_rollout_ref.rollout.ignore_eos": [[false], "a rollout ends where the policy ends it"],
  "data.custom_cls.path": [[null], "a data set of yours is given to the library"],
  "data.gen_batch_size": [[null], "batches are generated as they are trained, train_batch_size"],
  "distillation.enabled": [[false], "there is no distillation"],
  "trainer.v1.trainer_mode": [["sync"], "rayling.schedule says how phases overlap"],
};

/** Below keys that are refused: they say nothing where that is off. */
const moot: readonly string[] = [
  "actor_rollout_ref.rollout.multi_turn",
  "data.custom_cls",
  "distillation",
  "trainer.v1",
];

/** Whether it is one of them, stands below one, or below one that is refused. */
export function isEngineKey(key: string): boolean {
  const isBelow = (one: string): boolean => key === one || key.startsWith(`${one}.`);
  if (key in unsupported) return false;
  return key.endsWith("_target_") || engineKeys.some(isBelow) || moot.some(isBelow);
}

/** Verl's files have some of them, and some not: they may be given with + and without. */
export function isOptimiserKey(key: string): boolean {
  const names = [...Object.keys(ofOptimisers), ...schedulerNames];
  return optimisers.some((place) =>
    names.some((name) => key === `${place}.${name}` || key.startsWith(`${place}.${name}.`)),
  );
}

/** The learning rate's schedule by the one name that it has here. Throws RewardConfigError for one that there is not. */
export function withSchedulerType(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const place of optimisers) {
    for (const name of schedulerNames) {
      const path = [...place.split("."), name];
      const value = valueAt(result, path);
      if (value === undefined) continue;
      result = withoutValue(result, path);
      if (value === null) continue;
      if (!schedulers.includes(value)) {
        const only = schedulers.map((one) => JSON.stringify(one)).join(" or ");
        throw new RewardConfigError(
          path.join("."),
          `is ${JSON.stringify(value)}, and can only be ${only} here: it stands for lr_scheduler_type`,
          value,
        );
      }
      result = withValue(result, [...place.split("."), "lr_scheduler_type"], value);
    }
  }
  return result;
}

/** The same without those that are refused. Throws RewardConfigError for one that does not say what is done anyway. */
export function withoutUnsupported(tree: ConfigTree): ConfigTree {
  let result = tree;
  for (const [key, [allowed, hint]] of Object.entries(unsupported)) {
    const path = key.split(".");
    const value = valueAt(tree, path);
    if (value === undefined) continue;
    result = withoutValue(result, path);
    const isNothing = isTree(value) && Object.keys(value).length === 0;
    if (allowed.includes(isNothing ? null : value)) continue;
    const only = allowed.map((one) => JSON.stringify(one)).join(" or ");
    throw new RewardConfigError(
      key,
      `is ${JSON.stringify(value)}, and can only be ${only} here: ${hint}`,
      value,
    );
  }
  return withoutEmpty(result);
}

/** Those of verl's that may be given, with what they may say. */
export const unsupportedKeys: ConfigTree = Object.entries(unsupported).reduce<ConfigTree>(
  (tree, [key, [allowed]]) => withValue(tree, key.split("."), allowed[0] ?? null),
  {},
);

/** Where only refused keys were. */
function withoutEmpty(tree: ConfigTree): ConfigTree {
  return moot.reduce((result, key) => withoutValue(result, key.split(".")), tree);
}
