/**
 * Options about limits, failures, slow answers and what judging costs: a table for each section.
 */

import type { FailureClass } from "../../outcome.ts";
import {
  auto,
  byName,
  choice,
  flag,
  list,
  number,
  numberOr,
  option,
  otherwise,
  section,
  switched,
  text,
  whole,
} from "../table.ts";

const least0 = number({ least: 0 });
const above0 = number({ above: 0 });

export const adaptiveOptions = {
  /** The lower bound of what auto finds. Default: 1. */
  min: option(whole(1), 1),
  /** The upper bound of what auto finds. Default: 4096. */
  max: option(whole(1), 4096, { atLeast: "min" }),
  /** The limit that auto begins with. Default: 16. */
  initial: option(whole(1), 16),
  /**
   * An answer that takes this many times as long as the quickest ones is slow, and lowers the limit
   * that auto finds: for endpoints whose answers all take about as long while they have room.
   */
  latencyTolerance: option(number({ above: 1 }), undefined),
};
export interface AdaptiveTable extends Readonly<typeof adaptiveOptions> {}

export const breakerOptions = {
  /**
   * The number of last calls that are looked at; the breaker opens after at least half as many.
   * Default: 50.
   */
  window: option(whole(2), 50),
  /** The share of failures at which the endpoint is not called any more. Default: 0.5. */
  threshold: option(number({ above: 0, most: 1 }), 0.5),
  /** The time without calls at first; at most 16 times that later. Default: 5000. */
  openMs: option(above0, 5000),
  /** Calls that must go well then. Default: 3. */
  probes: option(whole(1), 3),
};
export interface BreakerTable extends Readonly<typeof breakerOptions> {}

/** Limits of one endpoint, for all of its callers. */
export const limiterOptions = {
  /** Calls in any minute that the endpoint allows, spread over it. */
  requestsPerMinute: option(above0, undefined, { key: "max_rpm" }),
  /**
   * Tokens in any minute that the endpoint allows; a call counts as `tokensPerRequest` until its
   * score reports its `usage`.
   */
  tokensPerMinute: option(above0, undefined, { key: "max_tpm" }),
  /** Calls at once that the endpoint allows; auto finds out how many. */
  concurrency: option(auto<AdaptiveTable>(whole(1), adaptiveOptions), undefined, {
    key: "max_concurrent",
  }),
  /**
   * The shares of lanes that wait at the same time: training, validation, recovery (retries), and
   * any other name; 1 each.
   */
  shares: option(byName(above0), {}),
  /**
   * Whether an endpoint that fails is not called for a while, and probed now and then. Default:
   * false.
   */
  breaker: option(switched<BreakerTable>(breakerOptions), false),
  /**
   * How long a minute of the endpoint is, in ms, where its time goes faster (a replay). With
   * `requestsPerMinute` or `tokensPerMinute`. Default: 60000.
   */
  minuteMs: option(above0, 60_000, {
    needs: {
      names: ["requestsPerMinute", "tokensPerMinute"],
      why: "which are of that minute",
    },
  }),
};
export interface LimiterTable extends Readonly<typeof limiterOptions> {}

/** Limits that hold for all workers of all loops that name the endpoint. */
export const limitsOptions = {
  /**
   * The name of the endpoint: loops that name the same one share its limits. Default: the path of
   * the function.
   */
  endpoint: option(text, otherwise("the path of the function")),
  ...limiterOptions,
  /** Tokens of a call, until a score tells its `usage`. Default: 2000 with `tokensPerMinute`. */
  tokensPerRequest: option(
    least0,
    otherwise("2000 with `tokensPerMinute`", ({ tokensPerMinute }) =>
      tokensPerMinute === undefined ? 0 : 2000,
    ),
    { key: "estimated_tokens_per_request" },
  ),
};
export interface LimitsTable extends Readonly<typeof limitsOptions> {}

export const retryOptions = {
  /** Tries in all; 1: none is repeated. Default: 3. */
  attempts: option(whole(1), 3),
  /** The longest first pause; it doubles with each try. Default: 500. */
  baseMs: option(least0, 500),
  /** The longest pause. Default: 30000. */
  maxMs: option(least0, 30_000),
  // Clients of the big APIs wait for a minute at most (openai: 60 s), and limits begin anew after
  // one: twice that. An exhausted limit of a day is too long for a pause.
  /**
   * A refused call whose endpoint asks for a longer pause (retry-after) is not retried, and its
   * other calls pause no longer than that. Default: 120000.
   */
  maxRetryAfterMs: option(number({ least: 0, most: 2 ** 31 - 1 }), 120_000),
  /** Which failures are tried again. Default: infrastructure, rate-limit and timeout. */
  classes: option(
    list(choice<FailureClass>("infrastructure", "rate-limit", "timeout", "data", "user-code")),
    ["infrastructure", "rate-limit", "timeout"],
  ),
  // Infinity: as many as there are failures.
  /**
   * Further tries that are sent at once for each first one, over time; each that succeeds lets two
   * more go. The others wait, and one is sent each `baseMs` (a second at most) in any case: none is
   * lost except by `totalTimeoutMs` (RETRY_BUDGET). Default: 0.2.
   */
  budget: option(number({ least: 0, infinite: true }), 0.2),
};
export interface RetryTable extends Readonly<typeof retryOptions> {}

