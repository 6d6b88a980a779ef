/**
 * `reward.reward_model` as the loop's option `rewardModel`: servers that run already (`servers`, a key of ours), or as many as the GPUs of this machine hold, started by their engine's own
 * command with verl's settings as its flags (engine-flags).
 */

import { existsSync } from "node:fs";
import { join } from "node:path";
import { RewardLoopOptionError } from "../../errors.ts";
import { routerOptions, type RouterTable } from "../../options/reward-model.ts";
import { checkRouterOptions } from "../../reward-model/router-options.ts";
import type { RouterOptions } from "../../reward-model/router-options.ts";
import type { RewardModelUse } from "../../settings.ts";
import { keyNameOf } from "../table-keys.ts";
import { optionsOf } from "../table-options.ts";
import { flagsOf, rolloutDefaults } from "./engine-flags.ts";
import { defaultRewardConfig } from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import { RewardConfigError } from "../reward-config-error.ts";
import { type ConfigValue } from "@rayling/config-tree";

type Engine = RewardModelUse["engine"];

const at = "reward.reward_model";

/**
 * Undefined where it is not enabled. Throws RewardConfigError.
 *
 * @param scoresItself there is no score function that would ask it
 */
export function rewardModelUseOf(
  config: RewardConfig["reward_model"],
  scoresItself: boolean,
): RewardModelUse | undefined {
  const { enable, servers, model_path: path } = config;
  if (!enable) return undefined;
  const model = path ?? "";
  const rollout = settingsOf(config);
  const engine = engineOf(rollout["name"]);
  return {
    engine,
    model,
    ...(servers.length > 0
      ? { servers }
      : { launch: launchOf(config, { engine, rollout, scoresItself }) }),
    ...routerOf(config),
    // A function of one's own gets it, and may do without: the model may be one that only its servers have.
    ...(scoresItself || existsSync(join(model, "tokenizer.json")) ? { tokenizer: model } : {}),
    sleeps: sleeps(config, rollout),
  };
}

/** The options of its router that are said. Throws RewardConfigError. */
function routerOf(config: RewardConfig["reward_model"]): Pick<RewardModelUse, "router"> {
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

/** Beside the policy, whose memory it has while that does not need it. Servers that run already are others', too: they sleep only where the configuration says so itself. */
function sleeps(config: RewardConfig["reward_model"], rollout: Rollout): boolean {
  const isOurs = config.servers.length === 0;
  const isSaid = isOurs ? rollout : (config.rollout as Rollout);
  return isSaid["free_cache_engine"] === true && !config.enable_resource_pool;
}

type Rollout = Readonly<Record<string, ConfigValue>>;

/** With verl's defaults, and without what is null. */
function settingsOf({ rollout }: RewardConfig["reward_model"]): Rollout {
  const all = Object.entries({ ...rolloutDefaults, ...rollout }) as [string, ConfigValue][];
  return Object.fromEntries(all.filter(([, value]) => value !== null));
}

function engineOf(name: ConfigValue = "vllm"): Engine {
  if (name === "vllm" || name === "sglang") return name;
  throw new RewardConfigError(`${at}.rollout.name`, "must be vllm or sglang", name);
}

interface Launching {
  readonly engine: Engine;
  readonly rollout: Rollout;
  readonly scoresItself: boolean;
}

function launchOf(
  config: RewardConfig["reward_model"],
  { engine, rollout, scoresItself }: Launching,
): NonNullable<RewardModelUse["launch"]> {
  const gpusPerReplica = gpusOf(rollout);
  const replicas = replicasOf(config, gpusPerReplica);
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
    // Its paths for sleeping are there for development only.
    ...(engine === "vllm" && sleeps(config, rollout) ? { env: { VLLM_SERVER_DEV_MODE: "1" } } : {}),
  };
}

function gpusOf(rollout: Rollout): number {
  return ["tensor", "pipeline"].reduce(
    (product, kind) => product * sizeOf(rollout, `${kind}_model_parallel_size`),
    sizeOf(rollout, "data_parallel_size"),
  );
}

function sizeOf(rollout: Rollout, key: string): number {
  const size = rollout[key];
  if (Number.isSafeInteger(size) && (size as number) > 0) return size as number;
  throw new RewardConfigError(`${at}.rollout.${key}`, "must be a whole number above 0", size);
}

function replicasOf(config: RewardConfig["reward_model"], gpusPerReplica: number): number {
  const { n_gpus_per_node: own, nnodes, shared_gpus: shared } = config;
  if (nnodes > 1) {
    throw new RewardConfigError(
      `${at}.nnodes`,
      `is ${nnodes}: servers are started on this machine only; start them and name them in ${at}.servers`,
      nnodes,
    );
  }
  // verl's default of the policy's is that of the reward model's own.
  const { n_gpus_per_node: standard } = defaultRewardConfig.reward_model;
  const [key, gpus] = nnodes === 0 ? ["shared_gpus", shared ?? standard] : ["n_gpus_per_node", own];
  if (gpus === 0 || gpus % gpusPerReplica !== 0) {
    throw new RewardConfigError(
      `${at}.${key}`,
      `is ${gpus}, which is no multiple of the ${gpusPerReplica} that one server has (tensor, data and pipeline parallel)`,
      gpus,
    );
  }
  return gpus / gpusPerReplica;
}
