/**
 * Options of a reward loop (options/defaults/functions.ts), checked once at the edge, and the plain
 * settings that travel to its workers and executors. Names and paths only, never functions: user
 * code is loaded where it runs.
 */

import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { isHubPath } from "@rayling/data-proto";
import type { ResourceLimits } from "@rayling/core";
import type { DiscriminativeSettings } from "../reward-model/discriminative.ts";
import type { RewardModelUse } from "../options/defaults/reward-model.ts";
import { routerTokenOf } from "../reward-model/router-options.ts";
import { parseRewardSpec } from "@rayling/reward-manager-registry";
import type { DefaultScoreOptions, RewardSpec } from "@rayling/reward-manager-registry";
import { checkManagerOptions, isManagerPath } from "../options/defaults/managers.ts";
import { computeScoreOptions, functionOptions } from "../options/defaults/functions.ts";
import { checkNeeds, checkOptions, notAnOption, withDefaults } from "../options/read.ts";
import type { OptionsOf } from "../options/table.ts";
import { policyOf } from "./policy-settings.ts";
import type { PolicySettings } from "./policy-settings.ts";
import { heapLimitsOf } from "./heap-limits.ts";
import { withoutRateLimited } from "./rate-limited-manager.ts";
import { withoutRemote } from "./remote-manager.ts";
import { withSandboxLimits } from "./sandbox-fusion.ts";

export type { RewardModelUse } from "../options/defaults/reward-model.ts";

/** Options of one reward function, and of its calls. */
export type RewardFunctionOptions = OptionsOf<typeof functionOptions>;

/** verl `reward.compute_score_kwargs`; these are keys of ours. */
export type ComputeScoreKwargs = OptionsOf<typeof computeScoreOptions>;

/** The source of scores without a function. */
export interface DiscriminativeUse extends DiscriminativeSettings {
  readonly tokenizer: string;
  readonly policyTokenizer: string | undefined;
}

/** A reward model that a function asks by its name. */
export interface ModelSettings extends Pick<RewardModelUse, "engine" | "model" | "tokenizer"> {
  /** host:port of its router. */
  readonly address: string;
  /** The token that the router demands. */
  readonly token: string | undefined;
}

/** The settings that score one sample, equal in every executor. */
export interface PipelineSettings {
  /** The score function; undefined: the default one. */
  readonly reward: RewardSpec | undefined;
  /** Options of the default score function, used without `reward`. */
  readonly defaultScore: DefaultScoreOptions;
  /** The name of a reward manager, or the place of a class. */
  readonly manager: string | RewardSpec;
  /** Settings of the manager. */
  readonly managerOptions: Readonly<Record<string, unknown>>;
  /** The module that decodes responses of token ids. */
  readonly tokenizer: RewardSpec | undefined;
  /** host:port of the router of the reward model. */
  readonly rewardRouterAddress: string | undefined;
  /** The router at that address demands it. */
  readonly rewardRouterToken: string | undefined;
  /**
   * The model behind the router, for any function that asks it; functions get its tokenizer as
   * `rewardModelTokenizer`.
   */
  readonly rewardModel: Pick<RewardModelUse, "engine" | "model" | "tokenizer"> | undefined;
  /** Names of those that the function asks; undefined: all. */
  readonly askedModels: readonly string[] | undefined;
  /** The models that it asks, by their names. */
  readonly rewardModels: Readonly<Record<string, ModelSettings>> | undefined;
  /** The model that gives the scores, where no function does. */
  readonly discriminative: DiscriminativeUse | undefined;
  /** The base of relative paths. */
  readonly baseDirectory: string;
}

/** The version of a reward function, and the texts by which it is known without a digest. */
export interface RewardVersion {
  readonly version: string;
  /** Texts of modules: of reward function, manager and tokenizer. */
  readonly texts: readonly string[];
}

