/**
 * Keys of ours under `reward` for a sample that several functions score: `rewards`, put together by their weights, or a `cascade`, in which the next is asked when one cannot tell. Each part has a function
 * as verl names one, and policies of its own; what it does not say it has from `reward`.
 */

import { type Frozen, option } from "@rayling/config-tree/options";
import { z } from "zod";
import type {
  CascadeStage,
  RewardComponent,
  RewardLoopOptions,
  RewardPart,
} from "../compose/loop-options.ts";
import {
  checkPolicyKeys,
  type FunctionConfig,
  orNull,
  type PartPolicyConfig,
  partPolicyKeys,
  partPolicyOptionsOf,
  rewardFunction,
  rewardOf,
} from "./policy-keys.ts";
import { RewardConfigError } from "./reward-config-error.ts";

/** Names become parts of columns, of actors' names and of records. */
const name = z
  .string()
  .regex(/^[A-Za-z_][\w-]*$/, "must be named by letters, digits, _ and -, no digit first");

const part = {
  ...partPolicyKeys,
  custom_reward_function: rewardFunction,
  num_workers: orNull(z.number().int().min(1), "null: its share of those of reward."),
};

const stageTable = z.record(
  name,
  z.strictObject({
    ...part,
    pass_on: option(
      z.enum(["cannot_tell", "invalid"]),
      "cannot_tell",
      "When the next one is asked: when it cannot tell, or has no score for whatever reason.",
    ),
  }),
);

const component = z.strictObject({
  ...part,
  weight: option(z.number(), 1, "How much it counts."),
  on_invalid: option(
    z.union([z.enum(["mask", "leave_out"]), z.number()]),
    "mask",
    "What a sample is worth where this one is invalid; a number: that score in its place.",
  ),
  cascade: option(stageTable, {}, "In place of its function."),
});

/** For the table of `reward`. */
export const partsKeys = {
  rewards: option(
    z.record(name, component),
    {},
    "In place of custom_reward_function several, by name: each has one of its own, weight (1), on_invalid (mask, leave_out, or a score in its place), or a cascade in place of its function, and what it has differently of the policies beside this (limits belong to each by itself), and num_workers, which else are shared by all.",
  ),
  combine: orNull(z.enum(["sum", "mean"]), "How the rewards become one score; null: sum."),
  cascade: option(
    stageTable,
    {},
    "Functions that are asked in order, by name: the next one only when the one before cannot tell (pass_on: cannot_tell), or has no score for whatever reason (invalid; not of the last one).",
  ),
};

export type RewardPartsConfig = Frozen<z.output<z.ZodObject<typeof partsKeys>>>;
type ComponentConfig = RewardPartsConfig["rewards"][string];
export type StageConfig = RewardPartsConfig["cascade"][string];
export type PartConfig = Omit<StageConfig, "pass_on">;

/** What it scores with, besides. */
interface Whole extends RewardPartsConfig, PartPolicyConfig {
  readonly num_workers: number;
  readonly custom_reward_function: FunctionConfig;
}

/** Whether several functions score a sample. */
export function hasParts(config: RewardPartsConfig): boolean {
  return kindOf(config) !== undefined;
}

function kindOf({
  rewards,
  cascade: stages,
}: RewardPartsConfig): "rewards" | "cascade" | undefined {
  if (Object.keys(rewards).length > 0) return "rewards";
  return Object.keys(stages).length > 0 ? "cascade" : undefined;
}

/** All of them by the places where they stand: those that are cascades, too, before their stages. */
export function partsOf({ rewards, cascade: stages }: RewardPartsConfig): [string, PartConfig][] {
  return [
    ...Object.entries(rewards).flatMap(([key, one]): [string, PartConfig][] => {
      const place = `reward.rewards.${key}`;
      return [[place, one], ...stagesAt(place, one.cascade)];
    }),
    ...stagesAt("reward", stages),
  ];
}

/** Those with a function, or the scorers by data source: not those that are cascades. */
export function functionPartsOf(config: RewardPartsConfig): [string, PartConfig][] {
  return partsOf(config).filter(([, one]) => !isCascade(one));
}

