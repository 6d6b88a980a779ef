/**
 * verl's keys that would change what a training comes to, and that cannot be had here. A configuration may have them, and is read and printed with them; a run, and the rehearsal before it,
 * refuses the first that does not say what is done anyway.
 */

import { isTree, valueAt } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";

/** A key that asks for something that is not done. */
export interface NotDone {
  readonly key: string;
  readonly value: ConfigValue;
  /** What it may say, and what is done instead. */
  readonly hint: string;
}

interface Rule {
  /** What says that it is not wanted. */
  readonly allowed: readonly ConfigValue[] | ((value: ConfigValue) => boolean);
  readonly hint: string;
}

const offloading: ReadonlySet<string> = new Set([
  "optimizer_cpu_offload",
  "optimizer_offload_fraction",
  "overlap_cpu_optimizer_d2h_h2d",
  "use_precision_aware_optimizer",
  "fp8_recipe",
  "offload_fraction",
]);

const optimisers = ["actor_rollout_ref.actor.optim", "critic.optim"] as const;

const ofOptimisers: Readonly<Record<string, Rule>> = {
  lr_decay_steps: {
    allowed: [null],
    hint: "can only be null: total_training_steps says where the decay ends",
  },
  lr_warmup_init: { allowed: [null, 0], hint: "can only be 0: a warm-up begins with 0" },
  min_lr: { allowed: [null, 0], hint: "can only be 0: min_lr_ratio says what is left at the end" },
  optimizer: {
    allowed: [null, "AdamW", "adamw", "adam", "Adam"],
    hint: "can only be AdamW, which is the optimiser",
  },
  override_optimizer_config: {
    // Where its state lies changes nothing.
    allowed: (value) =>
      value === null || (isTree(value) && Object.keys(value).every((key) => offloading.has(key))),
    hint: "can only say where its state lies: the optimiser has the settings beside it and no others",
  },
};

const nothing = (value: ConfigValue): boolean =>
  value === null || value === "" || (isTree(value) && Object.values(value).every(nothing));

const rules: Readonly<Record<string, Rule>> = {
  ...Object.fromEntries(
    optimisers.flatMap((place) =>
      Object.entries(ofOptimisers).map(([key, rule]) => [`${place}.${key}`, rule]),
    ),
  ),
  "critic.loss_scale_factor": {
    allowed: [null],
    hint: "can only be null: the loss of a critic is scaled as its mode says",
  },
  "actor_rollout_ref.actor.shuffle": {
    allowed: [false, null],
    hint: "can only be false: rows of a batch are trained on in their order",
  },
  "critic.shuffle": {
    allowed: [false, null],
    hint: "can only be false: rows of a batch are trained on in their order",
  },
  "actor_rollout_ref.model.lora_rank": {
    allowed: [0, null],
    hint: "can only be 0: a policy trains all of its weights, or does LoRA by itself",
  },
  "actor_rollout_ref.model.lora.rank": {
    allowed: [0, null],
    hint: "can only be 0: a policy trains all of its weights, or does LoRA by itself",
  },
  "actor_rollout_ref.model.lora_adapter_path": {
    allowed: nothing,
    hint: "can only be null: a policy loads its weights by itself",
  },
  "actor_rollout_ref.rollout.multi_turn.enable": {
    allowed: [false, null],
    hint: "can only be false: a rollout has one turn",
  },
  "actor_rollout_ref.rollout.agent.default_agent_loop": {
    allowed: [null, "single_turn_agent"],
    hint: "can only be single_turn_agent: a rollout has one turn",
  },
  "actor_rollout_ref.rollout.ignore_eos": {
    allowed: [false, null],
    hint: "can only be false: a rollout ends where the policy ends it",
  },
  "data.apply_chat_template_kwargs": {
    allowed: nothing,
    hint: "can only be empty: the policy knows its own template of a chat",
  },
  "data.custom_cls.path": {
    allowed: nothing,
    hint: "can only be null: a data set of yours is given to PPOTrainer.create as prompts",
  },
  "data.sampler.class_path": {
    allowed: nothing,
    hint: "can only be null: prompts come in their order, or shuffled",
  },
  "data.sampler.class_name": {
    allowed: nothing,
    hint: "can only be null: prompts come in their order, or shuffled",
  },
  "data.datagen.path": {
    allowed: nothing,
    hint: "can only be null: prompts are those of the files",
  },
  "data.gen_batch_size": {
    allowed: [null],
    hint: "can only be null: batches are generated as they are trained, train_batch_size",
  },
  "distillation.enabled": {
    allowed: [false, null],
    hint: "can only be false: there is no distillation",
  },
  "trainer.v1.trainer_mode": {
    allowed: ["sync", null],
    hint: "can only be sync: rayling.schedule says how phases overlap",
  },
  "async_training.staleness_threshold": {
    allowed: [0, null],
    hint: "can only be 0: rayling.schedule=streaming with rayling.staleness.limit is what it is here",
  },
};

export const notDoneKeys: readonly string[] = Object.keys(rules);

/** @param given with its references resolved; what is not given has verl's default, which is done */
export function notDoneIn(given: ConfigTree): NotDone[] {
  return Object.entries(rules).flatMap(([key, { allowed, hint }]) => {
    const value = valueAt(given, key.split("."));
    if (value === undefined) return [];
    const isDone = Array.isArray(allowed)
      ? (allowed as readonly ConfigValue[]).includes(value)
      : (allowed as (value: ConfigValue) => boolean)(value);
    return isDone ? [] : [{ key, value, hint }];
  });
}
