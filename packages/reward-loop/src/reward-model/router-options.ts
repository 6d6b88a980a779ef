/**
 * Options of the router (options/defaults/reward-model.ts), and the allowed forms of secrets,
 * addresses and paths.
 */

import { checkOptions, notAnOption, placeOf, withDefaults } from "../options/read.ts";
import { routerOptions } from "../options/defaults/reward-model.ts";
import type { RouterOptions } from "../options/defaults/reward-model.ts";

/**
 * @param at the option that holds them. Throws RewardLoopOptionError, which shows no token and no
 * key
 */
export function checkRouterOptions(at: string, options: RouterOptions): void {
  checkOptions(routerOptions, options, at);
  const { maxBodyBytes, maxBufferedBytes } = options;
  if (
    maxBodyBytes !== undefined &&
    maxBufferedBytes !== undefined &&
    maxBufferedBytes < maxBodyBytes
  ) {
    notAnOption(
      placeOf(at, "maxBufferedBytes"),
      `at least maxBodyBytes, ${maxBodyBytes}`,
      maxBufferedBytes,
    );
  }
  const { token, apiKey, allowedPaths, allowedHosts, healthPath } = withDefaults(
    routerOptions,
    options,
  );
  checkToken(placeOf(at, "token"), token);
  checkKey(placeOf(at, "apiKey"), apiKey);
  checkList(
    placeOf(at, "allowedPaths"),
    allowedPaths,
    /^(?!.*\/\.{1,2}(?:\/|$))\/(?:[\w.~:@-]+\/)*(?:[\w.~:@-]+|\*)?$/,
    "paths like /v1/audio/transcriptions or /v1/audio/*",
  );
  checkList(
    placeOf(at, "allowedHosts"),
    allowedHosts,
    /^(?:\[[\da-f:]+\]|[\w-]+(?:\.[\w-]+)*)$/i,
    "names or addresses without a port",
  );
  checkList(placeOf(at, "healthPath"), [healthPath], /^\/[\w.~:@/-]*$/, "a path like /health");
}

/** Throws RewardLoopOptionError, which does not show it. */
export function checkToken(option: string, token: unknown): void {
  if (token === undefined || (typeof token === "string" && /^[\x21-\x7e]{32,}$/.test(token)))
    return;
  notAnOption(option, "a token of 32 characters at least, without spaces", kindOf(token));
}

/** Checks as `checkToken`, without its length: that is the servers' decision. */
export function checkKey(option: string, key: unknown): void {
  if (key === undefined || (typeof key === "string" && /^[\x21-\x7e]+$/.test(key))) return;
  notAnOption(option, "the servers' key, without spaces", kindOf(key));
}

/**
 * Returns the token of a router that the user names by its address. Throws RewardLoopOptionError,
 * which does not show it.
 */
export function routerTokenOf(options: {
  readonly rewardRouterAddress?: string | undefined;
  readonly rewardRouterToken?: string | undefined;
}): string | undefined {
  const { rewardRouterAddress: address, rewardRouterToken: token } = options;
  checkKey("rewardRouterToken", token);
  if (token === undefined || address !== undefined) return token;
  return notAnOption("rewardRouterAddress", "given with rewardRouterToken", address);
}

function kindOf(secret: unknown): string {
  return typeof secret === "string" ? `a text of ${secret.length} characters` : typeof secret;
}

function checkList(option: string, list: readonly string[], form: RegExp, wanted: string): void {
  const other = list.find((one) => !form.test(one));
  if (other !== undefined) notAnOption(option, wanted, other);
}
