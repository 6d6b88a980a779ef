/**
 * Options of a reward model, and what may stand there. Errors name the option by its place: the
 * only model of a loop stands at `rewardModel`, one of several at `rewardModels.judge`.
 */

import { newToken } from "@rayling/core/http";
import { withScheme } from "../client/address.ts";
import { rewardModelOptions } from "../options/defaults/model-use.ts";
import { checkOptions, isUrl, notAnOption } from "../options/read.ts";
import type { RewardModelOptions, RewardModelUse } from "../options/defaults/reward-model.ts";
import { engines } from "./engines.ts";
import { checkKey, checkRouterOptions, checkToken } from "./router-options.ts";

/** The name of a model, and the option where it stands. */
export interface ModelPlace {
  /** The name of the model. */
  readonly name: string;
  /** The option that describes it, as `rewardModels.judge`. */
  readonly option: string;
}

/** The default model of a loop has this name. */
export const defaultName = "default";

export const onlyModel: ModelPlace = { name: defaultName, option: "rewardModel" };

/** The options of the manager: without those that only the loop reads. */
export function modelOptionsOf({
  model: _model,
  tokenizer: _tokenizer,
  policyTokenizer: _policyTokenizer,
  maxRetries: _maxRetries,
  timeoutMs: _timeoutMs,
  ...options
}: RewardModelUse): RewardModelOptions {
  return options;
}

/** Throws RewardLoopOptionError. */
export function checkModelOptions(at: string, options: RewardModelOptions): void {
  checkOptions(rewardModelOptions, options, at);
  const { engine, servers = [], launch, router = {} } = options;
  checkRouterOptions(`${at}.router`, router);
  if (!Object.hasOwn(engines, engine)) {
    notAnOption(`${at}.engine`, Object.keys(engines).join(" or "), engine);
  }
  if (servers.length === 0 && launch === undefined) {
    notAnOption(`${at}.servers`, "at least one host:port, or `launch`", "empty");
  }
  for (const server of servers) {
    if (isUrl(withScheme(server))) continue;
    notAnOption(`${at}.servers`, "host:port of each", server);
  }
}

/**
 * The token of the router and the key of the servers. The environment serves command lines, whose
 * configuration is printed and kept. Throws RewardLoopOptionError, which shows none.
 */
export function secretsOf(
  { apiKey, router = {} }: RewardModelOptions,
  { name, option }: ModelPlace,
): { readonly token: string; readonly apiKey: string | undefined } {
  const suffix = name === defaultName ? "" : `_${variableOf(name)}`;
  const tokenName = `RAYLING_ROUTER_TOKEN${suffix}`;
  const keyName = `RAYLING_REWARD_MODEL_API_KEY${suffix}`;
  const token = router.token ?? filledOrNone(process.env[tokenName]) ?? newToken();
  const key = router.apiKey ?? apiKey ?? filledOrNone(process.env[keyName]);
  checkToken(`${option}.router.token (or ${tokenName})`, token);
  checkKey(`${option}.apiKey (or ${keyName})`, key);
  return { token, apiKey: key };
}

/** `MY_JUDGE` of `my-judge`: the end of its variables in the environment. */
export function variableOf(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}

function filledOrNone(text: string | undefined): string | undefined {
  return text === "" ? undefined : text;
}
