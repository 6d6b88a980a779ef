/**
 * Options of a reward loop, checked once at the edge, and the plain settings that travel to its workers and executors.
 * Names and paths only, never functions: user code is loaded where it runs.
 */

import { availableParallelism } from "node:os";
import type { ResourceLimits } from "@rayling/core";
import { parseRewardSpec } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { RewardLoopOptionError } from "./errors.ts";

export interface RewardLoopOptions {
  /** RewardLoopWorkers. Default: one per CPU, at least 2, at most 8 (verl: 8). */
  readonly workers?: number | undefined;
  /** Samples in flight per worker. Default 16. */
  readonly concurrency?: number | undefined;
  /** Threads per worker in which score functions run. Default 2: while one is blocked, one goes on. */
  readonly executors?: number | undefined;
  /** How long a score function may take on one sample, from its start. Default: as long as it takes. */
  readonly timeoutMs?: number | undefined;
  /** How long the user's modules may take to load. Default 60 s. */
  readonly startTimeoutMs?: number | undefined;
  /** The score function: PATH[:name], or with rewardKwargs. Default: verl's scorers by data source. */
  readonly reward?: string | RewardSpec | undefined;
  /** A manager's name, or the path of its class. Default "naive". */
  readonly manager?: string | RewardSpec | undefined;
  /** The manager's own settings. */
  readonly managerOptions?: Readonly<Record<string, unknown>> | undefined;
  /** Exports a function that makes the tokenizer (default name createTokenizer); it gets `rewardKwargs`. */
  readonly tokenizer?: string | RewardSpec | undefined;
  /** host:port of a reward model's router, handed to the score function. */
  readonly rewardRouterAddress?: string | undefined;
  /** Where relative paths start. Default: the current directory. */
  readonly baseDirectory?: string | undefined;
  /** Workers are named `{name}_{i}`. Default reward_loop_worker, with a suffix where that is taken. */
  readonly name?: string | undefined;
  /** Heap limits of an executor's thread: a score function that reaches one is reported, the others go on. */
  readonly resourceLimits?: ResourceLimits | undefined;
}

/** What runs one sample: the same in every executor. */
export interface PipelineSettings {
  readonly reward: RewardSpec | undefined;
  readonly manager: string | RewardSpec;
  readonly managerOptions: Readonly<Record<string, unknown>>;
  readonly tokenizer: RewardSpec | undefined;
  readonly rewardRouterAddress: string | undefined;
  readonly baseDirectory: string;
}

export interface ExecutorSettings {
  readonly executors: number;
  readonly concurrency: number;
  readonly timeoutMs: number | undefined;
  readonly startTimeoutMs: number;
  readonly resourceLimits: ResourceLimits | undefined;
  readonly pipeline: PipelineSettings;
}

export interface RewardLoopSettings extends ExecutorSettings {
  readonly workers: number;
  readonly name: string | undefined;
}

/** Throws RewardLoopOptionError, InvalidRewardSpecError. */
export function readSettings(options: RewardLoopOptions): RewardLoopSettings {
  checkNames(options);
  const { reward, manager = "naive", tokenizer } = options;
  return {
    workers: whole("workers", options.workers, Math.min(8, Math.max(2, availableParallelism()))),
    concurrency: whole("concurrency", options.concurrency, 16),
    executors: whole("executors", options.executors, 2),
    timeoutMs:
      options.timeoutMs === undefined ? undefined : duration("timeoutMs", options.timeoutMs),
    startTimeoutMs: duration("startTimeoutMs", options.startTimeoutMs ?? 60_000),
    resourceLimits: options.resourceLimits,
    name: options.name === undefined ? undefined : filled("name", options.name),
    pipeline: {
      reward: specOf("reward", reward),
      manager: typeof manager === "string" ? filled("manager", manager) : manager,
      managerOptions: options.managerOptions ?? {},
      tokenizer: tokenizerOf(specOf("tokenizer", tokenizer)),
      rewardRouterAddress: options.rewardRouterAddress,
      baseDirectory: options.baseDirectory ?? process.cwd(),
    },
  };
}

function specOf(option: string, spec: string | RewardSpec | undefined): RewardSpec | undefined {
  if (typeof spec === "string") return parseRewardSpec(spec);
  if (spec === undefined || (typeof spec === "object" && typeof spec?.path === "string"))
    return spec;
  throw new RewardLoopOptionError(option, "a text or { path, name?, rewardKwargs? }", spec);
}

/** A misspelt option must not be a missing deadline. */
function checkNames(options: RewardLoopOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new RewardLoopOptionError("options", "an object", options);
  }
  for (const name of Object.keys(options)) {
    if (!optionNames.has(name)) {
      throw new RewardLoopOptionError(name, `one of ${[...optionNames].join(", ")}`, "unknown");
    }
  }
}

const optionNames: ReadonlySet<string> = new Set<keyof RewardLoopOptions>([
  "workers",
  "concurrency",
  "executors",
  "timeoutMs",
  "startTimeoutMs",
  "reward",
  "manager",
  "managerOptions",
  "tokenizer",
  "rewardRouterAddress",
  "baseDirectory",
  "name",
  "resourceLimits",
]);

function tokenizerOf(spec: RewardSpec | undefined): RewardSpec | undefined {
  return spec && { ...spec, name: spec.name ?? "createTokenizer" };
}

function whole(option: string, value: number | undefined, fallback: number): number {
  if (value === undefined) return fallback;
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new RewardLoopOptionError(option, "a whole number of at least 1", value);
}

/** setTimeout's longest: 2^31 - 1 ms. */
function duration(option: string, value: number): number {
  if (Number.isFinite(value) && value > 0 && value < 2 ** 31) return value;
  throw new RewardLoopOptionError(option, "a number of milliseconds above 0", value);
}

function filled(option: string, value: string): string {
  if (typeof value === "string" && value.trim() !== "") return value;
  throw new RewardLoopOptionError(option, "a text that is not empty", JSON.stringify(value));
}
