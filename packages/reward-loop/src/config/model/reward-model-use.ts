/**
 * Turns a reward model of the configuration into the loop's options: servers that already run
 * (`servers`, an extension of verl), or as many as the GPUs of this machine hold, started by the
 * engine's own command with verl's settings as its flags (engine-flags).
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { RewardLoopOptionError } from "../../errors.ts";
import { routerOptions, type RouterTable } from "../../options/defaults/reward-model.ts";
import { checkRouterOptions } from "../../reward-model/router-options.ts";
import type { RouterOptions } from "../../options/defaults/reward-model.ts";
import type { RewardModelUse } from "../../settings/settings.ts";
import { keyNameOf } from "../table-keys.ts";
import { optionsOf } from "../table-options.ts";
import type { RewardLoopOptions } from "../../compose/plan/loop-options.ts";
import { flagsOf, rolloutDefaults } from "./engine-flags.ts";
import { rewardModelsIn, scoringNames } from "./named-models.ts";
import type { ModelConfig, NamedModelConfig } from "./named-models.ts";
import { defaultRewardConfig } from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import { RewardConfigError } from "../reward-config-error.ts";
import { type ConfigValue, treeOf } from "@rayling/config-tree";

type Engine = RewardModelUse["engine"];

/** The place of a model among the others of the loop. */
interface Among {
  /** Whether it scores where there is no function that would ask it. */
  readonly scoresItself: boolean;
  /** The GPUs before it are others'. */
  readonly firstGpu: number;
}

/** Throws RewardConfigError. */
function rewardModelUseOf(named: NamedModelConfig, among: Among): RewardModelUse {
  const { at, model: config } = named;
  const { servers, model_path: path } = config;
  const model = path ?? "";
  const rollout = settingsOf(config);
  const engine = engineOf(rollout["name"], at);
  const { scoresItself } = among;
  return {
    engine,
    model,
    ...(servers.length > 0
      ? { servers }
      : { launch: launchOf(named, { engine, rollout, ...among }) }),
    ...routerOf(named),
    // A custom function gets the tokenizer, but may do without: perhaps only the servers have the
    // model.
    ...(scoresItself || existsSync(join(model, "tokenizer.json")) ? { tokenizer: model } : {}),
    sleeps: sleeps(config, rollout),
  };
}

/** The options of a loop that name its reward models. Throws RewardConfigError. */
export function rewardModelOptionsOf(
  config: RewardConfig,
): Pick<RewardLoopOptions, "rewardModel" | "rewardModels"> {
  const models = rewardModelsIn(config);
  const scoring = scoringNames(config);
  const firstGpus = firstGpusOf(models);
  checkMemory(models);
  const { policy_tokenizer: policyTokenizer } = config;
  const uses = models.map((named): [NamedModelConfig, RewardModelUse] => {
    const { name } = named;
    const among = { scoresItself: scoring.has(name), firstGpu: firstGpus.get(name) ?? 0 };
    const use = rewardModelUseOf(named, among);
    return [named, policyTokenizer === null ? use : { ...use, policyTokenizer }];
  });
  const rewardModel = uses.find(([{ at }]) => at === "reward.reward_model")?.[1];
  const others = uses.filter(([{ at }]) => at !== "reward.reward_model");
  const rewardModels = Object.fromEntries(others.map(([{ name }, use]) => [name, use]));
  return {
    ...(rewardModel === undefined ? {} : { rewardModel }),
    ...(others.length === 0 ? {} : { rewardModels }),
  };
}

/**
 * Models with GPUs of their own have them one behind the other, after those that are shared with
 * the policy.
 */
function firstGpusOf(models: readonly NamedModelConfig[]): ReadonlyMap<string, number> {
  const started = models.filter(({ model }) => model.servers.length === 0);
  const isShared = ({ model }: NamedModelConfig): boolean => model.nnodes === 0;
  const shared = started.filter(isShared).map(({ model }) => gpusFor(model).gpus);
  let next = Math.max(0, ...shared);
  return new Map(
    started.map((one) => {
      if (isShared(one)) return [one.name, 0];
      const first = next;
      next += gpusFor(one.model).gpus;
      return [one.name, first];
    }),
  );
}

/** Models that share the policy's GPUs are awake together. Throws RewardConfigError. */
function checkMemory(models: readonly NamedModelConfig[]): void {
  let sum = 0;
  for (const { at, model } of models) {
    if (model.servers.length > 0 || model.nnodes !== 0) continue;
    const share = settingsOf(model)["gpu_memory_utilization"];
    if (typeof share !== "number") continue;
    sum += share;
    if (sum <= 1) continue;
    throw new RewardConfigError(
      `${at}.rollout.gpu_memory_utilization`,
      `is ${share}, and with the other reward models on these GPUs ${Number(sum.toFixed(3))} of their memory`,
      share,
    );
  }
}

