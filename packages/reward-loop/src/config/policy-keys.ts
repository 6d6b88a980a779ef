/**
 * Keys of ours under `reward`: what is done about limits, failures, slow answers and what judging costs. They are the options of a reward loop in snake_case, by verl's words where it has some
 * (max_rpm, max_tpm, estimated_tokens_per_request). Null is not set: then the loop's own default holds.
 */

import type { RewardSpec } from "@rayling/reward-manager-registry";
import { z } from "zod";
import type { RewardLoopOptions, RewardPart, SpendOptions } from "../compose/loop-options.ts";
import type { FailureClass } from "../faults/failure-class.ts";
import type { RewardLimits } from "../policy-settings.ts";
import { RewardConfigError } from "./reward-config-error.ts";

interface PricesConfig {
  readonly per_million_input_tokens: number | null;
  readonly per_million_output_tokens: number | null;
  readonly per_call: number | null;
}

/** What each of several functions may have of its own. */
export interface PartPolicyConfig {
  /** Of a worker: threads, or processes, in which score functions run. */
  readonly executors: number | null;
  readonly executor_isolation: "thread" | "process" | null;
  /** Of one try of a sample. Null: as long as it takes; with the rate_limited manager its `timeout`. */
  readonly attempt_timeout_ms: number | null;
  /** Of a sample, with its waiting and all of its tries. */
  readonly total_timeout_ms: number | null;
  /** Of the user's modules, to load. */
  readonly start_timeout_ms: number | null;
  readonly limits: {
    readonly endpoint: string | null;
    readonly max_rpm: number | null;
    readonly max_tpm: number | null;
    readonly estimated_tokens_per_request: number | null;
    readonly max_concurrent: number | "auto" | null;
    /** Of max_concurrent auto. */
    readonly adaptive: {
      readonly min: number | null;
      readonly max: number | null;
      readonly initial: number | null;
      readonly latency_tolerance: number | null;
    };
    /** By lane. */
    readonly shares: Readonly<Record<string, number>>;
    readonly breaker: {
      readonly enable: boolean;
      readonly window: number | null;
      readonly threshold: number | null;
      readonly open_ms: number | null;
      readonly probes: number | null;
    };
    readonly minute_ms: number | null;
  };
  readonly retry: {
    readonly enable: boolean;
    readonly attempts: number | null;
    readonly base_ms: number | null;
    readonly max_ms: number | null;
    readonly max_retry_after_ms: number | null;
    readonly classes: readonly FailureClass[] | null;
    readonly budget: number | null;
  };
  readonly hedge: {
    readonly enable: boolean;
    readonly quantile: number | null;
    readonly budget: number | null;
  };
  /** A file. */
  readonly cache: string | null;
  readonly join_same: boolean | null;
  readonly spend: {
    readonly prices: PricesConfig;
    readonly cap: number | null;
    readonly warn_at: number | null;
    /** The judge that takes over at the cap; without a path no sample is begun any more. */
    readonly when_reached: FunctionConfig & { readonly prices: PricesConfig };
  };
}

export interface RewardPolicyConfig extends PartPolicyConfig {
  readonly on_failure: {
    readonly fallback: number | null;
    readonly again: boolean;
    readonly fail_above: number | null;
  };
  /** A reward log of an earlier part of the run, whose costs count towards the cap. */
  readonly spent_before: string | null;
  /** A reward log to which every outcome is appended. */
  readonly record: string | null;
}

const failureClass = z.enum(["infrastructure", "rate-limit", "timeout", "data", "user-code"]);

const count = orNull(z.number().int().min(1));
const positive = orNull(z.number().positive());
const amount = orNull(z.number().min(0));
const share = orNull(z.number().min(0).max(1));
const shareAbove = orNull(z.number().gt(0).max(1));
/** What a timer can take. */
const milliseconds = orNull(
  z
    .number()
    .positive()
    .max(2 ** 31 - 1),
);
const text = orNull(z.string().min(1));

const prices = z
  .strictObject({
    per_million_input_tokens: amount,
    per_million_output_tokens: amount,
    per_call: amount,
  })
  .prefault({});

/** A function of the user's, as verl names one. */
export interface FunctionConfig {
  readonly path: string | null;
  readonly name: string;
  readonly reward_kwargs: Readonly<Record<string, unknown>>;
}

/** A schema for each key, with its default. */
export type Keys<Config> = { readonly [Key in keyof Config]: z.ZodType<Config[Key]> };

const functionKeys = {
  path: text,
  name: z.string().min(1).default("compute_score"),
  reward_kwargs: z.record(z.string(), z.unknown()).default({}),
};

export const rewardFunction: z.ZodType<FunctionConfig> = z.strictObject(functionKeys).prefault({});

/** What is there where none is named: verl's defaults. */
export const noFunction: FunctionConfig = rewardFunction.parse({});

/** For the schema of a part. */
export const partPolicyKeys: Keys<PartPolicyConfig> = {
  executors: count,
  executor_isolation: orNull(z.enum(["thread", "process"])),
  attempt_timeout_ms: milliseconds,
  total_timeout_ms: milliseconds,
  start_timeout_ms: milliseconds,
  limits: z
    .strictObject({
      endpoint: text,
      max_rpm: positive,
      max_tpm: positive,
      estimated_tokens_per_request: amount,
      max_concurrent: orNull(z.union([z.number().int().min(1), z.literal("auto")])),
      adaptive: z
        .strictObject({
          min: count,
          max: count,
          initial: count,
          latency_tolerance: orNull(z.number().gt(1)),
        })
        .prefault({}),
      shares: z.record(z.string(), z.number().positive()).default({}),
      breaker: z
        .strictObject({
          enable: z.boolean().default(false),
          window: orNull(z.number().int().min(2)),
          threshold: shareAbove,
          open_ms: positive,
          probes: count,
        })
        .prefault({}),
      minute_ms: positive,
    })
    .prefault({}),
  retry: z
    .strictObject({
      enable: z.boolean().default(false),
      attempts: count,
      base_ms: amount,
      max_ms: amount,
      max_retry_after_ms: amount,
      classes: orNull(z.array(failureClass)),
      budget: amount,
    })
    .prefault({}),
  hedge: z
    .strictObject({
      enable: z.boolean().default(false),
      quantile: orNull(z.number().gt(0).lt(1)),
      budget: positive,
    })
    .prefault({}),
  cache: text,
  join_same: orNull(z.boolean()),
  spend: z
    .strictObject({
      prices,
      cap: amount,
      warn_at: shareAbove,
      when_reached: z.strictObject({ ...functionKeys, prices }).prefault({}),
    })
    .prefault({}),
};

/** For the schema of `reward`. */
export const policyKeys: Keys<RewardPolicyConfig> = {
  ...partPolicyKeys,
  on_failure: z
    .strictObject({
      fallback: orNull(z.number()),
      again: z.boolean().default(false),
      fail_above: share,
    })
    .prefault({}),
  spent_before: text,
  record: text,
};

export function orNull<Value>(
  type: z.ZodType<Value>,
): z.ZodDefault<z.ZodNullable<z.ZodType<Value>>> {
  return type.nullable().default(null);
}

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
