/**
 * Reads verl's configuration of rewards, from its YAML files (reward-keys) to the options of a
 * loop. Reading is strict: a misspelt key is an error that names the nearest one, never a missing
 * setting.
 */

import { dirname, resolve } from "node:path";
import {
  applyOverrides,
  composeConfig,
  isTree,
  merged,
  resolveReferences,
  treeOf,
} from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import { readOptions } from "@rayling/config-tree/options";
import type { RewardLoopOptions } from "../compose/plan/loop-options.ts";
import {
  loopOptions,
  rateLimitedOptions,
  sandboxFusionOptions,
} from "../options/defaults/functions.ts";
import { rolloutDefaults, rolloutKeys } from "./model/engine-flags.ts";
import { refuseUnusedKeys } from "./unused-keys/refuse-unused-keys.ts";
import { isFreeLegacyKey, legacyKeys, withoutLegacyKeys } from "./legacy-keys.ts";
import { managerOptionsOf } from "./manager-options.ts";
import { checkParts, functionPartsOf, hasParts } from "./part-keys.ts";
import {
  defaultRewardConfig,
  isRateLimited,
  registeredManagerOf,
  rewardOptions,
} from "./reward-keys.ts";
import type { RewardConfig } from "./reward-keys.ts";
import { checkAsked, checkModels } from "./model/named-models.ts";
import { rewardModelOptionsOf } from "./model/reward-model-use.ts";
import { onlyRunKeys, runKeys, withRunKeys } from "./run-keys.ts";
import { optionsOf } from "./table-options.ts";
import { asRewardError, RewardConfigError } from "./reward-config-error.ts";

/**
 * Reads the rewards of a parsed YAML configuration: today's keys under `reward`, or those of verl
 * 0.7 at the root. Of the rest it looks only at keys that rewards use (run-keys).
 *
 * Throws RewardConfigError, which names the key, its value and the nearest key; also for an unused
 * key, unless it has verl's default value.
 */
export function readRewardConfig(
  tree: Readonly<Record<string, unknown>>,
  overrides: readonly string[] = [],
): RewardConfig {
  return asRewardError(() => {
    if (!isTree(tree)) throw new RewardConfigError("the configuration", "must hold keys", tree);
    return configOf(givenOf(overridden(tree, overrides)));
  });
}

/**
 * Changes any key that the configuration has: rewards may refer to it, and a command line is that
 * of the whole run. Beyond those only keys of rewards are known.
 */
function overridden(tree: ConfigTree, overrides: readonly string[]): ConfigTree {
  return applyOverrides(tree, overrides, {
    // Defaults are not in the tree: they were set by nobody, and contradict no key at an old place.
    known: { ...knownRewardKeys, ...runKeys },
    isFree: isFreeLegacyKey,
  });
}

/** Returns the keys of rewards in a configuration. */
function givenOf(tree: ConfigTree): ConfigTree {
  const rewards = Object.entries(tree).filter(([key]) => rewardRoots.has(key));
  return withoutTargets({ ...Object.fromEntries(rewards), ...onlyRunKeys(tree) });
}

function configOf(given: ConfigTree): RewardConfig {
  const { reward = {} } = withoutLegacyKeys(given);
  if (!isTree(reward)) throw new RewardConfigError("reward", "must hold keys", reward);
  const config = checked(withRunKeys(reward, given));
  refuseUnusedKeys(config, given);
  return config;
}

/** Names of verl's own classes, in its YAML files. */
function withoutTargets(tree: ConfigTree): ConfigTree {
  const entries = Object.entries(tree).filter(([key]) => key !== "_target_");
  return Object.fromEntries(
    entries.map(([key, value]) => [key, isTree(value) ? withoutTargets(value) : value]),
  );
}

const rewardRoots: ReadonlySet<string> = new Set([
  "reward",
  "reward_manager",
  "reward_model",
  "custom_reward_function",
  "sandbox_fusion",
]);

/** verl's own files lack these, so that there they are added, not changed. */
const added = ["max_concurrent", "max_rpm", "max_tpm", "estimated_tokens_per_request", "timeout"];