/** Settings of a worker and its executors. */
export interface ExecutorSettings {
  /** The most threads or processes of each worker in which score functions run. */
  readonly executors: number;
  /** How many are there from the start: others are started when they are needed. */
  readonly leastExecutors: number;
  /** Whether executors are threads or processes. */
  readonly isolation: "thread" | "process";
  /** Samples at work per worker. */
  readonly concurrency: number;
  /** The time limit of a score function for one attempt; undefined: none. */
  readonly timeoutMs: number | undefined;
  /** How long the modules may take to load. */
  readonly startTimeoutMs: number;
  /** Heap limits of an executor. */
  readonly resourceLimits: ResourceLimits | undefined;
  /** Settings that score one sample. */
  readonly pipeline: PipelineSettings;
  /** The version of the reward function when the loop was opened; undefined before. */
  readonly version: RewardVersion | undefined;
  /** Retries, limits and caching of calls. */
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

/**
 * Settings from options that were checked one by one. Throws RewardLoopOptionError for options that
 * do not go together, and InvalidRewardSpecError.
 */
export function settingsOf(given: RewardFunctionOptions): RewardLoopSettings {
  const plain = withSandboxLimits(withoutRemote(withoutRateLimited(given)));
  checkNeeds(functionOptions, plain);
  const options = withDefaults(functionOptions, plain);
  const { workers, concurrency, executors, manager, managerOptions, tokenizer } = options;
  checkManagerOptions(manager, managerOptions);
  const reward = specOf(options.reward);
  const { baseDirectory, sandboxFusion } = options;
  const cache = cacheOf(options.cache, baseDirectory);
  const policy = policyOf({ ...options, cache }, reward?.path ?? "default");
  return {
    workers,
    concurrency,
    executors,
    // The second call of a hedge goes to another executor than the first, and that at once.
    leastExecutors: plain.executors === undefined && policy.hedge === undefined ? 1 : executors,
    isolation: options.executorIsolation,
    timeoutMs: options.timeoutMs,
    startTimeoutMs: options.startTimeoutMs,
    resourceLimits: heapLimitsOf(options.resourceLimits),
    name: options.name,
    part: undefined,
    version: undefined,
    policy,
    pipeline: {
      reward,
      defaultScore: {
        lenient: lenientOf(options),
        sandboxFusionUrl: sandboxFusion?.url,
        memoryLimitMb: sandboxFusion?.memoryLimitMb,
        retryDelayMs: policy.retry?.baseMs,
        // Programs are processes, and each executor starts its own.
        maxConcurrent: Math.max(1, Math.floor(availableParallelism() / (workers * executors))),
      },
      manager: managerOf(manager),
      managerOptions,
      tokenizer: tokenizerOf(specOf(tokenizer), baseDirectory),
      rewardRouterAddress: options.rewardRouterAddress,
      rewardRouterToken: routerTokenOf(options),
      rewardModel: undefined,
      askedModels: options.askedModels,
      rewardModels: undefined,
      discriminative: undefined,
      baseDirectory,
    },
  };
}

/** Throws RewardLoopOptionError. */
function lenientOf({ computeScoreKwargs, reward }: RewardFunctionOptions): boolean {
  if (computeScoreKwargs !== undefined && reward !== undefined) {
    const wanted = "left out with a `reward` of your own, which has rewardKwargs";
    notAnOption("computeScoreKwargs", wanted, computeScoreKwargs);
  }
  return withDefaults(computeScoreOptions, computeScoreKwargs ?? {}).lenient;
}

function specOf(spec: string | RewardSpec | undefined): RewardSpec | undefined {
  return typeof spec === "string" ? parseRewardSpec(spec) : spec;
}

/** A text is the name of a manager, or the place of a class as that of a reward. */
function managerOf(manager: string | RewardSpec): string | RewardSpec {
  return typeof manager === "string" && isManagerPath(manager) ? parseRewardSpec(manager) : manager;
}

function cacheOf(path: string | undefined, baseDirectory: string): string | undefined {
  // SQLite's name for a database that is nowhere on disk.
  if (path === undefined || path === ":memory:") return path;
  return resolve(baseDirectory, path);
}

/** A folder is a model's: our own module reads it. */
function tokenizerOf(spec: RewardSpec | undefined, baseDirectory: string): RewardSpec | undefined {
  if (spec === undefined) return undefined;
  const isOfHub = isHubPath(spec.path);
  const path = isOfHub ? spec.path : resolve(baseDirectory, spec.path);
  if (isOfHub || statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) {
    return { path: ownTokenizer, name: "createTokenizer", rewardKwargs: { path } };
  }
  return { ...spec, name: spec.name ?? "createTokenizer" };
}

/** The path of this package's tokenizer: from source, and from a chunk of the built package. */
const ownTokenizer: string = new URL(
  import.meta.url.endsWith(".ts") ? "../tokenizer/index.ts" : "./tokenizer/index.js",
  import.meta.url,
).href;
