/**
 * Keys of ours under `reward`: what is done about limits, failures, slow answers and what judging costs. They are the options of a reward loop in snake_case, by verl's words where it has some
 * (max_rpm, max_tpm, estimated_tokens_per_request). Null is not set: then the loop's own default holds.
 */

import type { RewardSpec } from "@rayling/reward-manager-registry";
import { type Frozen, nested, option, readOptions } from "@rayling/config-tree/options";
import { z } from "zod";
import type { RewardLoopOptions, RewardPart, SpendOptions } from "../compose/loop-options.ts";
import type { RewardLimits } from "../policy-settings.ts";
import { RewardConfigError } from "./reward-config-error.ts";

const failureClass = z.enum(["infrastructure", "rate-limit", "timeout", "data", "user-code"]);

const wholeNumber = z.number().int();
/** What a timer can take. */
const timerMs = z
  .number()
  .positive()
  .max(2 ** 31 - 1);
const text = z.string().min(1);
const from0 = z.number().min(0);
const above0 = z.number().positive();

/** Null is not set: then the loop's own default holds. */
export function orNull<Value extends z.ZodType>(
  type: Value,
  help: string,
): z.ZodPrefault<z.ZodNullable<Value>> {
  return option(type.nullable(), null, help);
}

const prices = nested({
  per_million_input_tokens: orNull(from0, "The price of a million tokens of prompts."),
  per_million_output_tokens: orNull(from0, "The price of a million tokens of answers."),
  per_call: orNull(from0, "The price of a call."),
});

/** A function of the user's, as verl names one. */
const functionKeys = {
  path: orNull(text, "The module of a score function; null: none."),
  name: option(text, "compute_score", "Which of its exports."),
  reward_kwargs: option(z.record(z.string(), z.unknown()), {}, "What it gets with each sample."),
};

export const rewardFunction = nested(functionKeys);

/** What each of several functions may have of its own. */
export const partPolicyKeys = {
  executors: orNull(
    wholeNumber.min(1),
    "Threads, or processes, of each worker in which score functions run; null: 2.",
  ),
  executor_isolation: orNull(
    z.enum(["thread", "process"]),
    "null: threads, and processes with the manager remote.",
  ),
  attempt_timeout_ms: orNull(
    timerMs,
    "How long a score function may take for one try; null: as long as it takes, with the manager rate_limited its timeout.",
  ),
  total_timeout_ms: orNull(
    timerMs,
    "How long a sample may take from when a worker takes it on, with its waiting and all of its tries; null: as long as it takes.",
  ),
  start_timeout_ms: orNull(timerMs, "How long the modules may take to load; null: a minute."),
  limits: nested({
    endpoint: orNull(
      text,
      "Whose limits these are: they hold for all workers of all reward loops that name it, and win over those of the manager rate_limited; null: the path of the function.",
    ),
    max_rpm: orNull(above0, "Calls a minute."),
    max_tpm: orNull(above0, "Tokens a minute."),
    estimated_tokens_per_request: orNull(
      from0,
      "Until a score tells its usage; null: 2000 with max_tpm.",
    ),
    max_concurrent: orNull(
      z.union([wholeNumber.min(1), z.literal("auto")]),
      "Calls at once; auto finds out how many the endpoint takes.",
    ),
    adaptive: nested({
      min: orNull(wholeNumber.min(1), "Used by auto: the bound; null: 1."),
      max: orNull(wholeNumber.min(1), "Used by auto: the bound; null: 4096."),
      initial: orNull(wholeNumber.min(1), "Used by auto: where it begins; null: 16."),
      latency_tolerance: orNull(
        z.number().gt(1),
        "Used by auto: an answer that takes so many times as long as the quickest did is slow.",
      ),
    }),
    shares: option(
      z.record(z.string(), above0),
      {},
      "The shares of lanes that wait at the same time (training, validation, recovery); 1 each.",
    ),
    breaker: nested({
      enable: option(
        z.boolean(),
        false,
        "Whether an endpoint that fails is not called for a while.",
      ),
      window: orNull(wholeNumber.min(2), "How many of the last calls are looked at; null: 50."),
      threshold: orNull(z.number().gt(0).max(1), "The share that failed; null: 0.5."),
      open_ms: orNull(above0, "For so long; null: 5000."),
      probes: orNull(wholeNumber.min(1), "Calls that must go well then; null: 3."),
    }),
    minute_ms: orNull(
      above0,
      "How long its minute is, where time goes faster (a replay); with max_rpm or max_tpm.",
    ),
  }),
  retry: nested({
    enable: option(
      z.boolean(),
      false,
      "Whether what failed and may go better later is scored again.",
    ),
    attempts: orNull(wholeNumber.min(1), "Tries in all; null: 3."),
    base_ms: orNull(from0, "The first pause; null: 500."),
    max_ms: orNull(from0, "The longest pause; null: 30000."),
    max_retry_after_ms: orNull(from0, "The longest retry-after that is waited for; null: 120000."),
    classes: orNull(
      z.array(failureClass),
      "Which failures; null: infrastructure, rate-limit and timeout.",
    ),
    budget: orNull(from0, "Further tries for each first one; null: 0.2."),
  }),
  hedge: nested({
    enable: option(
      z.boolean(),
      false,
      "Whether a call that takes long is begun a second time beside it.",
    ),
    quantile: orNull(
      z.number().gt(0).lt(1),
      "Longer than that quantile of the last ones; null: 0.95.",
    ),
    budget: orNull(above0, "For so many of all; null: 0.1."),
  }),
  cache: orNull(text, "A file of scores that were given before, and are not paid for again."),
  join_same: orNull(
    z.boolean(),
    "Whether samples that say the same are asked for once; null: with a cache.",
  ),
  spend: nested({
    prices,
    cap: orNull(from0, "When judging ends, by prices and the usage that scores tell."),
    warn_at: orNull(
      z.number().gt(0).max(1),
      "The share of the cap at which there is a warning; null: 0.8.",
    ),
    when_reached: nested({
      ...functionKeys,
      path: orNull(
        text,
        "A cheaper function that takes over then; null: no sample is begun any more.",
      ),
      prices,
    }),
  }),
};

