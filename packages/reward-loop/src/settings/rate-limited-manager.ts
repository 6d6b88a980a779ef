/**
 * verl's manager rate_limited (alias limited): the naive one within limits. In verl each worker
 * process keeps the limits for itself, so that eight of them let through eight times as much; here
 * they are the loop's own limits, which hold for all workers. A timeout or an error is an invalid
 * sample, and not a score of 0.
 */

import { rateLimitedOptions } from "../options/defaults/functions.ts";
import { over, readOptions } from "../options/read.ts";
import type { RewardLimits } from "./policy-settings.ts";

/** The options that the manager concerns. */
interface ManagerAndLimits {
  readonly manager?: unknown;
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly limits?: RewardLimits | undefined;
}

/**
 * Replaces the manager by limits; values of `limits` itself take precedence. Throws
 * RewardLoopOptionError.
 */
export function withoutRateLimited<Options extends ManagerAndLimits>(options: Options): Options {
  const { manager, managerOptions = {}, limits } = options;
  if (manager !== "rate_limited" && manager !== "limited") return options;
  const own = readOptions(rateLimitedOptions, managerOptions, "managerOptions");
  const given: RewardLimits = {
    concurrency: own.maxConcurrent,
    requestsPerMinute: own.maxRpm,
    tokensPerMinute: own.maxTpm,
    tokensPerRequest: own.estimatedTokensPerRequest,
  };
  return { ...options, manager: "naive", managerOptions: {}, limits: over(given, limits) };
}
