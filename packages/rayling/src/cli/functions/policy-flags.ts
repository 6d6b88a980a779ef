/**
 * Flags for limits, failures and slow answers, and the reward loop options that they set.
 */

import { resolve } from "node:path";
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { Prices, RewardLoopOptions } from "@rayling/reward-loop";
import { CliError } from "../cli-error.ts";
import { count } from "../flag-values.ts";
import { addLoopFlags, loopOptionsOf } from "./loop-flags.ts";
import type { LoopFlag } from "./loop-flags.ts";
import { readSpecFromHere } from "./reward-spec.ts";

/** Flags beyond those that set options of the loop directly. */
export interface PolicyFlags {
  readonly retries: number;
  readonly price?: Prices;
  readonly atBudget?: string;
  readonly cheaperPrice?: Prices;
}

/** The options that the flags set. */
export type Policy = Pick<
  RewardLoopOptions,
  "limits" | "retry" | "hedge" | "onFailure" | "cache" | "joinSame" | "spend" | "totalTimeoutMs"
>;

const loopFlags: readonly LoopFlag[] = [
  { flags: "--rpm <count>", option: "limits.requestsPerMinute" },
  { flags: "--tpm <count>", option: "limits.tokensPerMinute" },
  { flags: "--tokens-per-request <count>", option: "limits.tokensPerRequest" },
  { flags: "--max-in-flight <count|auto>", option: "limits.concurrency" },
  { flags: "--breaker", option: "limits.breaker" },
  { flags: "--max-retry-after <ms>", option: "retry.maxRetryAfterMs", here: "with --retries" },
  { flags: "--hedge", option: "hedge" },
  { flags: "--total-timeout <ms>", option: "totalTimeoutMs", orNone: true },
  { flags: "--fallback <score>", option: "onFailure.fallback", here: "--resume scores it again" },
  {
    flags: "--fail-above <share>",
    option: "onFailure.failAbove",
    here: "exit code 3",
    value: 0.5,
  },
  { flags: "--cache <path>", option: "cache" },
  { flags: "--join-same", option: "joinSame", here: "always with --cache" },
  {
    flags: "--budget <amount>",
    option: "spend.cap",
    here: "earlier spending counts with --resume; needs --price",
  },
];

/** The help of a server, which has no --resume: what goes on there is the log of --record. */
const serverHelp: ReadonlyMap<string, string> = new Map([
  ["onFailure.fallback", "another key scores it again"],
  ["spend.cap", "earlier spending counts with --record; needs --price"],
]);

/** @param kind a run that ends, or a server */
export function addPolicyFlags(command: Command, kind: "run" | "server"): Command {
  const flags = loopFlags.map((one) => {
    const here = kind === "server" ? serverHelp.get(one.option) : undefined;
    return here === undefined ? one : { ...one, here };
  });
  return addLoopFlags(command, flags)
    .option(
      "--retries <count>",
      "further attempts at a sample after timeouts, 429, 5xx and broken connections",
      count(0),
      0,
    )
    .option(
      "--price <in,out[,call]>",
      "of a million input tokens, a million output tokens, and a call",
      prices,
    )
    .option("--at-budget <path[:name]>", "a cheaper reward function, for samples beyond --budget")
    .option(
      "--cheaper-price <in,out[,call]>",
      "of --at-budget (default: it costs nothing)",
      prices,
    );
}

/**
 * Paths are relative to the current directory. Throws CliError 2.
 *
 * @param rewardKwargs those of all functions
 */
export function policyOf(
  flags: PolicyFlags,
  rewardKwargs: Readonly<Record<string, unknown>>,
): Policy {
  const set: Policy = { ...loopOptionsOf(loopFlags, flags) };
  const { retry, cache, spend, ...options } = set;
  if (cache === "-" || cache === "") {
    throw new CliError(2, `--cache ${cache}: it must be a file, or :memory:.`);
  }
  const retried = typeof retry === "object" ? retry : {};
  if (retry !== undefined && flags.retries === 0) {
    throw new CliError(2, "--max-retry-after needs --retries: without them there is no wait.");
  }
  return {
    ...options,
    // The budget equals the number of samples: an endpoint that is down is not called for ever.
    ...(flags.retries === 0
      ? {}
      : { retry: { ...retried, attempts: flags.retries + 1, budget: 1 } }),
    ...(cache === undefined ? {} : { cache: cache === ":memory:" ? cache : resolve(cache) }),
    spend: spendOf(flags, spend?.cap, rewardKwargs),
  };
}

function spendOf(
  { price, atBudget, cheaperPrice }: PolicyFlags,
  budget: number | undefined,
  rewardKwargs: Readonly<Record<string, unknown>>,
): Policy["spend"] {
  if (cheaperPrice !== undefined && atBudget === undefined) {
    throw new CliError(2, "--cheaper-price needs --at-budget.");
  }
  if (atBudget !== undefined && budget === undefined) {
    throw new CliError(2, "--at-budget needs --budget: without it there is no limit to reach.");
  }
  if (price === undefined) {
    if (budget === undefined) return undefined;
    throw new CliError(2, "--budget needs --price: without it the spending is unknown.");
  }
  if (budget === undefined) return { prices: price };
  if (atBudget === undefined) return { prices: price, cap: budget };
  const cheaper = readSpecFromHere("--at-budget", atBudget);
  const reward = { ...cheaper, rewardKwargs, areKwargsShared: true };
  const spend = cheaperPrice === undefined ? {} : { spend: { prices: cheaperPrice } };
  return { prices: price, cap: budget, whenReached: { reward, ...spend } };
}

function prices(text: string): Prices {
  const parts = text.split(",").map((part) => (part.trim() === "" ? Number.NaN : Number(part)));
  const [perMillionInputTokens, perMillionOutputTokens, perCall] = parts;
  const isPrice = parts.length >= 2 && parts.length <= 3 && parts.every((one) => one >= 0);
  if (isPrice) return { perMillionInputTokens, perMillionOutputTokens, perCall };
  throw new InvalidArgumentError("It must be IN,OUT or IN,OUT,CALL, each at least 0.");
}
