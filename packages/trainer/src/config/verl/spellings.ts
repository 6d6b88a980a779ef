/**
 * Other spellings in verl's command lines of settings that have one spelling here: the value in
 * that spelling, and a note where something may be missed.
 */

import { ConfigError, nearestOf, valueAt, withoutValue, withValue } from "@rayling/config-tree";
import type { ConfigTree, ConfigValue } from "@rayling/config-tree";
import { isList } from "@rayling/reward-manager-registry/values";
import { loggerNames, otherLoggers } from "./logger-names.ts";

export interface Respelt {
  readonly tree: ConfigTree;
  /** Settings that are done in another way than they say, or not at all. */
  readonly notes: readonly string[];
}

/** Never, in verl's words. */
const frequencies = ["save_freq", "test_freq"] as const;

const optimisers = ["actor_rollout_ref.actor.optim", "critic.optim"] as const;

/** Torchtitan's name of lr_scheduler_type, Megatron's, and an older one: the last one counts. */
const schedulerNames = ["decay_type", "lr_decay_style", "warmup_style"] as const;

/** Torchtitan's name of min_lr_ratio. */
const leastName = "min_lr_factor";

const schedulers: readonly ConfigValue[] = ["constant", "cosine", "linear"];

/** Other names, which verl's files have and not: they may be given with + and without. */
export const otherNames: readonly string[] = optimisers.flatMap((place) =>
  [...schedulerNames, leastName].map((name) => `${place}.${name}`),
);

/** @param given with its references resolved. Throws ConfigError. */
export function respelt(given: ConfigTree): Respelt {
  const notes: string[] = [];
  let tree = withLeastRatio(withSchedulerType(given));
  const change = (key: string, by: (value: ConfigValue) => ConfigValue): void => {
    const path = key.split(".");
    const value = valueAt(tree, path);
    if (value !== undefined) tree = withValue(tree, path, by(value));
  };
  change("trainer.logger", (value) => loggersOf(value, notes));
  for (const name of frequencies) {
    change(`trainer.${name}`, (value) => (value === false || value === null ? -1 : value));
  }
  for (const place of optimisers) {
    change(`${place}.lr_warmup_steps`, (value) => value ?? -1);
    change(`${place}.min_lr_ratio`, (value) => value ?? 0);
  }
  change("critic.optim.lr_warmup_steps_ratio", (value) => value ?? 0);
  for (const name of ["project_name", "experiment_name"]) {
    change(`trainer.${name}`, (value) => (typeof value === "number" ? String(value) : value));
  }
  change("trainer.resume_from_path", (value) => (value === false || value === "" ? null : value));
  change("trainer.resume_mode", (value) => (value === false ? "disable" : value));
  const [mode, path] = ["resume_mode", "resume_from_path"].map((name) =>
    valueAt(tree, ["trainer", name]),
  );
  if (mode !== "resume_path" && path !== undefined && path !== null) {
    notes.push(
      `trainer.resume_from_path is ${JSON.stringify(path)}, and nothing reads it: trainer.resume_mode is ${JSON.stringify(mode ?? "auto")}`,
    );
    tree = withValue(tree, ["trainer", "resume_from_path"], null);
  }
  const divergences = ["algorithm.use_kl_in_reward", "actor_rollout_ref.actor.use_kl_loss"];
  if (divergences.every((key) => valueAt(tree, key.split(".")) === true)) {
    notes.push(`${divergences.join(" and ")} are both true: the divergence counts twice`);
  }
  const validation = "actor_rollout_ref.rollout.val_kwargs";
  const [n, draws, temperature] = ["n", "do_sample", "temperature"].map((name) =>
    valueAt(tree, [...validation.split("."), name]),
  );
  const isLikeliest = draws === false || temperature === 0;
  if (typeof n === "number" && n > 1 && isLikeliest) {
    notes.push(
      `${validation}.n is ${n}, and without ${draws === false ? "do_sample" : "a temperature"} all of them are the same`,
    );
  }
  if (draws === false && typeof temperature === "number" && temperature > 0) {
    notes.push(
      `${validation}.do_sample is false: answers are the likeliest tokens, where verl's agent loop draws them at the temperature, ${temperature}`,
    );
  }
  notes.push(...rowMeanNotes(tree));
  return { tree, notes };
}

