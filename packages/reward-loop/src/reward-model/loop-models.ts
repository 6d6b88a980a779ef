/** All reward models of a loop by name, checked one by one and against each other. */

import { isRecord } from "@rayling/reward-manager-registry/values";
import { checkOptions, notAnOption, partName, partNameWords } from "../options/read.ts";
import { rewardModelUseOptions } from "../options/defaults/model-use.ts";
import type { RewardModelUse } from "../options/defaults/reward-model.ts";
import {
  checkModelOptions,
  defaultName,
  modelOptionsOf,
  onlyModel,
  variableOf,
} from "./model-options.ts";
import type { ModelPlace } from "./model-options.ts";

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
    if (!isRecord(rewardModels)) notAnOption("rewardModels", "an object by names", rewardModels);
    if (Object.keys(rewardModels).length === 0)
      notAnOption("rewardModels", "at least one, by name", "none");
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
  checkOptions(rewardModelUseOptions, use, option);
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
