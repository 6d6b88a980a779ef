/**
 * The version of the reward function that gave a score: its module's text and its settings, and the
 * reward model that it asks. Modules that it imports and files of models are not included; neither
 * are a model's address and timeouts, which change no score.
 */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { resolveRewardModule } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { defaultName } from "../reward-model/model-options.ts";
import { moduleHere } from "./sent-modules.ts";
import type { PipelineSettings, RewardVersion } from "./settings.ts";
import { digestOf } from "../sample/sample-key.ts";

/** @param known for these settings; it is returned where the texts are what they were */
export function rewardVersion(settings: PipelineSettings, known?: RewardVersion): RewardVersion {
  const { reward, manager, managerOptions, tokenizer, baseDirectory } = settings;
  const specs = [reward, typeof manager === "string" ? undefined : manager, tokenizer];
  const texts = specs.map((spec) => textOf(spec, baseDirectory));
  if (known !== undefined && texts.every((text, at) => text === known.texts[at])) return known;
  const name = typeof manager === "string" ? manager : manager.name;
  const kwargs = specs.map((spec) => [spec?.name, spec?.rewardKwargs]);
  const { rewardModel } = settings;
  const models = namedModelsOf(settings);
  const all = [texts, name, managerOptions, kwargs, rewardModel, scorerOf(settings)];
  // Versions of functions without them are as they were.
  return { version: digestOf(models.length === 0 ? all : [...all, models]), texts };
}

/**
 * Returns all models that the function asks, if one has another name than "default": [name, engine,
 * model, tokenizer].
 */
function namedModelsOf({ rewardModels = {} }: PipelineSettings): (string | undefined)[][] {
  const all = Object.entries(rewardModels);
  if (all.every(([name]) => name === defaultName)) return [];
  return all
    .map(([name, { engine, model, tokenizer }]) => [name, engine, model, tokenizer])
    .toSorted(([one = ""], [other = ""]) => (one < other ? -1 : 1));
}

/**
 * Returns the digests that the version depends on, by names that users know (a digest, as a setting
 * may be a secret): where two versions differ, so does one of these. Throws why a module cannot be
 * read.
 */
export function rewardVersionParts(settings: PipelineSettings): Record<string, string> {
  const { reward, manager, managerOptions, tokenizer, rewardModel, baseDirectory } = settings;
  const ownManager = typeof manager === "string" ? undefined : manager;
  const modules = { "the reward module": reward, "the manager": ownManager, tokenizer };
  const parts: Record<string, unknown> = {
    "the manager's name": typeof manager === "string" ? manager : undefined,
    ...named("managerOptions", managerOptions),
    "the reward model": rewardModel,
    "the scorer": scorerOf(settings),
  };
  for (const [name, ...about] of namedModelsOf(settings)) {
    parts[`the reward model ${name}`] = about;
  }
  for (const [name, spec] of Object.entries(modules)) {
    if (spec === undefined) continue;
    parts[name] = readModule(spec, baseDirectory);
    parts[`${name}: its export`] = spec.name;
    const kwargs = name === "the reward module" ? "rewardKwargs" : `${name}: rewardKwargs`;
    Object.assign(parts, named(kwargs, spec.rewardKwargs));
  }
  const said = Object.entries(parts).filter(([, value]) => value !== undefined);
  return Object.fromEntries(said.map(([name, value]) => [name, digestOf(value).slice(0, 8)]));
}

function named(
  name: string,
  values: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [`${name}.${key}`, value ?? null]),
  );
}

/** The scorer without a custom function: the reward model by itself, or the default scorers. */
function scorerOf({ reward, discriminative, defaultScore }: PipelineSettings): unknown {
  if (discriminative !== undefined) {
    return [discriminative.tokenizer, discriminative.policyTokenizer];
  }
  if (reward !== undefined) return undefined;
  return [defaultScore.sandboxFusionUrl, defaultScore.memoryLimitMb, defaultScore.lenient];
}

function textOf(spec: RewardSpec | undefined, baseDirectory: string): string {
  if (spec === undefined) return "";
  try {
    return readModule(spec, baseDirectory);
  } catch {
    // The loader reports why it cannot be read.
    return spec.path;
  }
}

function readModule({ path }: RewardSpec, baseDirectory: string): string {
  return readFileSync(fileURLToPath(resolveRewardModule(path, baseDirectory, moduleHere)), "utf8");
}