/** Two losses are put together in one way, also where loss_agg_mode was set to another. */
function rowMeanNotes(tree: ConfigTree): string[] {
  const actor = ["actor_rollout_ref", "actor"];
  const lossMode = valueAt(tree, [...actor, "policy_loss", "loss_mode"]);
  const aggregation = valueAt(tree, [...actor, "loss_agg_mode"]);
  if (lossMode !== "gspo" && lossMode !== "sapo") return [];
  if (aggregation === "seq-mean-token-mean" || aggregation === undefined) return [];
  const theirs = lossMode === "gspo" ? "verl 0.9.1's gspo follows loss_agg_mode" : "as verl's";
  return [
    `actor_rollout_ref.actor.policy_loss.loss_mode is ${lossMode}, whose loss is always put together by seq-mean-token-mean (${theirs}): loss_agg_mode ${JSON.stringify(aggregation)} is for entropy and divergence`,
  ];
}

/** Returns the loggers that exist here; adds a note for each other one. */
function loggersOf(given: ConfigValue, notes: string[]): ConfigValue {
  const value = withoutOldLogger(given, notes);
  const names: readonly ConfigValue[] = isList(value) ? value : [value];
  const isOther = (name: ConfigValue): name is string => isOneOf(otherLoggers, name);
  const isOwn = (name: ConfigValue): name is string => isOneOf(loggerNames, name);
  const missing = names.filter(isOther);
  if (missing.length === 0) return value;
  const wrong = names.find((name) => !isOwn(name) && !isOther(name));
  if (wrong !== undefined) {
    const problem = `has ${JSON.stringify(wrong)}: there is no such logger; there are ${loggerNames.join(", ")}`;
    throw new ConfigError(
      "trainer.logger",
      problem,
      wrong,
      typeof wrong === "string" ? nearestOf(wrong, loggerNames) : undefined,
    );
  }
  const here = names.filter(isOwn);
  const kept = here.includes("file") ? here : [...here, "file"];
  notes.push(
    `trainer.logger: ${missing.join(", ")} is not here; the run is logged to ${kept.join(", ")}`,
  );
  return kept;
}

/** "tracking" is verl's deprecated name of wandb. */
function withoutOldLogger(value: ConfigValue, notes: string[]): ConfigValue {
  const names: readonly ConfigValue[] = isList(value) ? value : [value];
  if (!names.includes("tracking")) return value;
  notes.push("trainer.logger: tracking is verl's old name of wandb");
  return names.map((name) => (name === "tracking" ? "wandb" : name));
}

function isOneOf(known: readonly string[], name: ConfigValue): boolean {
  return typeof name === "string" && known.includes(name);
}

/** The learning rate's schedule by the one name that it has here. */
function withSchedulerType(given: ConfigTree): ConfigTree {
  let tree = given;
  for (const place of optimisers) {
    for (const name of schedulerNames) {
      const path = [...place.split("."), name];
      const value = valueAt(tree, path);
      if (value === undefined) continue;
      tree = withoutValue(tree, path);
      if (value === null) continue;
      if (!schedulers.includes(value)) {
        const only = schedulers.map((one) => JSON.stringify(one)).join(" or ");
        throw new ConfigError(
          path.join("."),
          `is ${JSON.stringify(value)}, and can only be ${only} here: it stands for lr_scheduler_type`,
          value,
        );
      }
      tree = withValue(tree, [...place.split("."), "lr_scheduler_type"], value);
    }
  }
  return tree;
}

/** Reads the share of the learning rate at the end by the one name that it has here. */
function withLeastRatio(given: ConfigTree): ConfigTree {
  return optimisers.reduce((tree, place) => {
    const path = [...place.split("."), leastName];
    const value = valueAt(tree, path) ?? null;
    const left = withoutValue(tree, path);
    // 0 is verl's default of both.
    if (value === null || value === 0) return left;
    return withValue(left, [...place.split("."), "min_lr_ratio"], value);
  }, given);
}
