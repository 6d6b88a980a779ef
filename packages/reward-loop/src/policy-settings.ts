/** What is done about limits, failures and slow answers: options as the user gives them, checked once, and as workers get them. */

import type { BreakerSettings } from "./faults/circuit-breaker.ts";
import type { HedgeSettings } from "./faults/hedge.ts";
import type { RetrySettings } from "./faults/retry-policy.ts";
import type { AdaptiveLimitSettings } from "./limits/adaptive-limit.ts";
import type { RewardLimiterSettings } from "./limits/reward-limiter.ts";
import { between, checkKeys, notAnOption } from "./option-checks.ts";
import type { Prices, SpendSettings } from "./spend/purse.ts";

/** Limits of the endpoint that the score function calls: they hold for all workers of all reward loops that name it. */
export interface RewardLimits {
  /** Loops that name the same one share its limits. Default: the reward's path, or its data sources' scorers. */
  readonly endpoint?: string;
  /** In any minute. Default: as many as come. */
  readonly requestsPerMinute?: number;
  /** In any minute; counted as `tokensPerRequest` until the score's extra info says what was used (`usage`). */
  readonly tokensPerMinute?: number;
  /** verl `estimated_tokens_per_request`. Default 2,000 with tokensPerMinute. */
  readonly tokensPerRequest?: number;
  /** Calls at once; "auto" finds out how many the endpoint takes. Default: as many as the workers have slots. */
  readonly concurrency?: number | "auto" | AdaptiveLimitSettings;
  /** Of lanes that wait at the same time: training, validation, recovery (what is tried again), and any other name. Default: 1 each. */
  readonly shares?: Readonly<Record<string, number>>;
  /** Stops calling an endpoint that fails, and probes it now and then. Default: it is called on. */
  readonly breaker?: boolean | BreakerSettings;
  /** How long a minute of the endpoint is, in ms, where its time goes faster (a replay); with requestsPerMinute or tokensPerMinute. Default 60,000. */
  readonly minuteMs?: number;
}

/** What becomes of samples that cannot be scored. Default: they are invalid, and masked. `again` and `failAbove` are of what is scored together: a batch, or a RewardRequest (in a training, all that was generated for a step). */
export interface OnFailure {
  /** The score that they get instead, with `fallback: true` among the extra info. */
  readonly fallback?: number;
  /** What failed because of the endpoint, of limits or of time is scored once more when all others are done. Default false. */
  readonly again?: boolean;
  /** The share of a batch that may be invalid before all of it fails with RewardFailuresError; fallbacks do not count. Default 1. */
  readonly failAbove?: number;
}

export interface PolicyOptions {
  /** File of scores that were given before, and are not paid for again; SQLite, made if it is not there; a relative one is at `baseDirectory`, and `:memory:` is kept for this loop alone. Default: none. */
  readonly cache?: string | undefined;
  /** Samples that say the same are asked for once while the first is under way. Default: with a cache. */
  readonly joinSame?: boolean | undefined;
  /** Prices by what scores say they used (`usage`), and what may be spent. Default: nobody counts. */
  readonly spend?: SpendSettings | undefined;
  readonly onFailure?: OnFailure | undefined;
  readonly limits?: RewardLimits | undefined;
  /** What failed and may go better later is scored again: true for the standard (RetrySettings). Default: nothing is. */
  readonly retry?: boolean | RetrySettings | undefined;
  /** A call that takes longer than most is begun a second time beside it: true for the standard (HedgeSettings). Default: none is. */
  readonly hedge?: boolean | HedgeSettings | undefined;
  /** How long a sample may take in all, with its waiting and all of its tries, from when a worker takes it on: its time in the loop's own line does not count. Default: as long as it takes. */
  readonly totalTimeoutMs?: number | undefined;
}

