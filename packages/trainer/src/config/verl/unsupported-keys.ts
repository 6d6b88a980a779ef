/**
 * verl's keys that would change the result of a training and are not supported here. A
 * configuration may have them, and is read and printed with them; a run, and the rehearsal before
 * it, refuses the first one whose value differs from what is done here.
 */

import { isTree, valueAt } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";

/** A key that asks for something that is not done. */
export interface NotDone {
  readonly key: string;
  readonly value: ConfigValue;
  /** Values that are allowed, and what happens instead. */
  readonly hint: string;
}

/** Keys, what says that it is not wanted, and the hint. */
type Rule = readonly [
  keys: readonly string[],
  allowed: readonly ConfigValue[] | ((value: ConfigValue) => boolean),
  hint: string,
];

const nothing = (value: ConfigValue): boolean =>
  value === null || value === "" || (isTree(value) && Object.values(value).every(nothing));

const offloading: ReadonlySet<string> = new Set([
  "optimizer_cpu_offload",
  "optimizer_offload_fraction",
  "overlap_cpu_optimizer_d2h_h2d",
  "use_precision_aware_optimizer",
  "fp8_recipe",
  "offload_fraction",
]);

/** The place of the state does not change the result. */
const offloads = (value: ConfigValue): boolean =>
  value === null || (isTree(value) && Object.keys(value).every((key) => offloading.has(key)));

const ofOptimisers = (key: string): readonly string[] => [
  `actor_rollout_ref.actor.optim.${key}`,
  `critic.optim.${key}`,
];

const ofModels = (...keys: readonly string[]): readonly string[] =>
  keys.flatMap((key) => [`actor_rollout_ref.model.${key}`, `critic.model.${key}`]);

// One row for each, however long.
// prettier-ignore
const rules: readonly Rule[] = [
  [ofOptimisers("lr_decay_steps"), [null], "can only be null: total_training_steps says where the decay ends"],
  [ofOptimisers("lr_warmup_init"), [null, 0], "can only be 0: a warm-up begins with 0"],
  [ofOptimisers("min_lr"), [null, 0], "can only be 0: min_lr_ratio says what is left at the end"],
  [ofOptimisers("lr_min"), [null, 0], "can only be 0: min_lr_ratio says what is left at the end"],
  [ofOptimisers("lr_start"), [null, 0], "can only be 0: a warm-up begins with 0"],
  [ofOptimisers("lr_decay_ratio"), [null, 1], "can only be 1: total_training_steps says where the decay ends"],
  [ofOptimisers("weight_decay_incr_style"), [null, "constant"], "can only be constant: the weight decay stays"],
  [ofOptimisers("name"), [null, "AdamW"], "can only be AdamW, which is the optimiser"],
  [ofOptimisers("optimizer_impl"), [null, "torch.optim"], "can only be torch.optim, whose AdamW the optimiser is"],
  [ofOptimisers("optimizer"), [null, "AdamW", "adamw", "adam", "Adam"], "can only be AdamW, which is the optimiser"],
  [ofOptimisers("override_optimizer_config"), offloads, "can only say where its state lies: the optimiser has the settings beside it and no others"],
  [["actor_rollout_ref.actor.shuffle", "critic.shuffle"], [false, null], "can only be false: rows of a batch are trained on in their order"],
  [ofModels("lora_rank", "lora.rank"), [0, null], "can only be 0: a policy trains all of its weights, or does LoRA by itself"],
  [ofModels("lora_adapter_path", "lora.adapter_path"), nothing, "can only be null: a policy loads its weights by itself"],
  [ofModels("custom_chat_template"), nothing, "can only be null: the policy knows its own template of a chat"],
  [ofModels("mtp.enable_train"), [false, null], "can only be false: the loss has no part for the prediction of several tokens"],
  [["actor_rollout_ref.rollout.multi_turn.enable"], [false, null], "can only be false: a rollout has one turn"],
  [["actor_rollout_ref.rollout.agent.default_agent_loop"], [null, "single_turn_agent"], "can only be single_turn_agent: a rollout has one turn"],
  [["actor_rollout_ref.rollout.ignore_eos"], [false, null], "can only be false: a rollout ends where the policy ends it"],
  [["data.apply_chat_template_kwargs"], nothing, "can only be empty: the policy knows its own template of a chat"],
  [["data.custom_cls.path"], nothing, "can only be null: a data set of yours is given to PPOTrainer.create as prompts"],
  [["data.sampler.class_path", "data.sampler.class_name"], nothing, "can only be null: prompts come in their order, or shuffled"],
  [["data.tool_config_path", "data.function_tool_path"], nothing, "can only be null: a rollout calls no tools"],
  [["data.datagen.path"], nothing, "can only be null: prompts are those of the files"],
  [["data.gen_batch_size"], [null], "can only be null: batches are generated as they are trained, train_batch_size"],
  [["distillation.enabled"], [false, null], "can only be false: there is no distillation"],
  [["trainer.v1.trainer_mode"], ["sync", null], "can only be sync: rayling.schedule says how phases overlap"],
  [["trainer.v1.sampler.custom_sampler.path"], nothing, "can only be null: rollouts are trained on in the order of the schedule"],
  [["trainer.v1.sampler.sync_refill_failed_groups"], [false, null], "can only be false: a group without a score is left out, and no other one is generated for it"],
  [["async_training.staleness_threshold"], [0, null], "can only be 0: rayling.schedule=streaming with rayling.staleness.limit is what it is here"],
];

export const notDoneKeys: readonly string[] = rules.flatMap(([keys]) => keys);

/**
 * @param given with its references resolved; what is not given has verl's default, which is done
 */
export function notDoneIn(given: ConfigTree): NotDone[] {
  return rules.flatMap(([keys, allowed, hint]) =>
    keys.flatMap((key) => {
      const value = valueAt(given, key.split("."));
      if (value === undefined) return [];
      const isDone = typeof allowed === "function" ? allowed(value) : allowed.includes(value);
      return isDone ? [] : [{ key, value, hint }];
    }),
  );
}
