/** What is done about limits, failures and slow answers: options as the user gives them (options/policies.ts), and as workers get them. */

import type { LimiterTable, LimitsTable, OnFailureTable } from "./options/policies.ts";
import type { functionOptions } from "./options/functions.ts";
import type { OptionsOf, SettingsOf } from "./options/table.ts";

/** Limits of the endpoint that the score function calls: they hold for all workers of all reward loops that name it. */
export type RewardLimits = OptionsOf<LimitsTable>;

/** What becomes of samples that cannot be scored. `again` and `failAbove` are of what is scored together: a batch, or a RewardRequest (in a training, all that was generated for a step). */
export type OnFailure = OptionsOf<OnFailureTable>;
export type FailureSettings = SettingsOf<OnFailureTable>;

/** What a function's options say about all that. */
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
