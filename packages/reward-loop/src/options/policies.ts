/** Options about limits, failures, slow answers and what judging costs: a table for each section. */

import type { FailureClass } from "../faults/failure-class.ts";
import {
  auto,
  byName,
  choice,
  flag,
  list,
  number,
  option,
  otherwise,
  section,
  switched,
  text,
  whole,
} from "./table.ts";

const least0 = number({ least: 0 });
const above0 = number({ above: 0 });

export const adaptiveOptions = {
  min: option(whole(1), 1, "The lower bound of what auto finds."),
  max: option(whole(1), 4096, "The upper bound of what auto finds.", { atLeast: "min" }),
  initial: option(whole(1), 16, "Where auto begins."),
  latencyTolerance: option(
    number({ above: 1 }),
    undefined,
    "An answer that takes so many times as long as the quickest ones did is slow, and lowers what auto finds: for endpoints whose answers all take about as long while they have room.",
  ),
};
export interface AdaptiveTable extends Readonly<typeof adaptiveOptions> {}

export const breakerOptions = {
  window: option(
    whole(2),
    50,
    "How many of the last calls are looked at; none is judged by fewer than half of them.",
  ),
  threshold: option(
    number({ above: 0, most: 1 }),
    0.5,
    "The share of failures at which the endpoint is not called any more.",
  ),
  openMs: option(above0, 5000, "For how long it is not called first; at most 16 times that."),
  probes: option(whole(1), 3, "Calls that must go well then."),
};
export interface BreakerTable extends Readonly<typeof breakerOptions> {}

/** What is kept for an endpoint, whoever calls it. */
export const limiterOptions = {
  requestsPerMinute: option(
    above0,
    undefined,
    "Calls in any minute that the endpoint allows, spread over it.",
    { key: "max_rpm" },
  ),
  tokensPerMinute: option(
    above0,
    undefined,
    "Tokens in any minute that the endpoint allows; counted as {tokensPerRequest} until a score tells its `usage`.",
    { key: "max_tpm" },
  ),
  concurrency: option(
    auto<AdaptiveTable>(whole(1), adaptiveOptions),
    undefined,
    "Calls at once that the endpoint allows; auto finds out how many.",
    { key: "max_concurrent" },
  ),
  shares: option(
    byName(above0),
    {},
    "The shares of lanes that wait at the same time: training, validation, recovery (what is tried again), and any other name; 1 each.",
  ),
  breaker: option(
    switched<BreakerTable>(breakerOptions),
    false,
    "Whether an endpoint that fails is not called for a while, and probed now and then.",
  ),
  minuteMs: option(
    above0,
    60_000,
    "How long a minute of the endpoint is, in ms, where its time goes faster (a replay).",
    {
      needs: {
        names: ["requestsPerMinute", "tokensPerMinute"],
        why: "which are of that minute",
      },
    },
  ),
};
export interface LimiterTable extends Readonly<typeof limiterOptions> {}

/** They hold for all workers of all loops that name the endpoint. */
export const limitsOptions = {
  endpoint: option(
    text,
    otherwise("the path of the function"),
    "Whose limits these are: loops that name the same one share them.",
  ),
  ...limiterOptions,
  tokensPerRequest: option(
    least0,
    otherwise("2000 with {tokensPerMinute}", ({ tokensPerMinute }) =>
      tokensPerMinute === undefined ? 0 : 2000,
    ),
    "Tokens of a call, until a score tells its `usage`.",
    { key: "estimated_tokens_per_request" },
  ),
};
export interface LimitsTable extends Readonly<typeof limitsOptions> {}

export const retryOptions = {
  attempts: option(whole(1), 3, "Tries in all; 1: none is repeated."),
  baseMs: option(least0, 500, "The longest first pause; it doubles with each try."),
  maxMs: option(least0, 30_000, "The longest pause."),
  // Clients of the big APIs wait for a minute at most (openai: 60 s), and limits begin anew after one: twice that. A day's limit that is used up is no matter of a pause.
  maxRetryAfterMs: option(
    number({ least: 0, most: 2 ** 31 - 1 }),
    120_000,
    "What an endpoint refused that wants to be left alone for longer (retry-after) is not tried again, and its other calls pause no longer than that.",
  ),
  classes: option(
    list(choice<FailureClass>("infrastructure", "rate-limit", "timeout", "data", "user-code")),
    ["infrastructure", "rate-limit", "timeout"],
    "Which failures are tried again.",
  ),
  // Infinity: as many as there are failures.
  budget: option(
    number({ least: 0, infinite: true }),
    0.2,
    "Further tries that are allowed for each first one, over time.",
  ),
};
export interface RetryTable extends Readonly<typeof retryOptions> {}

export const hedgeOptions = {
  quantile: option(
    number({ above: 0, below: 1 }),
    0.95,
    "A call is late that takes longer than this quantile of the last ones did.",
  ),
  budget: option(above0, 0.1, "Second calls for each first one, at most."),
};
export interface HedgeTable extends Readonly<typeof hedgeOptions> {}

const price = otherwise("nothing", () => 0);

/** In any currency. */
export const pricesOptions = {
  perMillionInputTokens: option(least0, price, "The price of a million tokens of prompts."),
  perMillionOutputTokens: option(least0, price, "The price of a million tokens of answers."),
  perCall: option(least0, price, "The price of a call, whatever it used."),
};
export interface PricesTable extends Readonly<typeof pricesOptions> {}

/** Without what becomes of samples at the cap, which is of functions (functions.ts). */
export const purseOptions = {
  prices: option(
    section<PricesTable>(pricesOptions),
    {},
    "What scores cost by what they say they used (`usage`).",
  ),
  cap: option(
    least0,
    undefined,
    "When that much is spent no sample is begun any more (SPEND_CAP); what is under way then is finished, and may go beyond it.",
  ),
  warnAt: option(
    number({ above: 0, most: 1 }),
    0.8,
    "The share of the cap at which there is a warning.",
    { needs: { names: ["cap"], why: "which it is a share of" } },
  ),
};
export interface PurseTable extends Readonly<typeof purseOptions> {}

/** `again` and `failAbove` are of what is scored together: a batch, or a RewardRequest (in a training, all that was generated for a step). */
export const onFailureOptions = {
  fallback: option(
    number(),
    undefined,
    "The score of samples that cannot be scored, with `fallback: true` among their extra info; without one they are invalid, and masked.",
  ),
  again: option(
    flag,
    false,
    "Whether what failed because of the endpoint, of limits or of time is scored once more when all others are done.",
  ),
  failAbove: option(
    number({ least: 0, most: 1 }),
    1,
    "The share of samples without a score at which all of them fail (RewardFailuresError); those with a fallback do not count.",
  ),
};
export interface OnFailureTable extends Readonly<typeof onFailureOptions> {}
