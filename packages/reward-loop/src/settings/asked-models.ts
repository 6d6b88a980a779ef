/**
 * The reward models that a function asks, and the part of them that it sees in its settings. Starts
 * nothing.
 */

import { resolve } from "node:path";
import { notAnOption, placeOf } from "../options/read.ts";
import type { RewardModelUse } from "../options/defaults/reward-model.ts";
import { listed } from "../options/describe-options.ts";
import type { NamedModel, Router } from "../reward-model/loop-models.ts";
import { defaultName } from "../reward-model/model-options.ts";
import { isHubPath } from "@rayling/data-proto";
import type { DiscriminativeUse, ModelSettings, RewardLoopSettings } from "./settings.ts";

/** The settings of a function with the models that it asks. */
export interface Asking {
  readonly settings: RewardLoopSettings;
  /** The names of those that it asks. */
  readonly asked: readonly string[];
}

/**
 * The settings of a function that knows its reward models. Throws RewardLoopOptionError.
 *
 * @param place of its options; "" for those of the loop
 * @param routers by name; empty as long as nothing runs
 */
export function askingSettings(
  settings: RewardLoopSettings,
  place: string,
  models: readonly NamedModel[],
  routers: ReadonlyMap<string, Router>,
): Asking {
  const { pipeline } = settings;
  const asked = askedOf(pipeline, placeOf(place, "askedModels"), models);
  const [main] = asked.length === 1 ? asked : asked.filter(({ name }) => name === defaultName);
  const routerOf = ({ name }: NamedModel): Router =>
    routers.get(name) ?? { address: "", token: undefined };
  const scoring = pipeline.reward === undefined ? main : undefined;
  const known = asked.map((one): [string, ModelSettings] => [
    one.name,
    { ...aboutModel(one, pipeline.baseDirectory), ...routerOf(one) },
  ]);
  // A token goes to its own router only.
  const router = pipeline.rewardRouterAddress === undefined && main ? routerOf(main) : undefined;
  const asking = {
    ...(router && { rewardRouterAddress: router.address, rewardRouterToken: router.token }),
    rewardModel: main && aboutModel(main, pipeline.baseDirectory),
    rewardModels: known.length === 0 ? undefined : Object.fromEntries(known),
    discriminative: scoring && scoringUse(scoring, routerOf(scoring), pipeline.baseDirectory),
  };
  return {
    settings: { ...settings, pipeline: { ...pipeline, ...asking } },
    asked: asked.map(({ name }) => name),
  };
}

function askedOf(
  { reward, askedModels }: RewardLoopSettings["pipeline"],
  option: string,
  models: readonly NamedModel[],
): NamedModel[] {
  const names = models.map(({ name }) => name);
  const wanted =
    names.length === 0 ? "left out without rewardModels" : `some of ${names.join(", ")}`;
  for (const [index, name] of (askedModels ?? []).entries()) {
    if (!names.includes(name)) notAnOption(option, wanted, name);
    if (askedModels?.indexOf(name) !== index) notAnOption(option, "each name once", name);
  }
  if (reward !== undefined || askedModels !== undefined) {
    const asked = models.filter(({ name }) => askedModels?.includes(name) ?? true);
    if (reward === undefined && asked.length > 1) {
      notAnOption(option, "one name, where there is no `reward` that asks several", askedModels);
    }
    return asked;
  }
  const scoring = models.find(({ name }) => name === defaultName) ?? models[0];
  if (models.length > 1 && scoring?.name !== defaultName) {
    const one = `the name of the model that scores, ${listed(names, "or")}, as there is no \`reward\``;
    notAnOption(option, one, askedModels);
  }
  return scoring === undefined ? [] : [scoring];
}

function aboutModel(
  { use }: NamedModel,
  baseDirectory: string,
): Pick<RewardModelUse, "engine" | "model" | "tokenizer"> {
  const { engine, model, tokenizer } = use;
  if (tokenizer === undefined) return { engine, model };
  return { engine, model, tokenizer: modelFolder(baseDirectory, tokenizer) };
}

/** A name of the Hugging Face Hub stays as it is. */
function modelFolder(baseDirectory: string, path: string): string {
  return isHubPath(path) ? path : resolve(baseDirectory, path);
}

/** Throws RewardLoopOptionError. */
function scoringUse(
  { use, option }: NamedModel,
  { address, token }: Router,
  baseDirectory: string,
): DiscriminativeUse {
  const { engine, model, policyTokenizer, maxRetries, timeoutMs } = use;
  const tokenizer = use.tokenizer && modelFolder(baseDirectory, use.tokenizer);
  if (tokenizer === undefined) {
    const wanted = "the folder of the reward model's tokenizer";
    return notAnOption(`${option}.tokenizer`, wanted, tokenizer);
  }
  return {
    engine,
    model,
    address,
    token,
    tokenizer,
    policyTokenizer: policyTokenizer && modelFolder(baseDirectory, policyTokenizer),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}
