/** Flags about limits, failures and slow answers, and the options of the reward loop that they stand for. */

import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { PolicyOptions, RewardLimits } from "@rayling/reward-loop";
import { count } from "./flag-values.ts";

export interface PolicyFlags {
  readonly rpm?: number;
  readonly tpm?: number;
  readonly tokensPerRequest?: number;
  readonly maxInFlight?: number | "auto";
  readonly breaker: boolean;
  readonly retries: number;
  readonly hedge: boolean;
  readonly totalTimeout: number;
}

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
    .option("--hedge", "begin calls that take longer than most a second time", false)
    .option(
      "--total-timeout <ms>",
      "longest time for one sample with all waiting and tries; 0 for no limit",
      count(0),
      0,
    );
}

export function policyOf(flags: PolicyFlags): PolicyOptions {
  const { rpm, tpm, tokensPerRequest, maxInFlight, breaker } = flags;
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
    retry: flags.retries === 0 ? undefined : { attempts: flags.retries + 1, budget: 1 },
    hedge: flags.hedge,
    totalTimeoutMs: flags.totalTimeout === 0 ? undefined : flags.totalTimeout,
  };
}

function countOrAuto(text: string): number | "auto" {
  if (text === "auto") return "auto";
  try {
    return count(1)(text);
  } catch {
    throw new InvalidArgumentError("It must be a whole number of at least 1, or auto.");
  }
}
