/**
 * Opens the reward loop of a run, and explains failures in the user's words.
 */

import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import * as ray from "@rayling/core";
import { addModule } from "@rayling/core/code";
import { JsonlError } from "@rayling/data-proto";
import {
  RewardCacheError,
  RewardLogError,
  RewardLoopManager,
  RewardLoopOptionError,
} from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { loopOptions, withDefaults } from "@rayling/reward-loop/options";
import { resolveRewardModule, UnknownRewardManagerError } from "@rayling/reward-manager-registry";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { looksAtGroups } from "../../looks-at-groups.ts";
import type { GroupTraits } from "../../looks-at-groups.ts";
import type { AskedFunctions } from "../functions/asked-functions.ts";
import { BaselineActor } from "./baseline.ts";
import { CliError, refusalOf } from "../cli-error.ts";
import { readSpecFromHere } from "../functions/reward-spec.ts";
import { isSameFile } from "../output/same-file.ts";
import type { ScoreOptions, Threads } from "./score-options.ts";

/** The time that a reward module has to load. */
const LOAD_TIMEOUT_MS = 60_000;

/** Rejects with CliError 2. */
export async function openLoop(
  options: ScoreOptions,
  { options: asked, single, flag }: AskedFunctions,
): Promise<RewardLoopManager> {
  const { out, resume, onlyRecorded, replay } = options;
  if (single !== undefined) sendModule(single.named);
  // A simulated judge would find a bad reward module only at its first sample.
  const checking = single === undefined ? undefined : baselineOf(options);
  try {
    const [loop] = await Promise.all([
      createLoop(options, {
        ...asked,
        // A rescore of the log is a run of its own.
        ...(resume && !onlyRecorded ? { spentBefore: resolve(out) } : {}),
      }),
      // The function also catches arguments that cannot be sent, which throw at once.
      (async () => {
        if (checking === undefined || single === undefined) return;
        const loaded = checking.load.remote(single.named);
        refuseOneByOne(options, await ray.get(loaded, { timeoutMs: LOAD_TIMEOUT_MS }), flag);
      })(),
    ]);
    return loop;
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (isOfFile(error, out)) throw refusalOf(error, [Error], "--out");
    if (replay !== undefined && isOfFile(error, replay)) {
      throw refusalOf(error, [Error], "--replay");
    }
    throw refusedLoop(error, options, flag);
  } finally {
    if (checking !== undefined) await ray.kill(checking);
  }
}

/**
 * Refuses what calls the function for one answer at a time, where its scores are of several: a
 * group's rank or mean would be taken of one answer. Throws CliError 2.
 */
function refuseOneByOne(
  { latencyMs, baseline }: Pick<ScoreOptions, "latencyMs" | "baseline">,
  traits: GroupTraits,
  flag: string,
): void {
  const flags = [
    ...(latencyMs !== undefined && looksAtGroups({ traits }) ? ["--latency"] : []),
    // Nobody reads the scores of the baseline, only how long they took.
    ...(baseline > 0 && traits.scoresGroups ? ["--baseline"] : []),
  ];
  if (flags.length === 0) return;
  throw new CliError(
    2,
    `${flags.join(" and ")}: ${flag} looks at all answers to a prompt together, and here it would get them one at a time. Give ${flags.map((one) => `${one} 0`).join(" ")}.`,
  );
}

/** The loop sends the modules that it calls by itself, and not those behind a simulated judge. */
function sendModule({ path }: RewardSpec): void {
  try {
    addModule(resolveRewardModule(path, process.cwd()));
  } catch {
    // The actor that loads it reports why it is not there.
  }
}

/** Whether it is of the reward log at that path. */
export function isOfFile(error: unknown, path: string): boolean {
  const isOfLog = error instanceof JsonlError || error instanceof RewardLogError;
  return isOfLog && error.path === resolve(path);
}

/** @param more the functions, and what else the loop gets */
export function createLoop(
  options: Threads & Pick<ScoreOptions, "manager" | "managerOptions">,
  more: RewardLoopOptions,
): Promise<RewardLoopManager> {
  const { workers, concurrency, executors, timeoutMs } = options;
  const threads = { workers, concurrency, executors, timeoutMs, startTimeoutMs: LOAD_TIMEOUT_MS };
  return RewardLoopManager.create({ ...threads, ...managerOf(options), ...more });
}