export interface PolicySettings {
  readonly limits:
    | {
        readonly endpoint: string;
        readonly tokensPerRequest: number;
        readonly settings: RewardLimiterSettings;
      }
    | undefined;
  readonly retry: RetrySettings | undefined;
  readonly hedge: HedgeSettings | undefined;
  readonly totalTimeoutMs: number | undefined;
  readonly onFailure: OnFailure;
  readonly cache: string | undefined;
  readonly joinSame: boolean;
  readonly spend: SpendSettings | undefined;
}

/** @param defaultEndpoint the name of the limits, if they have none. Throws RewardLoopOptionError. */
export function readPolicy(options: PolicyOptions, defaultEndpoint: string): PolicySettings {
  const { limits, retry, hedge, totalTimeoutMs } = options;
  return {
    limits: limits === undefined ? undefined : readLimits(limits, defaultEndpoint),
    retry: readRetry(retry),
    onFailure: readOnFailure(options.onFailure),
    cache: options.cache,
    joinSame: options.joinSame ?? options.cache !== undefined,
    spend: options.spend === undefined ? undefined : readSpend(options.spend),
    hedge: readHedge(hedge),
    totalTimeoutMs: between("totalTimeoutMs", totalTimeoutMs, { above: 0, most: 2 ** 31 - 1 }),
  };
}

function readLimits(limits: RewardLimits, defaultEndpoint: string): PolicySettings["limits"] {
  checkKeys<RewardLimits>("limits", limits, [
    "endpoint",
    "requestsPerMinute",
    "tokensPerMinute",
    "tokensPerRequest",
    "concurrency",
    "shares",
    "breaker",
    "minuteMs",
  ]);
  const { endpoint = defaultEndpoint, tokensPerMinute, tokensPerRequest, shares } = limits;
  if (typeof endpoint !== "string" || endpoint.trim() === "") {
    notAnOption("limits.endpoint", "a text that is not empty", endpoint);
  }
  const positive = (name: "requestsPerMinute" | "tokensPerMinute" | "minuteMs"): object => {
    const value = between(`limits.${name}`, limits[name], { above: 0 });
    return value === undefined ? {} : { [name]: value };
  };
  if (
    limits.minuteMs !== undefined &&
    (limits.requestsPerMinute ?? tokensPerMinute) === undefined
  ) {
    const wanted =
      "left out without requestsPerMinute and tokensPerMinute, which are of that minute";
    notAnOption("limits.minuteMs", wanted, limits.minuteMs);
  }
  const standard = tokensPerMinute === undefined ? 0 : 2000;
  const settings: RewardLimiterSettings = {
    ...positive("requestsPerMinute"),
    ...positive("tokensPerMinute"),
    ...positive("minuteMs"),
    ...readConcurrency(limits.concurrency),
    ...(shares === undefined ? {} : { shares: readShares(shares) }),
    ...readBreaker(limits.breaker),
  };
  return {
    endpoint,
    tokensPerRequest:
      between("limits.tokensPerRequest", tokensPerRequest, { least: 0 }) ?? standard,
    settings,
  };
}

function readConcurrency(
  concurrency: RewardLimits["concurrency"],
): Pick<RewardLimiterSettings, "concurrency"> {
  if (concurrency === undefined) return {};
  if (concurrency === "auto") return { concurrency: {} };
  const name = "limits.concurrency";
  if (typeof concurrency === "number") {
    between(name, concurrency, { least: 1, whole: true });
    return { concurrency };
  }
  if (typeof concurrency !== "object") {
    notAnOption(name, 'a whole number of at least 1, "auto" or its settings', concurrency);
  }
  checkKeys<AdaptiveLimitSettings>(name, concurrency, [
    "min",
    "max",
    "initial",
    "latencyTolerance",
  ]);
  const { min, max, initial, latencyTolerance } = concurrency;
  between(`${name}.min`, min, { least: 1, whole: true });
  between(`${name}.max`, max, { least: min ?? 1, whole: true });
  between(`${name}.initial`, initial, { least: 1, whole: true });
  between(`${name}.latencyTolerance`, latencyTolerance, { above: 1 });
  return { concurrency };
}

