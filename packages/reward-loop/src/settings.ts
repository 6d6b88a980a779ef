/**
 * Options of a reward loop, checked once at the edge, and the plain settings that travel to its workers and executors.
 * Names and paths only, never functions: user code is loaded where it runs.
 */

import { statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import type { ResourceLimits } from "@rayling/core";
import type { DiscriminativeSettings } from "./reward-model/discriminative.ts";
import type { RewardModelOptions } from "./reward-model/reward-model-manager.ts";
import { routerTokenOf } from "./reward-model/router-options.ts";
import { parseRewardSpec } from "@rayling/reward-manager-registry";
import type { DefaultScoreOptions, RewardSpec } from "@rayling/reward-manager-registry";
import { RewardLoopOptionError } from "./errors.ts";
import { checkManagerOptions } from "./manager-options.ts";
import { between, checkKeys, notAnOption } from "./option-checks.ts";
import { readPolicy } from "./policy-settings.ts";
import type { PolicyOptions, PolicySettings } from "./policy-settings.ts";
import { withoutRateLimited } from "./rate-limited.ts";
import { withoutRemote } from "./remote.ts";
import { withSandboxLimits } from "./sandbox-fusion.ts";
import type { SandboxFusionUse } from "./sandbox-fusion.ts";

/** Of one reward function: what it is, and how it is called. */
export interface RewardFunctionOptions extends PolicyOptions {
  /** RewardLoopWorkers. Default: one per CPU, at least 2, at most 8 (verl: 8). */
  readonly workers?: number | undefined;
  /** Samples at work per worker; a quarter more stand ready where they are next. Default 16. */
  readonly concurrency?: number | undefined;
  /** Threads (or processes) per worker in which score functions run. Default 2: while one is blocked, one goes on. */
  readonly executors?: number | undefined;
  /**
   * What an executor is: a thread, or a process of its own for code that may crash (native add-ons, process.abort, memory beyond any limit): that costs its own sample then. A process
   * takes longer to start and some 50 MB. Default "thread"; "process" with the manager remote.
   */
  readonly executorIsolation?: "thread" | "process" | undefined;
  /** How long a score function may take on one sample, from its start. Default: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** How long the user's modules may take to load. Default 60 s. */
  readonly startTimeoutMs?: number | undefined;
  /** The score function: PATH[:name], or with rewardKwargs. Default: verl's scorers by data source. */
  readonly reward?: string | RewardSpec | undefined;
  /** The service in which programs are tested (verl's data sources codecontests, apps, codeforces, taco). Default: they run on this machine, a few at a time. */
  readonly sandboxFusion?: SandboxFusionUse | undefined;
  /** A manager's name, or the path of its class. Default "naive". */
  readonly manager?: string | RewardSpec | undefined;
  /** The manager's own settings; others than it reads are refused, but for a class of yours. */
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  /** A model's folder, or a module that exports a function that makes the tokenizer (default name createTokenizer); it gets `rewardKwargs`. */
  readonly tokenizer?: string | RewardSpec | undefined;
  /** host:port of a reward model's router, handed to the score function. Default: that of `rewardModel`. */
  readonly rewardRouterAddress?: string | undefined;
  /** The router demands this token. The score function gets it beside the address, and `@rayling/reward-loop/client` sends it by itself. Default: that of `rewardModel`. */
  readonly rewardRouterToken?: string | undefined;
  /** A reward model, for score functions of yours that ask it, or without one to score by itself. */
  readonly rewardModel?: RewardModelUse | undefined;
  /** Where relative paths start. Default: the current directory. */
  readonly baseDirectory?: string | undefined;
  /** Workers are named `{name}_{i}`. Default reward_loop_worker, with a suffix where that is taken. */
  readonly name?: string | undefined;
  /** Heap limits of an executor: a score function that reaches one is reported, the others go on. */
  readonly resourceLimits?: ResourceLimits | undefined;
}

/** verl `reward.reward_model`. */
export interface RewardModelUse extends RewardModelOptions {
  /** By the name under which its servers have it. */
  readonly model: string;
  /** Folder of its tokenizer and chat template; needed where it scores by itself. Functions of yours get it as `rewardModelTokenizer`. */
  readonly tokenizer?: string;
  /** Folder of the policy's tokenizer: responses that come as token ids, and its end of sequence. */
  readonly policyTokenizer?: string;
  /** Tries of a request. Default 16. */
  readonly maxRetries?: number;
  /** Of one try. Default: as long as it takes. */
  readonly timeoutMs?: number;
}

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
  checkKeys<RewardFunctionOptions>("", given, functionOptionNames);
  const options = withSandboxLimits(withoutRemote(withoutRateLimited(given)));
  const { manager = "naive", managerOptions = {}, tokenizer } = options;
  checkManagerOptions(manager, managerOptions);
  const reward = specOf("reward", options.reward);
  const baseDirectory = options.baseDirectory ?? process.cwd();
  const cache = cacheOf(options.cache, baseDirectory);
  const policy = readPolicy({ ...options, cache }, reward?.path ?? "default");
  const longest = { above: 0, most: 2 ** 31 - 1 };
  const cpus = availableParallelism();
  const workers = whole("workers", options.workers, defaultWorkers());
  const executors = whole("executors", options.executors, 2);
  return {
    workers,
    concurrency: whole("concurrency", options.concurrency, 16),
    executors,
    isolation: isolationOf(options.executorIsolation),
    // What may not go on for longer than all of its tries together is ended then.
    timeoutMs: between("timeoutMs", options.timeoutMs, longest) ?? policy.totalTimeoutMs,
    startTimeoutMs: between("startTimeoutMs", options.startTimeoutMs, longest) ?? 60_000,
    resourceLimits: options.resourceLimits,
    name: options.name === undefined ? undefined : filled("name", options.name),
    part: undefined,
    version: undefined,
    policy,
    pipeline: {
      reward,
      defaultScore: {
        sandboxFusionUrl: options.sandboxFusion?.url,
        memoryLimitMb: options.sandboxFusion?.memoryLimitMb,
        // Programs are processes, and each executor starts its own.
        maxConcurrent: Math.max(1, Math.floor(cpus / (workers * executors))),
      },
      manager: typeof manager === "string" ? filled("manager", manager) : manager,
      managerOptions,
      tokenizer: tokenizerOf(specOf("tokenizer", tokenizer), baseDirectory),
      rewardRouterAddress: options.rewardRouterAddress,
      rewardRouterToken: routerTokenOf(options),
      rewardModel: undefined,
      discriminative: undefined,
      baseDirectory,
    },
  };
}