/** For the table of `reward`. */
export const policyKeys = {
  ...partPolicyKeys,
  on_failure: nested({
    fallback: orNull(
      z.number(),
      "The score of samples that cannot be scored; null: they are invalid, and masked.",
    ),
    again: option(
      z.boolean(),
      false,
      "Whether they are scored once more when all others of a step are done.",
    ),
    fail_above: orNull(
      z.number().min(0).max(1),
      "The share of a step's samples without a score at which the run fails.",
    ),
  }),
  spent_before: orNull(
    text,
    "A reward log of an earlier part of the run, whose costs count towards the cap.",
  ),
  record: orNull(text, "A reward log (JSON Lines) to which every outcome is appended."),
};

export type FunctionConfig = Frozen<z.output<typeof rewardFunction>>;
export type PartPolicyConfig = Frozen<z.output<z.ZodObject<typeof partPolicyKeys>>>;
export type RewardPolicyConfig = Frozen<z.output<z.ZodObject<typeof policyKeys>>>;
type PricesConfig = Frozen<z.output<typeof prices>>;

/** What is there where none is named: verl's defaults. */
export const noFunction: FunctionConfig = readOptions(rewardFunction, {});

/**
 * Throws RewardConfigError for what would do nothing, or would be refused when the loop is made.
 *
 * @param place where they stand: "reward", "reward.rewards.format"
 */
export function checkPolicyKeys(
  place: string,
  { limits, retry, hedge, spend }: PartPolicyConfig,
): void {
  const { adaptive, breaker, max_concurrent: most } = limits;
  checkSwitch(`${place}.retry`, retry);
  checkSwitch(`${place}.hedge`, hedge);
  checkSwitch(`${place}.limits.breaker`, breaker);
  for (const [key, value] of Object.entries(adaptive)) {
    if (value === null || most === "auto") continue;
    throw new RewardConfigError(
      `${place}.limits.adaptive.${key}`,
      `is ${value}, and ${place}.limits.max_concurrent, which it is of, is not auto`,
      value,
      `${place}.limits.max_concurrent=auto`,
    );
  }
  if ((adaptive.min ?? 1) > (adaptive.max ?? Infinity)) {
    throw new RewardConfigError(
      `${place}.limits.adaptive.min`,
      `is ${adaptive.min}, more than ${place}.limits.adaptive.max, ${adaptive.max}`,
      adaptive.min,
    );
  }
  const { cap, when_reached: whenReached } = spend;
  if (cap !== null && !hasPrices(spend.prices)) {
    throw new RewardConfigError(
      `${place}.spend.cap`,
      `is ${cap}, and without ${place}.spend.prices nobody knows what is spent`,
      cap,
    );
  }
  if (whenReached.path !== null && cap === null) {
    throw new RewardConfigError(
      `${place}.spend.when_reached.path`,
      `is ${whenReached.path}, and without ${place}.spend.cap nothing is reached`,
      whenReached.path,
    );
  }
}

