/**
 * Refuses unused keys: well-written keys that nothing would read, of a manager that is not used, of
 * a section that is off, of a function or a service that is not named. The error says why, and what
 * to set instead, because the author of such a key believes that it works. A value equal to verl's
 * default is ignored, so that verl's own files can be read unchanged.
 */

import { rateLimitedOptions, sandboxFusionOptions } from "../../options/defaults/functions.ts";
import { writtenKey } from "../legacy-keys.ts";
import { functionPartsOf, hasParts, partsOf } from "../part-keys.ts";
import {
  defaultRewardConfig,
  hasOwnReward,
  isRateLimited,
  registeredManagerOf,
} from "../reward-keys.ts";
import type { RewardConfig } from "../reward-keys.ts";
import { RewardConfigError } from "../reward-config-error.ts";
import { type ConfigTree } from "@rayling/config-tree";
import type { UnusedKey } from "./unused-key.ts";
import { unusedManagerSettings } from "./unused-manager-settings.ts";
import { asksScorers } from "../model/named-models.ts";
import { unusedModelKeys } from "./unused-model-keys.ts";
import { unusedPartKeys } from "./unused-part-keys.ts";
import { unusedKeysOf, saidIn } from "./unused-table-keys.ts";

/**
 * Throws RewardConfigError for the first unused key, with the place where it is written: today's,
 * or that of verl 0.7.
 *
 * @param given the source of the configuration, without defaults
 */
export function refuseUnusedKeys(config: RewardConfig, given: ConfigTree): void {
  const isSaid = (key: string): boolean => writtenKey(given, key) !== undefined;
  const [unused] = [
    ...unusedLimits(config),
    ...unusedManagerKeys(config, given),
    ...unusedManagerSettings(config),
    ...unusedPartKeys(config),
    ...unusedModelKeys(config, isSaid("reward.reward_model.enable")),
    ...unusedScoreSettings(config),
    ...unusedSandboxKeys(config),
    ...unusedNames(config, isSaid),
  ];
  if (unused === undefined) return;
  const { key, value, why, instead } = unused;
  const place = writtenKey(given, key) ?? key;
  throw new RewardConfigError(place, `is ${JSON.stringify(value)}, ${why}`, value, instead);
}

/** Unused keys of the manager rate_limited; its limits have the names of a function's limits. */
function unusedLimits(config: RewardConfig): UnusedKey[] {
  if (isRateLimited(config)) return [];
  const [[place] = ["reward"]] = functionPartsOf(config);
  const { timeout } = config;
  const limits = saidIn(rateLimitedOptions, config, "reward").map((said) => ({
    ...said,
    instead: `${said.key.replace("reward", `${place}.limits`)}=${String(said.value)}`,
  }));
  const instead = `reward.attempt_timeout_ms=${1000 * timeout}`;
  const isSaid = timeout !== defaultRewardConfig.timeout;
  const why = `and only the manager rate_limited reads it, not ${config.reward_manager.name}`;
  return [...limits, ...(isSaid ? [{ key: "reward.timeout", value: timeout, instead }] : [])].map(
    (unused) => ({ ...unused, why }),
  );
}

function unusedManagerKeys(config: RewardConfig, given: ConfigTree): UnusedKey[] {
  const at = "reward.reward_manager";
  const { source, name, module } = config.reward_manager;
  // verl 0.7 has files that name a module beside a registered manager.
  const isOld = writtenKey(given, `${at}.module.path`) !== `${at}.module.path`;
  const named = [name, defaultRewardConfig.reward_manager.module.name];
  return [
    ...(source === "importlib" || module.path === null || isOld
      ? []
      : [
          {
            key: `${at}.module.path`,
            value: module.path,
            why: `and ${at}.source is register, which loads no module`,
            instead: `${at}.source=importlib`,
          },
        ]),
    ...(named.includes(module.name)
      ? []
      : [
          {
            key: `${at}.module.name`,
            value: module.name,
            why: `and nothing reads it: the manager is the one that ${at}.name says`,
            instead: `${at}.name=${module.name}`,
          },
        ]),
    ...(scoresAlone(config) && !["naive", "remote"].includes(name) && !isRateLimited(config)
      ? [
          {
            key: `${at}.name`,
            value: name,
            why: "and no manager is asked where a reward model scores by itself: give a reward.custom_reward_function.path, or leave it out",
          },
        ]
      : []),
  ];
}

