/**
 * Unused keys of `reward.reward_model`: all of them where `enable` is not set (an explicit false
 * keeps the others for later), and the settings of servers where these already run. The number of
 * GPUs of such servers may be set; keys about a policy's texts affect no server (engine-flags).
 */

import { isOff, isOfTexts } from "../model/engine-flags.ts";
import { defaultRewardConfig } from "../reward-keys.ts";
import { rolloutDefaults } from "../model/engine-flags.ts";
import type { RewardConfig } from "../reward-keys.ts";
import { isTree } from "@rayling/config-tree";
import { type ConfigValue } from "@rayling/config-tree";
import { routerOptions } from "../../options/defaults/reward-model.ts";
import type { UnusedKey } from "./unused-key.ts";
import { saidIn } from "./unused-table-keys.ts";

/** Defaults of verl's reward.yaml, besides those that a server is given. */
const otherDefaults: Readonly<Record<string, ConfigValue>> = {
  expert_parallel_size: 1,
  scheduling_policy: "fcfs",
  enable_chunked_prefill: true,
  enable_prefix_caching: true,
  disable_log_stats: true,
};

/**
 * @param isSwitched whether `reward.reward_model.enable` is set; a model with a name is enabled by
 * default
 */
export function unusedModelKeys(config: RewardConfig, isSwitched: boolean): UnusedKey[] {
  return [
    ...unusedKeysAt("reward.reward_model", config.reward_model, isSwitched),
    ...Object.entries(config.reward_models).flatMap(([name, model]) =>
      unusedKeysAt(`reward.reward_models.${name}`, model, true),
    ),
  ];
}

function unusedKeysAt(
  at: string,
  config: RewardConfig["reward_model"],
  isSwitched: boolean,
): UnusedKey[] {
  const { enable, servers, allowed_paths: paths, router, rollout } = config;
  const settings = Object.entries(rollout)
    .filter(([key, value]) => !isDefault(key, value))
    .map(([key, value]) => ({ key: `${at}.rollout.${key}`, value }));
  if (enable && servers.length > 0) {
    const why = `and the servers of ${at}.servers run already: start them with it`;
    return settings
      .filter(({ key }) => key !== `${at}.rollout.free_cache_engine`)
      .map((setting) => ({ ...setting, why }));
  }
  if (enable || isSwitched) return [];
  const set = [
    ...(["enable_resource_pool", "n_gpus_per_node", "nnodes", "model_path"] as const)
      .filter((key) => config[key] !== defaultRewardConfig.reward_model[key])
      .map((key) => ({ key: `${at}.${key}`, value: config[key] })),
    ...(servers.length === 0 ? [] : [{ key: `${at}.servers`, value: servers }]),
    ...(paths.length === 0 ? [] : [{ key: `${at}.allowed_paths`, value: paths }]),
    ...saidIn(routerOptions, router, `${at}.router`),
    ...settings,
  ];
  const why = `and ${at}.enable is false`;
  return set.map((one) => ({ ...one, why, instead: `${at}.enable=true` }));
}

/** verl has none for the engine's name: it may stand there, and wait. */
function isDefault(key: string, value: unknown): boolean {
  if (key === "name" || value === null || isOff(value) || isOfTexts(key)) return true;
  if (isTree(value) && Object.keys(value).length === 0) return true;
  return value === { ...rolloutDefaults, ...otherDefaults }[key];
}
