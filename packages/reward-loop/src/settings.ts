/**
 * Options of a reward loop (options/functions.ts), checked once at the edge, and the plain settings that travel to its workers and executors.
 * Names and paths only, never functions: user code is loaded where it runs.
 */

import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { ResourceLimits } from "@rayling/core";
import type { DiscriminativeSettings } from "./reward-model/discriminative.ts";
import type { RewardModelOptions } from "./reward-model/reward-model-manager.ts";
import type { RewardModelUse } from "./reward-model/reward-model-use.ts";
import { routerTokenOf } from "./reward-model/router-options.ts";
import { parseRewardSpec } from "@rayling/reward-manager-registry";
import type { DefaultScoreOptions, RewardSpec } from "@rayling/reward-manager-registry";
import { checkManagerOptions } from "./options/managers.ts";
import { functionOptions } from "./options/functions.ts";
import { checkNeeds, checkOptions, notAnOption, withDefaults } from "./options/read.ts";
import type { OptionsOf } from "./options/table.ts";
import { policyOf } from "./policy-settings.ts";
import type { PolicySettings } from "./policy-settings.ts";
import { withoutRateLimited } from "./rate-limited.ts";
import { withoutRemote } from "./remote.ts";
import { withSandboxLimits } from "./sandbox-fusion.ts";

export type { RewardModelUse } from "./reward-model/reward-model-use.ts";

/** Of one reward function: what it is, and how it is called. */
export type RewardFunctionOptions = OptionsOf<typeof functionOptions>;

/** Where a score comes from if there is no function. */
export interface DiscriminativeUse extends DiscriminativeSettings {
  readonly tokenizer: string;
  readonly policyTokenizer: string | undefined;
}

/** What runs one sample: the same in every executor. */
export interface PipelineSettings {
  readonly reward: RewardSpec | undefined;
  /** Of the score function where there is no `reward`. */
  readonly defaultScore: DefaultScoreOptions;
  readonly manager: string | RewardSpec;
  readonly managerOptions: Readonly<Record<string, unknown>>;
  readonly tokenizer: RewardSpec | undefined;
  readonly rewardRouterAddress: string | undefined;
  /** The router at that address demands it. */
  readonly rewardRouterToken: string | undefined;
  /** That is behind the router, whoever asks it; its tokenizer is what functions get as `rewardModelTokenizer`. */
  readonly rewardModel: Pick<RewardModelUse, "engine" | "model" | "tokenizer"> | undefined;
  readonly discriminative: DiscriminativeUse | undefined;
  readonly baseDirectory: string;
}

export interface ExecutorSettings {
  readonly executors: number;
  readonly isolation: "thread" | "process";
  readonly concurrency: number;
  readonly timeoutMs: number | undefined;
  readonly startTimeoutMs: number;
  readonly resourceLimits: ResourceLimits | undefined;
  readonly pipeline: PipelineSettings;
  /** Of the reward function when the loop looked at it; undefined before. */
  readonly version: string | undefined;
  readonly policy: PolicySettings;
}

export interface RewardLoopSettings extends ExecutorSettings {
  readonly workers: number;
  readonly name: string | undefined;
  /** Which of several rewards it is: part of its workers' names. */
  readonly part: string | undefined;
}

/** Throws RewardLoopOptionError, InvalidRewardSpecError. */
export function readSettings(given: RewardFunctionOptions): RewardLoopSettings {
  checkOptions(functionOptions, given);
  return settingsOf(given);
}