/** verl passes them to the scorers by data source, and only without a custom function. */
function unusedScoreSettings(config: RewardConfig): UnusedKey[] {
  const given = Object.entries(config.compute_score_kwargs);
  const functions = hasParts(config) ? functionPartsOf(config).map(([, part]) => part) : [config];
  const areOwn = functions.every((one) => one.custom_reward_function.path !== null);
  const isAsked = asksScorers(config);
  const unused = given.filter(([key, value]) => !(isAsked && isScoreSetting(key, value)));
  return unused.map(([key, value]) => ({
    key: `reward.compute_score_kwargs.${key}`,
    value,
    ...whyUnused(key, areOwn, isAsked),
  }));
}

/** The one that there is. */
function isScoreSetting(key: string, value: unknown): boolean {
  return key === "lenient" && typeof value === "boolean";
}

function whyUnused(
  key: string,
  areOwn: boolean,
  isAsked: boolean,
): Pick<UnusedKey, "why" | "instead"> {
  if (areOwn) {
    return {
      why: "and it is of the scorers by data source, which a function of yours stands in for",
      instead: `reward.custom_reward_function.reward_kwargs.${key}`,
    };
  }
  if (!isAsked) {
    return {
      why: "and it is of the scorers by data source, which are not asked where a reward model scores by itself",
    };
  }
  return {
    why: "and the scorers by data source have no such setting here, only lenient, true or false; give a function that calls the one you want",
  };
}

function unusedSandboxKeys(config: RewardConfig): UnusedKey[] {
  const at = "reward.sandbox_fusion";
  const { url } = config.sandbox_fusion;
  if (url === null) return unusedKeysOf(sandboxFusionOptions, config.sandbox_fusion, at);
  const functions = hasParts(config) ? functionPartsOf(config).map(([, part]) => part) : [config];
  const areOwn = functions.every((one) => one.custom_reward_function.path !== null);
  if (asksScorers(config)) return [];
  const why = areOwn
    ? "and a function of yours is not told of it: give it what it needs in its reward_kwargs"
    : "and the scorers by data source, which ask it, are not asked where a reward model scores by itself";
  return [{ key: `${at}.url`, value: url, why }];
}

function unusedNames(config: RewardConfig, isSaid: (key: string) => boolean): UnusedKey[] {
  const { experiment_name: experiment, spent_before: before, reward_manager: manager } = config;
  const isGdpo = registeredManagerOf(config) === "gdpo";
  const parts = [config, ...partsOf(config).map(([, part]) => part)];
  const isCounted = parts.some(({ spend }) =>
    Object.values(spend.prices).some((price) => price !== null),
  );
  return [
    // The trainer's experiment name belongs to the run, and is never unused.
    ...(isGdpo || !isSaid("reward.experiment_name")
      ? []
      : [
          {
            key: "reward.experiment_name",
            value: experiment,
            why: `and only the manager gdpo is told of it, not ${manager.name}`,
            instead: "reward.reward_manager.name=gdpo",
          },
        ]),
    ...(isCounted || before === null
      ? []
      : [
          {
            key: "reward.spent_before",
            value: before,
            why: "and without reward.spend.prices nobody counts what is spent",
          },
        ]),
  ];
}

/** Whether a reward model scores by itself: no function of the user's asks it. */
function scoresAlone(config: RewardConfig): boolean {
  return !hasOwnReward(config) && !asksScorers(config);
}
