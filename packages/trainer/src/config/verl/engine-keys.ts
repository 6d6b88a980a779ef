/**
 * verl's keys that have no meaning here, because they are about its engines, GPUs or processes. A
 * configuration of verl's may have them and refer to them; they are reported once. The keys with
 * verl's defaults are data: verl/engine-keys.json, generated from verl's own files.
 */

import { readFileSync } from "node:fs";
import { ConfigError, isTree, nearestOf, treeOf, valueAt, withValue } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";
import { ownFile } from "../../values/own-files.ts";

const file: URL = ownFile("verl/engine-keys.json");

/**
 * In no file of verl's that is made of all others: of its recipes, of Hydra, of versions before.
 */
const others: readonly string[] = [
  "async_training",
  "hydra",
  "model_engine",
  "ray_init",
  "rollout",
  "actor_rollout_ref.actor.megatron",
  "actor_rollout_ref.actor.profile",
  "actor_rollout_ref.actor.calculate_entropy",
  "actor_rollout_ref.actor.engine",
  "actor_rollout_ref.actor.entropy_from_logits_chunk_size",
  "actor_rollout_ref.actor.mindspeed",
  "actor_rollout_ref.rollout.max_inflight_gen_batches",
  "algorithm.filter_groups.max_inflight_gen_batches",
  "critic.megatron",
];

/** Groups of files that choose an engine. */
export const engineGroups: ReadonlySet<string> = new Set([
  "actor",
  "critic",
  "engine",
  "model",
  "model_engine",
  "npu_profile",
  "optim",
  "profiler",
  "ref",
  "rollout",
]);

let read: ConfigTree | undefined;

/** Returns engine keys with verl's defaults, some of which are references. */
export function engineDefaults(): ConfigTree {
  read ??= treeOf(JSON.parse(readFileSync(file, "utf8")));
  return read;
}

/**
 * Whether a key has no meaning here: it is one of them, or stands below one, or in a section that
 * has none that is used.
 */
export function isEngineKey(key: string, used: ConfigTree): boolean {
  if (key.endsWith("_target_")) return true;
  const isBelow = (one: string): boolean => key === one || key.startsWith(`${one}.`);
  if (others.some(isBelow)) return true;
  let engine: ConfigValue | undefined = engineDefaults();
  let own: ConfigValue | undefined = used;
  for (const part of key.split(".")) {
    engine = isTree(engine) ? engine[part] : undefined;
    own = isTree(own) ? own[part] : undefined;
    if (engine === undefined) return false;
    // Keys below this one are free where none of them is used here.
    if (own === undefined) return true;
  }
  return false;
}

/**
 * Whether an override chooses a file of one of verl's groups: `model_engine=megatron`,
 * `optim@critic.optim=fsdp`.
 */
export function choosesEngine(key: string, place: string | undefined): boolean {
  return key === "model_engine" || (place !== undefined && engineGroups.has(key));
}

/** Schedules of the learning rate that are other ones than verl's usual, by the engine. */
const schedulerOf: Readonly<Record<string, ConfigValue>> = {
  veomni: "cosine",
  torchtitan: "linear",
};

/** Files of verl's that choose an engine, by their group. */
const engines: Readonly<Record<string, readonly string[]>> = {
  model_engine: ["dp", "fsdp", "megatron", "torchtitan", "veomni"],
  optim: ["fsdp", "megatron", "torchtitan", "veomni"],
};

const optimisers = ["actor_rollout_ref.actor.optim", "critic.optim"] as const;

/** A file of a group, and the place where it is, if it is not the group's own. */
export interface EngineChoice {
  readonly key: string;
  readonly package: string | undefined;
  readonly value: ConfigValue;
}

/**
 * Adds the defaults of the chosen engines where those of all engines apply. Throws ConfigError for
 * an engine that is not known: its defaults would be missing.
 *
 * @param choices the last one of a group counts
 */
export function withEngineDefaults(
  tree: ConfigTree,
  defaults: ConfigTree,
  choices: readonly EngineChoice[],
): ConfigTree {
  const whole = choices.findLast(({ key }) => key === "model_engine");
  return optimisers.reduce((result, place) => {
    const own = choices.findLast((one) => one.key === "optim" && one.package === place);
    const engine = [own, whole].map((one) => one && engineOf(one)).find((one) => one !== undefined);
    const path = [...place.split("."), "lr_scheduler_type"];
    const value = engine === undefined ? undefined : schedulerOf[engine];
    const there = valueAt(tree, path);
    const isUsual = there === undefined || there === valueAt(defaults, path);
    return isUsual && value !== undefined ? withValue(result, path, value) : result;
  }, tree);
}

function engineOf({ key, package: place, value }: EngineChoice): string | undefined {
  const known = engines[key] ?? [];
  if (value === null) return undefined;
  if (typeof value === "string" && known.includes(value)) return value;
  throw new ConfigError(
    place === undefined ? key : `${key}@${place}`,
    `is ${JSON.stringify(value)}, and what such an engine trains with is not known here; there are ${known.join(", ")}`,
    value,
    typeof value === "string" ? nearestOf(value, known) : undefined,
  );
}
