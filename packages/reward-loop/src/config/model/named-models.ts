/**
 * The reward models of a configuration by their names: `reward.reward_model`, which is called
 * default, and those of `reward.reward_models`; and which of them score by themselves.
 */

import { RewardLoopOptionError } from "../../errors.ts";
import type { RewardLoopOptions } from "../../compose/plan/loop-options.ts";
import { readPlan } from "../../compose/plan/read-plan.ts";
import { withRewardModels } from "../../compose/plan/reward-plan.ts";
import { rewardModelsOf } from "../../reward-model/loop-models.ts";
import { defaultName } from "../../reward-model/model-options.ts";
import { functionPartsOf, hasParts, partsOf } from "../part-keys.ts";
import { RewardConfigError } from "../reward-config-error.ts";
import type { RewardConfig } from "../reward-keys.ts";

export type ModelConfig = Omit<RewardConfig["reward_model"], "enable">;

export interface NamedModelConfig {
  readonly name: string;
  /** The place of its keys. */
  readonly at: string;
  readonly model: ModelConfig;
}

/** The enabled models, the default one first. */
export function rewardModelsIn({ reward_model, reward_models }: RewardConfig): NamedModelConfig[] {
  const { enable, ...model } = reward_model;
  return [
    ...(enable ? [{ name: defaultName, at: "reward.reward_model", model }] : []),
    ...Object.entries(reward_models).flatMap(([name, { enable: isOn, ...own }]) =>
      isOn ? [{ name, at: `reward.reward_models.${name}`, model: own }] : [],
    ),
  ];
}

/** Throws RewardConfigError. */
export function checkModels(config: RewardConfig): void {
  const models = rewardModelsIn(config);
  const isTwice = models.filter(({ name }) => name === defaultName).length > 1;
  if (isTwice) {
    throw new RewardConfigError(
      "reward.reward_models.default",
      "stands beside reward.reward_model, which is the model by that name",
    );
  }
  for (const { at, model } of models) {
    if (model.model_path !== null) continue;
    const problem = `is needed where ${at}.enable is true`;
    throw new RewardConfigError(`${at}.model_path`, problem, null);
  }
}

/** Names of models that score by themselves: they are asked where there is no function. */
export function scoringNames(config: RewardConfig): ReadonlySet<string> {
  return new Set(withoutFunction(config).flatMap((asked) => (asked.length === 1 ? asked : [])));
}

/**
 * Whether the scorers by data source score somewhere: there is no function, and no reward model in
 * its place.
 */
export function asksScorers(config: RewardConfig): boolean {
  return withoutFunction(config).some((asked) => asked.length === 0);
}

/** Returns the models that are asked, for each place without a custom function. */
function withoutFunction(config: RewardConfig): (readonly string[])[] {
  const names = rewardModelsIn(config).map(({ name }) => name);
  const usual = names.includes(defaultName) ? [defaultName] : names;
  const functions = hasParts(config) ? functionPartsOf(config) : [["reward", config] as const];
  return functions
    .filter(([, { custom_reward_function: own }]) => own.path === null)
    .map(([place]) => askedAt(config, place) ?? usual);
}

/** A stage has it from its cascade, and that from the loop. */
function askedAt(config: RewardConfig, place: string): readonly string[] | null {
  const [cascade = ""] = place.split(/\.cascade\.[^.]+$/);
  const said = [place, cascade].map(
    (at) => partsOf(config).find(([one]) => one === at)?.[1].asked_models ?? null,
  );
  return said.find((names) => names !== null) ?? config.asked_models;
}

/** Throws RewardConfigError for names of reward models that do not fit what functions ask. */
export function checkAsked(options: RewardLoopOptions): void {
  try {
    withRewardModels(readPlan(options), rewardModelsOf(options));
  } catch (error) {
    // Everything else is refused when the loop is made.
    if (!(error instanceof RewardLoopOptionError) || !isOfModels(error.option)) return;
    const { option, expected, value } = error;
    throw new RewardConfigError(keyOf(option), `is ${value}: must be ${inFiles(expected)}`, value);
  }
}

function isOfModels(option: string): boolean {
  return /^rewardModels?\b|\baskedModels$/.test(option);
}

function keyOf(option: string): string {
  return inFiles(`reward.${option}`);
}

/** Options by their keys. */
function inFiles(text: string): string {
  return text
    .replaceAll("askedModels", "asked_models")
    .replaceAll("rewardModel", "reward_model")
    .replaceAll("`reward`", "custom_reward_function.path");
}
