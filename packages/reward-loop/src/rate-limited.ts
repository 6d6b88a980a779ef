/**
 * verl's manager rate_limited (alias limited): the naive one within limits. In verl each worker process keeps the limits for itself, so that eight of them let through eight
 * times as much; here they are the loop's own limits, which hold for all workers. A timeout or an error is an invalid sample there as here, not a score of 0.
 */

import { checkKeys } from "./option-checks.ts";
import type { RewardLimits } from "./policy-settings.ts";

/** What it reads of a loop's options. */
interface ManagerAndLimits {
  readonly manager?: unknown;
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  readonly limits?: RewardLimits | undefined;
}

/** The manager's options. */
export interface RateLimitedOptions {
  /** verl `max_concurrent`. Default 1. */
  readonly maxConcurrent?: number;
  /** verl `max_rpm`. */
  readonly maxRpm?: number;
  /** verl `max_tpm`. */
  readonly maxTpm?: number;
  /** verl `estimated_tokens_per_request`. Default 2,000. */
  readonly estimatedTokensPerRequest?: number;
}

/** The same loop without that manager: its options are limits, which win over nothing that is said in `limits` itself. */
export function withoutRateLimited<Options extends ManagerAndLimits>(options: Options): Options {
  const { manager, managerOptions = {}, limits } = options;
  if (manager !== "rate_limited" && manager !== "limited") return options;
  const own = managerOptions as RateLimitedOptions;
  checkKeys<RateLimitedOptions>("managerOptions", own, [
    "maxConcurrent",
    "maxRpm",
    "maxTpm",
    "estimatedTokensPerRequest",
  ]);
  const { maxConcurrent = 1, maxRpm, maxTpm, estimatedTokensPerRequest } = own;
  const given: RewardLimits = {
    concurrency: maxConcurrent,
    ...(maxRpm === undefined ? {} : { requestsPerMinute: maxRpm }),
    ...(maxTpm === undefined ? {} : { tokensPerMinute: maxTpm }),
    ...(estimatedTokensPerRequest === undefined
      ? {}
      : { tokensPerRequest: estimatedTokensPerRequest }),
  };
  return { ...options, manager: "naive", managerOptions: {}, limits: { ...given, ...limits } };
}