/** Of options that may be as they are, each by itself. Throws RewardLoopOptionError for what they are together, and InvalidRewardSpecError. */
export function settingsOf(given: RewardFunctionOptions): RewardLoopSettings {
  const plain = withSandboxLimits(withoutRemote(withoutRateLimited(given)));
  checkNeeds(functionOptions, plain);
  const options = withDefaults(functionOptions, plain);
  const { workers, concurrency, executors, manager, managerOptions, tokenizer } = options;
  checkManagerOptions(manager, managerOptions);
  const reward = specOf(options.reward);
  const { baseDirectory, sandboxFusion } = options;
  const cache = cacheOf(options.cache, baseDirectory);
  return {
    workers,
    concurrency,
    executors,
    isolation: options.executorIsolation,
    timeoutMs: options.timeoutMs,
    startTimeoutMs: options.startTimeoutMs,
    resourceLimits: options.resourceLimits,
    name: options.name,
    part: undefined,
    version: undefined,
    policy: policyOf({ ...options, cache }, reward?.path ?? "default"),
    pipeline: {
      reward,
      defaultScore: {
        sandboxFusionUrl: sandboxFusion?.url,
        memoryLimitMb: sandboxFusion?.memoryLimitMb,
        // Programs are processes, and each executor starts its own.
        maxConcurrent: Math.max(1, Math.floor(availableParallelism() / (workers * executors))),
      },
      manager,
      managerOptions,
      tokenizer: tokenizerOf(specOf(tokenizer), baseDirectory),
      rewardRouterAddress: options.rewardRouterAddress,
      rewardRouterToken: routerTokenOf(options),
      rewardModel: undefined,
      discriminative: undefined,
      baseDirectory,
    },
  };
}

function specOf(spec: string | RewardSpec | undefined): RewardSpec | undefined {
  return typeof spec === "string" ? parseRewardSpec(spec) : spec;
}

/**
 * The settings when the reward model's router is there.
 *
 * @param address host:port of it
 * @param token what it demands
 */
export function withRewardModel(
  settings: RewardLoopSettings,
  use: RewardModelUse,
  address: string,
  token?: string,
): RewardLoopSettings {
  const { pipeline } = settings;
  const { engine, model, policyTokenizer, maxRetries, timeoutMs } = use;
  const tokenizer = use.tokenizer && resolve(pipeline.baseDirectory, use.tokenizer);
  const scoresItself = pipeline.reward === undefined;
  if (scoresItself && tokenizer === undefined) {
    notAnOption("rewardModel.tokenizer", "the folder of the reward model's tokenizer", tokenizer);
  }
  const discriminative: DiscriminativeUse | undefined =
    !scoresItself || tokenizer === undefined
      ? undefined
      : {
          engine,
          model,
          address,
          token,
          tokenizer,
          policyTokenizer: policyTokenizer && resolve(pipeline.baseDirectory, policyTokenizer),
          ...(maxRetries === undefined ? {} : { maxRetries }),
          ...(timeoutMs === undefined ? {} : { timeoutMs }),
        };
  // A token goes to its own router only.
  const router =
    pipeline.rewardRouterAddress === undefined
      ? { rewardRouterAddress: address, rewardRouterToken: token }
      : {};
  const rewardModel = { engine, model, ...(tokenizer === undefined ? {} : { tokenizer }) };
  const asking = { ...router, rewardModel, discriminative };
  return { ...settings, pipeline: { ...pipeline, ...asking } };
}

/** Without what is the loop's own business. */
export function modelOptionsOf(use: RewardModelUse): RewardModelOptions {
  const own = new Set(["model", "tokenizer", "policyTokenizer", "maxRetries", "timeoutMs"]);
  const options = Object.entries(use).filter(([name]) => !own.has(name));
  return Object.fromEntries(options) as unknown as RewardModelOptions;
}

function cacheOf(path: string | undefined, baseDirectory: string): string | undefined {
  // SQLite's name for a database that is nowhere on disk.
  if (path === undefined || path === ":memory:") return path;
  return resolve(baseDirectory, path);
}

/** A folder is a model's: our own module reads it. */
function tokenizerOf(spec: RewardSpec | undefined, baseDirectory: string): RewardSpec | undefined {
  if (spec === undefined) return undefined;
  const path = resolve(baseDirectory, spec.path);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    return { path: ownTokenizer, name: "createTokenizer", rewardKwargs: { path } };
  }
  return { ...spec, name: spec.name ?? "createTokenizer" };
}

/** From source and installed. */
const ownTokenizer: string = new URL(
  `./tokenizer/index${import.meta.url.slice(-3)}`,
  import.meta.url,
).href;