/** Code that may crash only a process must not crash this one. */
export function baselineOf({
  manager,
}: Pick<ScoreOptions, "manager">): ReturnType<typeof BaselineActor.remote> {
  const isolation = manager === "remote" ? ({ isolation: "process" } as const) : {};
  return BaselineActor.options(isolation).remote(process.cwd());
}

/**
 * Refuses an output that would overwrite the solutions, a reward function or a cache. Throws
 * CliError 2.
 */
export async function refuseInput(
  { out, solutions, replay, policy }: Pick<ScoreOptions, "out" | "solutions" | "replay" | "policy">,
  { files, options }: AskedFunctions,
): Promise<void> {
  const inputs = {
    "--solutions": solutions,
    ...(replay === undefined ? {} : { "--replay": replay }),
    ...files,
    ...(policy.cache === undefined ? {} : { "--cache": policy.cache }),
  };
  for (const [flag, path] of Object.entries(inputs)) {
    const file = path.startsWith("file:") ? fileURLToPath(path) : path;
    if (await isSameFile(out, file)) throw new CliError(2, `--out ${out} is the file of ${flag}`);
  }
  const { rewards, cascade } = options;
  const { baseDirectory } = withDefaults(loopOptions, options);
  for (const cache of cachesIn([rewards, cascade])) {
    if (await isSameFile(out, resolve(baseDirectory, cache))) {
      throw new CliError(2, `--out ${out} is a cache of --rewards`);
    }
  }
}

/** Returns the caches of several rewards, at any depth. */
function cachesIn(part: unknown): string[] {
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, value]) =>
    key === "cache" && typeof value === "string" ? [value] : cachesIn(value),
  );
}

/**
 * Returns the reason why a loop cannot be opened, with the flag to blame.
 *
 * @param flag the flag of the functions
 */
export function refusedLoop(
  error: unknown,
  options: Pick<ScoreOptions, "manager" | "managerOptions" | "policy">,
  flag: string,
): unknown {
  if (error instanceof RewardCacheError && error.path === options.policy.cache) {
    return refusalOf(error, [RewardCacheError], "--cache");
  }
  const named = managerFlag(error, options) ?? flag;
  return new CliError(2, `${named}: ${loadFailure(error)}`, { cause: error });
}

/**
 * Returns the flag of the manager to blame. Undefined: there is none, as a file of --rewards has
 * managers, too.
 */
function managerFlag(
  error: unknown,
  { manager, managerOptions }: Pick<ScoreOptions, "manager" | "managerOptions">,
): string | undefined {
  const wrong = error instanceof RewardLoopOptionError ? error.option : undefined;
  const [, option = ""] = /(?:^|\.)managerOptions\.([^.]+)/.exec(wrong ?? "") ?? [];
  if (Object.hasOwn(managerOptions, option)) return `--manager-option ${option}`;
  if (error instanceof UnknownRewardManagerError && error.managerName !== manager) return undefined;
  return managerCodes.has(codeOf(error)) ? `--manager ${manager}` : undefined;
}

const managerCodes: ReadonlySet<unknown> = new Set([
  "UNKNOWN_REWARD_MANAGER",
  "INVALID_REWARD_MANAGER",
  "INVALID_MANAGER_OPTION",
]);

function loadFailure(error: unknown): string {
  if (error instanceof ray.GetTimeoutError) {
    return `the module did not finish loading within ${LOAD_TIMEOUT_MS / 1000} s`;
  }
  if (error instanceof ray.ActorDiedError) {
    return `the module ended its thread while it loaded: ${error.deathCause.message}`;
  }
  return messageOf(error);
}

/** Returns the options that determine the scores of a run. */
export function meantBy(
  options: Pick<ScoreOptions, "manager" | "managerOptions">,
  { meant }: AskedFunctions,
): RewardLoopOptions {
  return { ...managerOf(options), ...meant };
}

/** Accepts a name of the registry, or a path like that of a reward. */
export function managerOf({
  manager,
  managerOptions,
}: Pick<ScoreOptions, "manager" | "managerOptions">): Pick<
  RewardLoopOptions,
  "manager" | "managerOptions"
> {
  const isName = /^[\w-]+$/.test(manager);
  return { manager: isName ? manager : readSpecFromHere("--manager", manager), managerOptions };
}