const defaults = treeOf(defaultRewardConfig);

/** All known keys with their defaults at their present places, and null at their old places. */
export const knownRewardKeys: ConfigTree = {
  ...legacyKeys,
  reward: {
    ...defaults,
    ...Object.fromEntries(added.map((key) => [key, null])),
    reward_model: {
      ...treeOf(defaults["reward_model"]),
      rollout: { ...Object.fromEntries(rolloutKeys.map((key) => [key, null])), ...rolloutDefaults },
    },
  },
};

function checked(reward: unknown): RewardConfig {
  return consistent(readOptions(rewardOptions, reward, { prefix: "reward." }) as RewardConfig);
}

function consistent(config: RewardConfig): RewardConfig {
  const { source, module } = config.reward_manager;
  if (source === "importlib" && module.path === null) {
    throw new RewardConfigError(
      "reward.reward_manager.module.path",
      "is needed where reward.reward_manager.source is importlib",
      null,
    );
  }
  checkModels(config);
  checkParts(config);
  return config;
}

/**
 * Reads a YAML file with the files of its folder that it stands on (`defaults`), and resolves its
 * references. Rejects with RewardConfigError, also for a file that cannot be read, or is not YAML
 * (with its line).
 */
export async function loadRewardConfig(
  path: string,
  overrides: readonly string[] = [],
): Promise<RewardConfig> {
  return asRewardError(() => {
    const file = resolve(path);
    const composed = composeConfig(file, { folders: [dirname(file)] }, overrides);
    const tree = overridden(composed.tree, composed.overrides);
    const among = merged({ reward: defaults }, tree);
    return configOf(resolveReferences(givenOf(tree), { among }));
  });
}

/**
 * Returns the configuration as options of a reward loop. Keys that the loop has no option for
 * belong to the manager. Throws RewardConfigError for a reward model whose servers cannot be
 * started so.
 */
export function rewardLoopOptionsOf(config: RewardConfig): RewardLoopOptions {
  const { reward_manager: manager, reward_kwargs: kwargs } = config;
  const { policy_tokenizer: policyTokenizer, experiment_name: experimentName } = config;
  const isLimited = isRateLimited(config);
  const registered = registeredManagerOf(config);
  const sandboxFusion = optionsOf(sandboxFusionOptions, config.sandbox_fusion);
  const functions = functionPartsOf(config).length;
  const options: RewardLoopOptions = {
    // In verl each worker has a pool of as many processes as there are workers.
    ...(registered === "remote" ? { executors: config.num_workers } : {}),
    ...(policyTokenizer === null ? {} : { tokenizer: policyTokenizer }),
    ...rewardModelOptionsOf(config),
    ...(sandboxFusion.url === undefined ? {} : { sandboxFusion }),
    ...(config.compute_score_kwargs["lenient"] === true
      ? { computeScoreKwargs: { lenient: true } }
      : {}),
    manager: registered ?? { path: manager.module.path ?? "", name: manager.name },
    managerOptions: isLimited
      ? optionsOf(rateLimitedOptions, config)
      : managerOptionsOf(
          registered === "gdpo" ? { experiment_name: experimentName, ...kwargs } : kwargs,
        ),
    ...(isLimited ? { timeoutMs: 1000 * config.timeout } : {}),
    ...(optionsOf(loopOptions, config) as RewardLoopOptions),
    // The number for all parts together, unless they have their own.
    ...(hasParts(config)
      ? { workers: Math.max(1, Math.floor(config.num_workers / functions)) }
      : {}),
  };
  checkAsked(options);
  return options;
}

/** Returns the paths of all modules that it names, including those of the judge at a cap. */
export function rewardPathsOf(config: RewardConfig): string[] {
  const parts = functionPartsOf(config).map(([, part]) => part);
  const functions = [config, ...parts, ...Object.values(config.rewards)].flatMap(
    ({ custom_reward_function: own, spend }) => [own.path, spend.when_reached.path],
  );
  return [...new Set(functions.filter((path) => path !== null))];
}