function readShares(shares: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  if (typeof shares !== "object" || shares === null) {
    notAnOption("limits.shares", "an object of numbers by lane", shares);
  }
  for (const [lane, share] of Object.entries(shares)) {
    between(`limits.shares.${lane}`, share, { above: 0 });
  }
  return shares;
}

function readBreaker(breaker: RewardLimits["breaker"]): Pick<RewardLimiterSettings, "breaker"> {
  if (breaker === undefined || breaker === false) return {};
  if (breaker === true) return { breaker: {} };
  const name = "limits.breaker";
  checkKeys<BreakerSettings>(name, breaker, ["window", "threshold", "openMs", "probes"]);
  between(`${name}.window`, breaker.window, { least: 2, whole: true });
  between(`${name}.threshold`, breaker.threshold, { above: 0, most: 1 });
  between(`${name}.openMs`, breaker.openMs, { above: 0 });
  between(`${name}.probes`, breaker.probes, { least: 1, whole: true });
  return { breaker };
}

function readRetry(retry: PolicyOptions["retry"]): RetrySettings | undefined {
  if (retry === undefined || retry === false) return undefined;
  if (retry === true) return {};
  checkKeys<RetrySettings>("retry", retry, [
    "attempts",
    "baseMs",
    "maxMs",
    "maxRetryAfterMs",
    "classes",
    "budget",
  ]);
  between("retry.attempts", retry.attempts, { least: 1, whole: true });
  between("retry.baseMs", retry.baseMs, { least: 0 });
  between("retry.maxMs", retry.maxMs, { least: 0 });
  between("retry.maxRetryAfterMs", retry.maxRetryAfterMs, { least: 0, most: 2 ** 31 - 1 });
  between("retry.budget", retry.budget, { least: 0, infinite: true });
  for (const one of retry.classes ?? []) {
    if (!failureClasses.has(one)) {
      notAnOption("retry.classes", `some of ${[...failureClasses].join(", ")}`, one);
    }
  }
  return retry;
}

const failureClasses: ReadonlySet<string> = new Set<NonNullable<RetrySettings["classes"]>[number]>([
  "infrastructure",
  "rate-limit",
  "timeout",
  "data",
  "user-code",
]);

function readOnFailure(onFailure: OnFailure = {}): OnFailure {
  checkKeys<OnFailure>("onFailure", onFailure, ["fallback", "again", "failAbove"]);
  const { fallback, again, failAbove } = onFailure;
  between("onFailure.fallback", fallback, {});
  between("onFailure.failAbove", failAbove, { least: 0, most: 1 });
  if (again !== undefined && typeof again !== "boolean") {
    notAnOption("onFailure.again", "true or false", again);
  }
  return onFailure;
}

export function readSpend(spend: SpendSettings): SpendSettings {
  checkKeys<SpendSettings>("spend", spend, ["prices", "cap", "warnAt"]);
  const { prices, cap, warnAt } = spend;
  const names = ["perMillionInputTokens", "perMillionOutputTokens", "perCall"] as const;
  checkKeys<Prices>("spend.prices", prices, names);
  for (const name of names) between(`spend.prices.${name}`, prices[name], { least: 0 });
  between("spend.cap", cap, { least: 0 });
  between("spend.warnAt", warnAt, { above: 0, most: 1 });
  if (warnAt !== undefined && cap === undefined) {
    notAnOption("spend.warnAt", "left out without a cap, which it is a share of", warnAt);
  }
  return spend;
}

function readHedge(hedge: PolicyOptions["hedge"]): HedgeSettings | undefined {
  if (hedge === undefined || hedge === false) return undefined;
  if (hedge === true) return {};
  checkKeys<HedgeSettings>("hedge", hedge, ["quantile", "budget"]);
  between("hedge.quantile", hedge.quantile, { above: 0, below: 1 });
  between("hedge.budget", hedge.budget, { above: 0 });
  return hedge;
}