/** What belongs to something that is off would do nothing. */
function checkSwitch(place: string, section: { readonly enable: boolean }): void {
  if (section.enable) return;
  for (const [key, value] of Object.entries(section)) {
    if (key === "enable" || value === null) continue;
    throw new RewardConfigError(
      `${place}.${key}`,
      `is ${JSON.stringify(value)}, and ${place}.enable is false`,
      value,
      `${place}.enable=true`,
    );
  }
}

/** The same as options of a reward loop: those that are set. */
export function policyOptionsOf(config: RewardPolicyConfig): Partial<RewardLoopOptions> {
  const { on_failure: onFailure, spent_before: spentBefore, record } = config;
  const failing = set({ ...onFailure, again: onFailure.again ? true : null });
  return {
    ...partPolicyOptionsOf(config),
    ...set({ spentBefore, record }),
    ...(Object.keys(failing).length === 0 ? {} : { onFailure: failing }),
  };
}

/** The same of one of several functions. */
export function partPolicyOptionsOf(config: PartPolicyConfig): Partial<RewardPart> {
  const { retry, hedge, limits, spend } = config;
  const ownLimits = limitsOf(limits);
  return {
    ...set({
      executors: config.executors,
      executorIsolation: config.executor_isolation,
      timeoutMs: config.attempt_timeout_ms,
      totalTimeoutMs: config.total_timeout_ms,
      startTimeoutMs: config.start_timeout_ms,
      cache: config.cache,
      joinSame: config.join_same,
    }),
    ...(Object.keys(ownLimits).length === 0 ? {} : { limits: ownLimits }),
    ...(retry.enable ? { retry: set(retry) } : {}),
    ...(hedge.enable ? { hedge: set(hedge) } : {}),
    ...(hasPrices(spend.prices) ? { spend: spendOf(spend) } : {}),
  };
}

function limitsOf(limits: PartPolicyConfig["limits"]): RewardLimits {
  const { adaptive, breaker, shares, max_concurrent: most } = limits;
  return {
    ...set({
      endpoint: limits.endpoint,
      requestsPerMinute: limits.max_rpm,
      tokensPerMinute: limits.max_tpm,
      tokensPerRequest: limits.estimated_tokens_per_request,
      minuteMs: limits.minute_ms,
    }),
    ...(most === null ? {} : { concurrency: most === "auto" ? set(adaptive) : most }),
    ...(Object.keys(shares).length === 0 ? {} : { shares }),
    ...(breaker.enable ? { breaker: set(breaker) } : {}),
  };
}

function spendOf(spend: PartPolicyConfig["spend"]): SpendOptions {
  const { cap, warn_at: warnAt, when_reached: judge } = spend;
  const reward = rewardOf(judge);
  const itsPrices = hasPrices(judge.prices) ? { spend: { prices: set(judge.prices) } } : {};
  return {
    prices: set(spend.prices),
    ...set({ cap, warnAt }),
    ...(reward === undefined ? {} : { whenReached: { reward, ...itsPrices } }),
  };
}

/** Undefined where there is none. verl's default name stands for the names that such a function usually has here, too. */
export function rewardOf({ path, name, reward_kwargs }: FunctionConfig): RewardSpec | undefined {
  if (path === null) return undefined;
  return { path, ...(name === noFunction.name ? {} : { name }), rewardKwargs: reward_kwargs };
}

function hasPrices(some: PricesConfig): boolean {
  return Object.values(some).some((price) => price !== null);
}

/** Without what is null, by the library's names. */
function set<Section extends object>(section: Section): Camel<Section> {
  const entries = Object.entries(section).filter(
    ([key, value]) => value !== null && key !== "enable",
  );
  return Object.fromEntries(
    entries.map(([key, value]) => [camelKey(key), value]),
  ) as Camel<Section>;
}

type Camel<Section> = {
  readonly [Key in Exclude<keyof Section, "enable"> as CamelKey<Key & string>]?: NonNullable<
    Section[Key]
  >;
};
type CamelKey<Key extends string> = Key extends `${infer Head}_${infer Rest}`
  ? `${Head}${Capitalize<CamelKey<Rest>>}`
  : Key;

function camelKey(key: string): string {
  return key.replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
}