function specOf(option: string, spec: string | RewardSpec | undefined): RewardSpec | undefined {
  if (typeof spec === "string") return parseRewardSpec(spec);
  if (spec === undefined || (typeof spec === "object" && typeof spec?.path === "string"))
    return spec;
  return notAnOption(option, "a text or { path, name?, rewardKwargs? }", spec);
}

export const functionOptionNames: readonly (keyof RewardFunctionOptions)[] = [
  "workers",
  "concurrency",
  "executors",
  "executorIsolation",
  "timeoutMs",
  "totalTimeoutMs",
  "startTimeoutMs",
  "reward",
  "sandboxFusion",
  "manager",
  "managerOptions",
  "tokenizer",
  "rewardRouterAddress",
  "rewardRouterToken",
  "rewardModel",
  "baseDirectory",
  "name",
  "resourceLimits",
  "limits",
  "retry",
  "hedge",
  "onFailure",
  "cache",
  "joinSame",
  "spend",
];

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
  return resolve(baseDirectory, filled("cache", path));
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

/** One per CPU, at least 2, at most 8. */
export function defaultWorkers(): number {
  return Math.min(8, Math.max(2, availableParallelism()));
}

function whole(option: string, value: number | undefined, fallback: number): number {
  return between(option, value, { least: 1, whole: true }) ?? fallback;
}

function isolationOf(value: "thread" | "process" = "thread"): "thread" | "process" {
  if (value === "thread" || value === "process") return value;
  return notAnOption("executorIsolation", '"thread" or "process"', value);
}

function filled(option: string, value: string): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new RewardLoopOptionError(option, "a text that is not empty", JSON.stringify(value));
}