export const hedgeOptions = {
  /** A call is late that takes longer than this quantile of the last ones did. Default: 0.95. */
  quantile: option(number({ above: 0, below: 1 }), 0.95),
  /** Second calls for each first one, at most. Default: 0.1. */
  budget: option(above0, 0.1),
};
export interface HedgeTable extends Readonly<typeof hedgeOptions> {}

const price = otherwise("nothing", () => 0);

/** Prices in any currency. */
export const pricesOptions = {
  /** The price of a million tokens of prompts. Default: nothing. */
  perMillionInputTokens: option(least0, price),
  /** The price of a million tokens of answers. Default: nothing. */
  perMillionOutputTokens: option(least0, price),
  /**
   * The price of a million cached prompt tokens, where the endpoint reports them. Default: that of
   * other prompts.
   */
  perMillionCachedInputTokens: option(
    least0,
    otherwise("that of other prompts", ({ perMillionInputTokens }) =>
      Number(perMillionInputTokens ?? 0),
    ),
  ),
  /**
   * The price of a million reasoning tokens, where the endpoint reports them. Default: that of
   * other answers.
   */
  perMillionReasoningTokens: option(
    least0,
    otherwise("that of other answers", ({ perMillionOutputTokens }) =>
      Number(perMillionOutputTokens ?? 0),
    ),
  ),
  /** The price of a call, whatever it used. Default: nothing. */
  perCall: option(least0, price),
};
export interface PricesTable extends Readonly<typeof pricesOptions> {}

/** The most that one attempt may use, with all calls that the function makes. */
export const mostPerCallOptions = {
  /** Tokens of the longest prompt. Default: none. */
  inputTokens: option(
    least0,
    otherwise("none", () => 0),
  ),
  /** Tokens of the longest answer: the `max_tokens` of the judge. Default: none. */
  outputTokens: option(
    least0,
    otherwise("none", () => 0),
  ),
};
export interface MostPerCallTable extends Readonly<typeof mostPerCallOptions> {}

/** Options of a budget; the judge at the cap belongs to functions (functions.ts). */
export const budgetOptions = {
  /** Prices by the `usage` that scores report. */
  prices: option(section<PricesTable>(pricesOptions), {}),
  /**
   * When that much is spent no call and no further try is begun (SPEND_CAP); pending calls are
   * finished, and may exceed it without `mostPerCall`.
   */
  cap: option(least0, undefined),
  /**
   * The most that one try may use. Its price is set aside while the try is pending, so that the cap
   * is never exceeded; a try with unknown usage, as it was cut off or does not report it, costs
   * that much.
   */
  mostPerCall: option(section<MostPerCallTable>(mostPerCallOptions), undefined),
  /** The share of the cap at which there is a warning. With `cap`. Default: 0.8. */
  warnAt: option(number({ above: 0, most: 1 }), 0.8, {
    needs: { names: ["cap"], why: "which it is a share of" },
  }),
};
export interface BudgetTable extends Readonly<typeof budgetOptions> {}

/**
 * `again` and `failAbove` apply to samples that are scored together: a batch, or a RewardRequest
 * (in a training, all samples of a step).
 */
export const onFailureOptions = {
  /**
   * The score of samples that cannot be scored, with `fallback: true` among their extra info: a
   * number, or the mean of the valid scores of their group, where the group is known and has a
   * valid score; without one they are invalid, and masked.
   */
  fallback: option(numberOr("groupMean"), undefined),
  /**
   * Whether samples that failed because of the endpoint, of limits or of time are scored once more
   * when all others are done. Default: false.
   */
  again: option(flag, false),
  /**
   * The share of samples without a score above which all of them fail (RewardFailuresError); those
   * with a fallback do not count. Default: 1.
   */
  failAbove: option(number({ least: 0, most: 1 }), 1),
};
export interface OnFailureTable extends Readonly<typeof onFailureOptions> {}
