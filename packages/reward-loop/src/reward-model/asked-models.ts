/**
 * The reward models of a loop by name: all of them, the ones that a function asks, and the part of
 * them that the function sees. Starts nothing.
 */

import { resolve } from "node:path";
import { listed } from "../options/words.ts";
import { checkKeys, notAnOption, partName, partNameWords, placeOf } from "../options/read.ts";
import type { DiscriminativeUse, ModelSettings, RewardLoopSettings } from "../settings.ts";
import {
  checkModelOptions,
  defaultName,
  modelOptionsOf,
  onlyModel,
  variableOf,
} from "./model-options.ts";
import type { ModelPlace, RewardModelUse } from "./model-options.ts";

export interface NamedModel extends ModelPlace {
  readonly use: RewardModelUse;
}

/** The address of a reward model, and its token. */
export interface Router {
  /** host:port */
  readonly address: string;
  readonly token: string | undefined;
}

interface ModelChoice {
  /** The model by the name "default". */
  readonly rewardModel?: RewardModelUse | undefined;
  readonly rewardModels?: Readonly<Record<string, RewardModelUse>> | undefined;
}

/** Returns all reward models, the default one first. Throws RewardLoopOptionError. */
export function rewardModelsOf({ rewardModel, rewardModels }: ModelChoice): NamedModel[] {
  const models: NamedModel[] =
    rewardModel === undefined ? [] : [{ ...onlyModel, use: rewardModel }];
  if (rewardModels !== undefined) {
    const names = Object.keys(rewardModels);
    checkKeys("rewardModels", rewardModels, names);
    if (names.length === 0) notAnOption("rewardModels", "at least one, by name", "none");
    for (const [name, use] of Object.entries(rewardModels)) {
      const option = `rewardModels.${name}`;
      if (!partName.test(name)) notAnOption(option, partNameWords, name);
      if (name === defaultName && rewardModel !== undefined) {
        notAnOption(option, "left out with rewardModel, the model by that name", "given");
      }
      models.push({ name, option, use });
    }
  }
  for (const { option, use } of models) checkUse(option, use);
  for (const [index, model] of models.entries()) {
    for (const other of models.slice(0, index)) checkBeside(model, other);
  }
  return models;
}

function checkUse(option: string, use: RewardModelUse): void {
  checkModelOptions(option, modelOptionsOf(use));
  const { model } = use;
  if (typeof model !== "string" || model.trim() === "") {
    notAnOption(`${option}.model`, "the name under which its servers have it", model);
  }
}

/**
 * Two models have names, ports and GPUs apart; servers that one of them puts to sleep are its own.
 */
function checkBeside({ name, option, use }: NamedModel, other: NamedModel): void {
  if (variableOf(name) === variableOf(other.name)) {
    const wanted = `another name than ${other.name}, also in capitals and with _ for -`;
    notAnOption(option, wanted, name);
  }
  const port = portOf(use);
  if (port !== undefined && port === portOf(other.use)) {
    notAnOption(`${option}.router.port`, `another one than that of ${other.name}`, port);
  }
  if (use.sleeps !== true && other.use.sleeps !== true) return;
  const shared = use.servers?.find((server) => other.use.servers?.includes(server));
  if (shared === undefined) return;
  const wanted = `servers of its own: ${other.name} has one of them, too, and one of both sleeps`;
  notAnOption(`${option}.servers`, wanted, shared);
}

/** Undefined: any that is free. */
function portOf({ router: { port } = {} }: RewardModelUse): number | undefined {
  return port === 0 ? undefined : port;
}

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
  const told = asked.map((one): [string, ModelSettings] => [
    one.name,
    { ...aboutModel(one, pipeline.baseDirectory), ...routerOf(one) },
  ]);
  // A token goes to its own router only.
  const router = pipeline.rewardRouterAddress === undefined && main ? routerOf(main) : undefined;
  const asking = {
    ...(router && { rewardRouterAddress: router.address, rewardRouterToken: router.token }),
    rewardModel: main && aboutModel(main, pipeline.baseDirectory),
    rewardModels: told.length === 0 ? undefined : Object.fromEntries(told),
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
  return { engine, model, tokenizer: resolve(baseDirectory, tokenizer) };
}

/** Throws RewardLoopOptionError. */
function scoringUse(
  { use, option }: NamedModel,
  { address, token }: Router,
  baseDirectory: string,
): DiscriminativeUse {
  const { engine, model, policyTokenizer, maxRetries, timeoutMs } = use;
  const tokenizer = use.tokenizer && resolve(baseDirectory, use.tokenizer);
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
    policyTokenizer: policyTokenizer && resolve(baseDirectory, policyTokenizer),
    ...(maxRetries === undefined ? {} : { maxRetries }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  };
}
