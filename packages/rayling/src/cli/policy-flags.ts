/** Flags about limits, failures and slow answers, and the options of the reward loop that they stand for. */

import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { Prices, RewardLimits, RewardLoopOptions } from "@rayling/reward-loop";
import { CliError } from "./cli-error.ts";
import { count } from "./flag-values.ts";
import { readSpecFromHere } from "./reward-spec.ts";

export interface PolicyFlags {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly tokensPerRequest?: number;
  readonly maxInFlight?: number | "auto";
  readonly breaker: boolean;
  readonly retries: number;
  readonly maxRetryAfter?: number;
  readonly hedge: boolean;
  readonly totalTimeout: number;
  readonly fallback?: number;
  readonly failAbove?: number;
  readonly cache?: string;
  readonly joinSame: boolean;
  readonly price?: Prices;
  readonly budget?: number;
  readonly atBudget?: string;
  readonly cheaperPrice?: Prices;
}

/** What the flags stand for. */
export type Policy = Pick<
  RewardLoopOptions,
  "limits" | "retry" | "hedge" | "onFailure" | "cache" | "joinSame" | "spend" | "totalTimeoutMs"
>;

export function addPolicyFlags(command: Command): Command {
  return command
    .option("--rpm <count>", "requests a minute that the endpoint allows", count(1))
    .option("--tpm <count>", "tokens a minute that the endpoint allows", count(1))
    .option(
      "--tokens-per-request <count>",
      "estimate, until a score tells its `usage` (default: 2000 with --tpm)",
      count(0),
    )
    .option(
      "--max-in-flight <count|auto>",
      "calls at once that the endpoint allows; auto finds out",
      countOrAuto,
    )
    .option("--breaker", "stop calling an endpoint that fails, and probe it now and then", false)
    .option(
      "--retries <count>",
      "further tries of a sample after timeouts, 429, 5xx and broken connections",
      count(0),
      0,
    )
    .option(
      "--max-retry-after <ms>",
      "with --retries: do not wait longer where an endpoint asks for it: its sample has failed (default: 120000)",
      count(0),
    )
    .option("--hedge", "begin calls that take longer than most a second time", false)
    .option(
      "--total-timeout <ms>",
      "longest time for one sample with all waiting and tries; 0 for no limit",
      count(0),
      0,
    )
    .option(
      "--fallback <score>",
      "the score of what cannot be scored, with `fallback: true` among its extras; --resume scores it again (default: it is invalid)",
      score,
    )
    .option(
      "--fail-above <share>",
      "end with exit code 1 if more than this share of the samples is invalid; what has a fallback is not (default: 1)",
      share,
    )
    .option("--cache <path>", "file of scores that were given before, and are not paid for again")
    .option(
      "--join-same",
      "ask once for samples that say the same and come together (always with --cache)",
      false,
    )
    .option(
      "--price <in,out[,call]>",
      "of a million input tokens, a million output tokens, and a call",
      prices,
    )
    .option(
      "--budget <amount>",
      "begin no sample when that much is spent, by what --resume goes on with, too (with --price)",
      amount,
    )
    .option(
      "--at-budget <path[:name]>",
      "a cheaper reward function, for what --budget does not reach for",
    )
    .option(
      "--cheaper-price <in,out[,call]>",
      "of --at-budget (default: it costs nothing)",
      prices,
    );
}

/** Paths start at the current directory. Throws CliError 2. @param rewardKwargs of all functions */
export function policyOf(
  flags: PolicyFlags,
  rewardKwargs: Readonly<Record<string, unknown>>,
): Policy {
  const { rpm, tpm, tokensPerRequest, maxInFlight, breaker } = flags;
  const { retries, maxRetryAfter: maxRetryAfterMs, fallback, failAbove } = flags;
  if (maxRetryAfterMs !== undefined && retries === 0) {
    throw new CliError(2, "--max-retry-after needs --retries: without them nothing is waited for.");
  }
  const limits: RewardLimits = {
    ...(rpm === undefined ? {} : { requestsPerMinute: rpm }),
    ...(tpm === undefined ? {} : { tokensPerMinute: tpm }),
    ...(tokensPerRequest === undefined ? {} : { tokensPerRequest }),
    ...(maxInFlight === undefined ? {} : { concurrency: maxInFlight }),
    ...(breaker ? { breaker } : {}),
  };
  return {
    limits: Object.keys(limits).length === 0 ? undefined : limits,
    // As many again as there are samples: an endpoint that is down is not called on for ever.
    retry:
      retries === 0
        ? undefined
        : {
            attempts: retries + 1,
            budget: 1,
            ...(maxRetryAfterMs === undefined ? {} : { maxRetryAfterMs }),
          },
    hedge: flags.hedge,
    onFailure: {
      ...(fallback === undefined ? {} : { fallback }),
      ...(failAbove === undefined ? {} : { failAbove }),
    },
    cache: flags.cache === undefined ? undefined : cacheFromHere(flags.cache),
    // A cache joins by itself.
    joinSame: flags.joinSame ? true : undefined,
    spend: spendOf(flags, rewardKwargs),
    totalTimeoutMs: flags.totalTimeout === 0 ? undefined : flags.totalTimeout,
  };
}

function spendOf(
  { price, budget, atBudget, cheaperPrice }: PolicyFlags,
  rewardKwargs: Readonly<Record<string, unknown>>,
): Policy["spend"] {
  if (cheaperPrice !== undefined && atBudget === undefined) {
    throw new CliError(2, "--cheaper-price needs --at-budget.");
  }
  if (atBudget !== undefined && budget === undefined) {
    throw new CliError(2, "--at-budget needs --budget: without it nothing is reached.");
  }
  if (price === undefined) {
    if (budget === undefined) return undefined;
    throw new CliError(2, "--budget needs --price: without it nobody knows what is spent.");
  }
  if (budget === undefined) return { prices: price };
  if (atBudget === undefined) return { prices: price, cap: budget };
  const reward = { ...readSpecFromHere("--at-budget", atBudget), rewardKwargs };
  const spend = cheaperPrice === undefined ? {} : { spend: { prices: cheaperPrice } };
  return { prices: price, cap: budget, whenReached: { reward, ...spend } };
}

function prices(text: string): Prices {
  const parts = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  const [perMillionInputTokens = 0, perMillionOutputTokens = 0, perCall = 0] = parts;
  const isPrice = parts.length >= 2 && parts.length <= 3 && parts.every((one) => one >= 0);
  if (isPrice) return { perMillionInputTokens, perMillionOutputTokens, perCall };
  throw new InvalidArgumentError("It must be IN,OUT or IN,OUT,CALL, each at least 0.");
}

function amount(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value) && value > 0) return value;
  throw new InvalidArgumentError("It must be a number above 0.");
}

function score(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (Number.isFinite(value)) return value;
  throw new InvalidArgumentError("It must be a number.");
}

function share(text: string): number {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  if (value >= 0 && value <= 1) return value;
  throw new InvalidArgumentError("It must be a number from 0 to 1.");
}

function countOrAuto(text: string): number | "auto" {
  if (text === "auto") return "auto";
  try {
    return count(1)(text);
  } catch {
    throw new InvalidArgumentError("It must be a whole number of at least 1, or auto.");
  }
}

function cacheFromHere(path: string): string {
  return path === ":memory:" ? path : resolve(path);
}