function stagesAt(
  place: string,
  stages: Readonly<Record<string, StageConfig>>,
): [string, PartConfig][] {
  return Object.entries(stages).map(([key, one]) => [`${place}.cascade.${key}`, one]);
}

function isCascade({ cascade: stages = {} }: PartConfig & Partial<ComponentConfig>): boolean {
  return Object.keys(stages).length > 0;
}

/** Throws RewardConfigError for what contradicts, would do nothing, or would be refused when the loop is made. */
export function checkParts(config: Whole): void {
  const { rewards, combine } = config;
  const kind = kindOf(config);
  if (kind !== "rewards" && combine !== null) {
    throw new RewardConfigError(
      "reward.combine",
      `is ${combine}, and there are no reward.rewards`,
      combine,
    );
  }
  if (kind === undefined) return;
  const [stage] = kind === "rewards" ? Object.keys(config.cascade) : [];
  if (stage !== undefined) {
    throw new RewardConfigError(
      `reward.cascade.${stage}`,
      "stands beside reward.rewards; a cascade may be one of these",
    );
  }
  checkOuter("reward", `reward.${kind}`, config);
  for (const [key, one] of Object.entries(rewards)) {
    if (!isCascade(one)) continue;
    const place = `reward.rewards.${key}`;
    checkOuter(place, `${place}.cascade`, one);
  }
  for (const [place, one] of partsOf(config)) checkPolicyKeys(place, one);
}

/** What belongs to one function cannot be said of several. */
function checkOuter(
  place: string,
  parts: string,
  outer: PartPolicyConfig & { readonly custom_reward_function: FunctionConfig },
): void {
  const { path } = outer.custom_reward_function;
  if (path !== null) {
    throw new RewardConfigError(
      `${place}.custom_reward_function.path`,
      `is ${path}, and there are ${parts}, which have functions of their own`,
      path,
    );
  }
  if (partPolicyOptionsOf(outer).limits !== undefined) {
    throw new RewardConfigError(
      `${place}.limits`,
      `belong to one endpoint: say them of those of ${parts} that call it`,
      outer.limits,
    );
  }
}

/** The same as options of a reward loop. `num_workers` is for all of them together, where they do not say their own. */
export function partsOptionsOf(config: Whole): Partial<RewardLoopOptions> {
  const { rewards, combine, cascade: stages } = config;
  const kind = kindOf(config);
  if (kind === undefined) return {};
  const functions = functionPartsOf(config).length;
  const workers = Math.max(1, Math.floor(config.num_workers / functions));
  if (kind === "cascade") return { workers, cascade: stagesOf(stages) };
  const components = Object.entries(rewards).map(([key, one]) => [key, componentOf(one)] as const);
  return {
    workers,
    rewards: Object.fromEntries(components),
    ...(combine === null ? {} : { combine }),
  };
}

function componentOf(one: ComponentConfig): RewardComponent {
  const { weight, on_invalid: onInvalid } = one;
  return {
    ...partOf(one),
    ...(isCascade(one) ? { cascade: stagesOf(one.cascade) } : {}),
    weight,
    onInvalid:
      typeof onInvalid === "number"
        ? { score: onInvalid }
        : onInvalid === "leave_out"
          ? "leaveOut"
          : onInvalid,
  };
}

function stagesOf(stages: Readonly<Record<string, StageConfig>>): Record<string, CascadeStage> {
  return Object.fromEntries(
    Object.entries(stages).map(([key, one]) => [
      key,
      { ...partOf(one), passOn: one.pass_on === "invalid" ? "invalid" : "cannotTell" },
    ]),
  );
}

function partOf(one: PartConfig): RewardPart {
  const { num_workers: workers, custom_reward_function: custom } = one;
  const reward = rewardOf(custom);
  return {
    ...partPolicyOptionsOf(one),
    ...(workers === null ? {} : { workers }),
    ...(reward === undefined ? {} : { reward }),
  };
}
