/**
 * The flags of `rayling score`, and of the commands that share them, as checked options.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { ownFile } from "../../own-files.ts";
import { CliError } from "../cli-error.ts";
import { policyOf } from "../functions/policy-flags.ts";
import { inputOf } from "../inputs/input-flags.ts";
import { STDOUT } from "./score-options.ts";
import type { ScoreFlags, ScoreOptions, ThreadFlags, Threads } from "./score-options.ts";

/** The recipe's judge takes 1 to 40 s; here at 1:1000. */
const DEMO_LATENCY_MS: readonly [number, number] = [1, 40];

/** The number of demo samples that the baseline scores, too. */
const DEMO_BASELINE = 64;

type OfScoreAlone = "out" | "rescoreStale" | "keepStale" | "texts";

/** Throws CliError 2. */
export function readOptions(
  input: string | undefined,
  given: Omit<ScoreFlags, OfScoreAlone> & Partial<Pick<ScoreFlags, OfScoreAlone>>,
): ScoreOptions {
  const standard = { out: "rewards.jsonl", rescoreStale: false, keepStale: false, texts: true };
  const flags: ScoreFlags = { ...standard, ...given };
  const { demo, rewardKwarg, managerOption, judge, replay } = flags;
  if (input !== undefined && flags.solutions !== undefined) {
    throw new CliError(2, `${input} and --solutions ${flags.solutions}: give one of them.`);
  }
  if (flags.rescoreStale && flags.keepStale) {
    throw new CliError(2, "--rescore-stale and --keep-stale: give one of them.");
  }
  const stale = flags.rescoreStale ? "--rescore-stale" : "--keep-stale";
  if (!flags.resume && (flags.rescoreStale || flags.keepStale)) {
    throw new CliError(2, `${stale} needs --resume: without it nothing is kept.`);
  }
  if (flags.out === STDOUT && flags.resume) {
    throw new CliError(2, "--resume needs a file in --out: standard output cannot be read again.");
  }
  const named = input ?? flags.solutions;
  return {
    ...flags,
    judge,
    replay,
    onlyRecorded: false,
    input: inputOf(flags),
    baseline: flags.baseline ?? (demo ? DEMO_BASELINE : 0),
    ...threadsOf(flags),
    policy: policyOf(flags, rewardKwarg),
    rewardKwargs: rewardKwarg,
    managerOptions: managerOption,
    solutions:
      (named === "-" ? "/dev/stdin" : named) ??
      example("--solutions", demo, "data/arithmetic-solutions.jsonl"),
    ...functionsOf(flags),
  };
}

/** 0 ms is no timeout. */
export function threadsOf({ workers, concurrency, executors, timeout }: ThreadFlags): Threads {
  return { workers, concurrency, executors, ...(timeout === 0 ? {} : { timeoutMs: timeout }) };
}

/** Throws CliError 2 for incompatible flags. */
export function functionsOf(
  flags: Pick<ScoreFlags, "demo" | "rewardKwarg"> &
    Partial<Pick<ScoreFlags, "reward" | "rewards" | "judge" | "replay" | "latency" | "baseline">>,
): Pick<ScoreOptions, "reward" | "rewards" | "latencyMs"> {
  const { demo, judge, replay, latency, baseline = 0, rewardKwarg } = flags;
  const reward = onlyOf("--reward", flags.reward);
  const rewards = onlyOf("--rewards", flags.rewards);
  const isSingle = rewards === undefined && judge === undefined && replay === undefined;
  if (rewards !== undefined) {
    const other = { "--reward": reward, "--judge": judge };
    const [flag] = Object.entries(other).find(([, value]) => value !== undefined) ?? [];
    if (flag !== undefined) throw new CliError(2, `${flag} and --rewards: give one of them.`);
    if (Object.keys(rewardKwarg).length > 0) {
      throw new CliError(
        2,
        "--reward-kwarg is for --reward: in the file of --rewards it is rewardKwargs.",
      );
    }
  }
  const ofSingle = { "--latency": latency !== undefined, "--baseline": baseline > 0 };
  const [flag] = Object.entries(ofSingle).find(([, isGiven]) => isGiven) ?? [];
  if (!isSingle && flag !== undefined) throw new CliError(2, `${flag} is for a --reward alone.`);
  if (reward === undefined && replay !== undefined && Object.keys(rewardKwarg).length > 0) {
    throw new CliError(2, "--reward-kwarg is for --reward: --replay calls nothing.");
  }
  const isNone = rewards !== undefined || replay !== undefined;
  return {
    rewards,
    reward:
      reward ?? (isNone ? undefined : example("--reward", demo, "rewards/arithmetic-reward.ts")),
    latencyMs: isSingle ? simulated(latency ?? (demo ? DEMO_LATENCY_MS : [0, 0])) : undefined,
  };
}

/** The examples are in the workspace; the npm package has none. */
function example(flag: string, demo: boolean, name: string): string {
  if (!demo)
    throw new CliError(
      2,
      `${flag} is missing (in a clone of the repository --demo takes the example's).`,
    );
  const url = ownFile(`../../examples/${name}`);
  const file = fileURLToPath(url);
  if (!url.pathname.includes("/node_modules/") && existsSync(file)) return file;
  throw new CliError(
    2,
    `The examples are not part of the installed package: give --solutions and --reward.`,
  );
}

function simulated(range: readonly [number, number]): readonly [number, number] | undefined {
  return range[1] === 0 ? undefined : range;
}

/** Returns the only value of a flag that `rayling score` takes several of. Throws CliError 2. */
export function onlyOf(flag: string, values: readonly string[] | undefined): string | undefined {
  if (values === undefined || values.length < 2) return values?.[0];
  throw new CliError(
    2,
    `${flag} is given ${values.length} times: only rayling score compares several.`,
  );
}
