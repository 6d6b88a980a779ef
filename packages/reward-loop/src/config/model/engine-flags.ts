/**
 * verl's settings of a rollout, as flags of the servers that vLLM and SGLang come with. A setting
 * that no flag expresses is an error that names its key, never silently ignored; settings without
 * an effect on a scoring server are listed as such.
 */

import { isTree, nearestOf } from "@rayling/config-tree";
import { RewardConfigError } from "../reward-config-error.ts";
import { type ConfigValue } from "@rayling/config-tree";

type Engine = "vllm" | "sglang";
type Flags = (value: ConfigValue) => readonly string[];
type Rollout = Readonly<Record<string, ConfigValue>>;

const named =
  (flag: string): Flags =>
  (value) => [flag, textOf(value)];
const ifTrue =
  (flag: string): Flags =>
  (value) =>
    value === true ? [flag] : [];
const ifFalse =
  (flag: string): Flags =>
  (value) =>
    value === false ? [flag] : [];
const nothing: Flags = () => [];

const flags: Readonly<Record<Engine, Readonly<Record<string, Flags>>>> = {
  vllm: {
    dtype: named("--dtype"),
    gpu_memory_utilization: named("--gpu-memory-utilization"),
    enforce_eager: ifTrue("--enforce-eager"),
    free_cache_engine: ifTrue("--enable-sleep-mode"),
    tensor_model_parallel_size: named("--tensor-parallel-size"),
    data_parallel_size: named("--data-parallel-size"),
    pipeline_model_parallel_size: named("--pipeline-parallel-size"),
    expert_parallel_size: (value) => (value === 1 ? [] : ["--enable-expert-parallel"]),
    max_num_batched_tokens: named("--max-num-batched-tokens"),
    max_num_seqs: named("--max-num-seqs"),
    max_model_len: named("--max-model-len"),
    load_format: named("--load-format"),
    seed: named("--seed"),
    quantization: named("--quantization"),
    scheduling_policy: named("--scheduling-policy"),
    enable_chunked_prefill: ifFalse("--no-enable-chunked-prefill"),
    enable_prefix_caching: ifFalse("--no-enable-prefix-caching"),
    disable_log_stats: ifTrue("--disable-log-stats"),
  },
  sglang: {
    dtype: named("--dtype"),
    gpu_memory_utilization: named("--mem-fraction-static"),
    enforce_eager: ifTrue("--disable-cuda-graph"),
    free_cache_engine: ifTrue("--enable-memory-saver"),
    tensor_model_parallel_size: named("--tp-size"),
    data_parallel_size: named("--dp-size"),
    pipeline_model_parallel_size: named("--pp-size"),
    expert_parallel_size: named("--ep-size"),
    // SGLang cuts long prompts by itself.
    max_num_batched_tokens: nothing,
    max_num_seqs: named("--max-running-requests"),
    max_model_len: named("--context-length"),
    load_format: named("--load-format"),
    seed: named("--random-seed"),
    quantization: named("--quantization"),
    scheduling_policy: named("--schedule-policy"),
    enable_chunked_prefill: nothing,
    enable_prefix_caching: ifFalse("--disable-radix-cache"),
    disable_log_stats: nothing,
  },
};

/**
 * Settings of text generation by a policy, or of weights from a trainer: a scoring server has no
 * use for them.
 */
const ofOthers: ReadonlySet<string> = new Set([
  "name",
  "engine_kwargs",
  "prompt_length",
  "response_length",
  "temperature",
  "top_k",
  "top_p",
  "do_sample",
  "n",
  "ignore_eos",
  "layered_summon",
  "multi_stage_wake_up",
]);

/** Settings of verl's rollouts that are accepted only if they are off. */
const onlyOff = [
  "cudagraph_capture_sizes",
  "full_determinism",
  "limit_images",
  "skip_tokenizer_init",
  "quantization_config_file",
  "mtp",
  "disaggregation",
];

/** All keys of verl's files below `rollout`. */
export const rolloutKeys: readonly string[] = [...Object.keys(flags.vllm), ...ofOthers, ...onlyOff];

/** Defaults of verl's reward.yaml, which has no name: there it must be set, and here it is vllm. */
export const rolloutDefaults: Readonly<Record<string, ConfigValue>> = {
  name: null,
  dtype: "bfloat16",
  gpu_memory_utilization: 0.5,
  enforce_eager: true,
  free_cache_engine: true,
  tensor_model_parallel_size: 2,
  data_parallel_size: 1,
  pipeline_model_parallel_size: 1,
  max_num_batched_tokens: 8192,
  max_num_seqs: 1024,
  load_format: "auto",
  seed: 42,
};

/** Whether it is one of these; `engine_kwargs` are flags themselves. */
export function isOfTexts(key: string): boolean {
  return ofOthers.has(key) && key !== "engine_kwargs";
}

/**
 * verl's settings of a rollout as flags of the server. Throws RewardConfigError.
 *
 * @param at where they stand
 */
export function flagsOf(engine: Engine, rollout: Rollout, at: string): string[] {
  const own = flags[engine];
  const known = Object.entries(rollout).flatMap(([key, value]) => {
    const flag = own[key];
    if (flag !== undefined) return flag(value);
    if (ofOthers.has(key) || isOff(value)) return [];
    throw new RewardConfigError(
      `${at}.${key}`,
      `cannot be said to a server of ${engine}; start it yourself and name it in reward.reward_model.servers`,
      value,
      nearestOf(key, [...Object.keys(own), ...ofOthers]),
    );
  });
  return [...known, ...engineFlags(engine, rollout["engine_kwargs"] ?? {}, at)];
}

/** Something that is not wanted. */
export function isOff(value: unknown): boolean {
  return value === false || (isTree(value) && (value["enabled"] ?? false) === false);
}

/** `engine_kwargs.vllm` and `engine_kwargs.sglang`: flags by their names in Python. */
function engineFlags(engine: Engine, all: ConfigValue, at: string): string[] {
  const own = isTree(all) ? (all[engine] ?? {}) : all;
  if (!isTree(own))
    throw new RewardConfigError(`${at}.engine_kwargs.${engine}`, "must hold keys", own);
  return Object.entries(own).flatMap(([key, value]) => {
    const flag = key.replaceAll("_", "-");
    if (value === null) return [];
    if (typeof value === "boolean") return [value ? `--${flag}` : `--no-${flag}`];
    return [`--${flag}`, textOf(value)];
  });
}

function textOf(value: ConfigValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