/** The options of its router that are said. Throws RewardConfigError. */
function routerOf({ at, model: config }: NamedModelConfig): Pick<RewardModelUse, "router"> {
  const { allowed_paths: allowedPaths } = config;
  const said: RouterOptions = {
    ...optionsOf<RouterTable>(routerOptions, config.router),
    ...(allowedPaths.length === 0 ? {} : { allowedPaths }),
  };
  try {
    checkRouterOptions("", said);
  } catch (error) {
    if (!(error instanceof RewardLoopOptionError)) throw error;
    const { option, expected, value } = error;
    const key = keyOfRouterOption(option);
    throw new RewardConfigError(`${at}.${key}`, `is ${value}: must be ${expected}`, value);
  }
  return Object.keys(said).length === 0 ? {} : { router: said };
}

function keyOfRouterOption(option: string): string {
  return option === "allowedPaths" ? "allowed_paths" : `router.${keyNameOf(routerOptions, option)}`;
}

/**
 * A model beside the policy uses the policy's memory while that does not need it. Running servers
 * may have other users: they sleep only where the configuration says so.
 */
function sleeps(config: ModelConfig, rollout: Rollout): boolean {
  const isOurs = config.servers.length === 0;
  const isDefault = isDeepStrictEqual(config.rollout, defaultRewardConfig.reward_model.rollout);
  const own: Readonly<Record<string, unknown>> = isDefault ? {} : config.rollout;
  const isSaid = isOurs ? rollout : own;
  return isSaid["free_cache_engine"] === true && !config.enable_resource_pool;
}

type Rollout = Readonly<Record<string, ConfigValue>>;

/** Adds verl's defaults and removes nulls. */
function settingsOf({ rollout }: ModelConfig): Rollout {
  const all = Object.entries(treeOf({ ...rolloutDefaults, ...rollout }));
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

function engineOf(name: ConfigValue = "vllm", at: string): Engine {
  if (name === "vllm" || name === "sglang") return name;
  throw new RewardConfigError(`${at}.rollout.name`, "must be vllm or sglang", name);
}

interface Launching extends Among {
  readonly engine: Engine;
  readonly rollout: Rollout;
}

function launchOf(
  { at, model: config }: NamedModelConfig,
  { engine, rollout, scoresItself, firstGpu }: Launching,
): NonNullable<RewardModelUse["launch"]> {
  const gpusPerReplica = gpusOf(rollout, at);
  const replicas = replicasOf({ at, model: config }, gpusPerReplica);
  const { model_path: path } = config;
  const model = path ?? "";
  const address = ["--host", "127.0.0.1", "--port", "{port}"];
  const start =
    engine === "vllm"
      ? ["serve", model, ...address]
      : [
          "-m",
          "sglang.launch_server",
          "--model-path",
          model,
          ...address,
          ...(scoresItself ? ["--is-embedding"] : []),
        ];
  return {
    command: engine === "vllm" ? "vllm" : "python3",
    args: [...start, ...flagsOf(engine, rollout, `${at}.rollout`)],
    replicas,
    gpusPerReplica,
    ...(firstGpu === 0 ? {} : { firstGpu }),
    // Its paths for sleeping are there for development only.
    ...(engine === "vllm" && sleeps(config, rollout) ? { env: { VLLM_SERVER_DEV_MODE: "1" } } : {}),
  };
}

function gpusOf(rollout: Rollout, at: string): number {
  return ["tensor", "pipeline"].reduce(
    (product, kind) => product * sizeOf(rollout, `${kind}_model_parallel_size`, at),
    sizeOf(rollout, "data_parallel_size", at),
  );
}

function sizeOf(rollout: Rollout, key: string, at: string): number {
  const size = rollout[key];
  if (typeof size === "number" && Number.isSafeInteger(size) && size > 0) return size;
  throw new RewardConfigError(`${at}.rollout.${key}`, "must be a whole number above 0", size);
}

function replicasOf(
  { at, model }: Pick<NamedModelConfig, "at" | "model">,
  gpusPerReplica: number,
): number {
  const { nnodes } = model;
  if (nnodes > 1) {
    throw new RewardConfigError(
      `${at}.nnodes`,
      `is ${nnodes}: servers are started on this machine only; start them and name them in ${at}.servers`,
      nnodes,
    );
  }
  const { key, gpus } = gpusFor(model);
  if (gpus === 0 || gpus % gpusPerReplica !== 0) {
    throw new RewardConfigError(
      `${at}.${key}`,
      `is ${gpus}, which is no multiple of the ${gpusPerReplica} that one server has (tensor, data and pipeline parallel)`,
      gpus,
    );
  }
  return gpus / gpusPerReplica;
}

/** How many GPUs its servers have together, and the key that says so. */
function gpusFor({ n_gpus_per_node: own, nnodes, shared_gpus: shared }: ModelConfig): {
  readonly key: string;
  readonly gpus: number;
} {
  // verl's default of the policy's is that of the reward model's own.
  const { n_gpus_per_node: standard } = defaultRewardConfig.reward_model;
  return nnodes === 0
    ? { key: "shared_gpus", gpus: shared ?? standard }
    : { key: "n_gpus_per_node", gpus: own };
}
