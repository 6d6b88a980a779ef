/**
 * Policies for limits, failures and slow answers: options as the user gives them
 * (options/defaults/policies.ts), and settings as workers get them.
 */

import type { LimiterTable, LimitsTable, OnFailureTable } from "../options/defaults/policies.ts";
import type { functionOptions } from "../options/defaults/functions.ts";
import type { OptionsOf, SettingsOf } from "../options/table.ts";

/**
 * Limits of the endpoint that the score function calls: they hold for all workers of all reward
 * loops that name it.
 */
export type RewardLimits = OptionsOf<LimitsTable>;

/**
 * How samples that cannot be scored are handled. `again` and `failAbove` apply to samples that are
 * scored together: a batch, or a RewardRequest (in a training, all samples of a step).
 */
export type OnFailure = OptionsOf<OnFailureTable>;
export type FailureSettings = SettingsOf<OnFailureTable>;

/** The policies among a function's options. */
export type PolicyOptions = Pick<
  OptionsOf<typeof functionOptions>,
  keyof PolicySettings | "spend" | "onFailure"
>;

type FunctionSettings = SettingsOf<typeof functionOptions>;

export interface PolicySettings extends Pick<
  FunctionSettings,
  "retry" | "hedge" | "totalTimeoutMs" | "cache" | "joinSame"
> {
  readonly limits:
    | {
        readonly endpoint: string;
        readonly tokensPerRequest: number;
        readonly settings: SettingsOf<LimiterTable>;
      }
    | undefined;
}

/** @param defaultEndpoint the name of the limits, if they have none */
export function policyOf(settings: FunctionSettings, defaultEndpoint: string): PolicySettings {
  const { retry, hedge, totalTimeoutMs, cache, joinSame } = settings;
  const limits = settings.limits && ofEndpoint(settings.limits, defaultEndpoint);
  return { limits, retry, hedge, totalTimeoutMs, cache, joinSame };
}

function ofEndpoint(
  { endpoint, tokensPerRequest, ...settings }: SettingsOf<LimitsTable>,
  defaultEndpoint: string,
): PolicySettings["limits"] {
  return { endpoint: endpoint ?? defaultEndpoint, tokensPerRequest, settings };
}
