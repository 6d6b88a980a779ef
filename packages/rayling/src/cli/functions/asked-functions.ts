/**
 * The reward functions of a run, by its flags: one, a rule with a judge behind it, several from a
 * file, or none when a log is replayed.
 */

import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import { isRow } from "@rayling/reward-loop/rows";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { ownModule } from "../../own-files.ts";
import { CliError } from "../cli-error.ts";
import { readSpec } from "./reward-spec.ts";
import type { ScoreOptions } from "../score/score-options.ts";
import type { SimulatedJudge } from "../score/simulated-judge.ts";

export interface AskedFunctions {
  readonly options: RewardLoopOptions;
  /**
   * The options that determine scores: `options` without a simulated judge, which takes time and
   * changes no score.
   */
  readonly meant: RewardLoopOptions;
  /**
   * The only function, as the user named it, and as it is called (behind a simulated judge): the
   * baseline scores with it. Undefined when there are several.
   */
  readonly single: { readonly named: RewardSpec; readonly asked: RewardSpec } | undefined;
  /** The flag to name in errors of the functions. */
  readonly flag: string;
  /** Files by flags: the run must overwrite none of them. */
  readonly files: Readonly<Record<string, string>>;
}

type Flags = Pick<
  ScoreOptions,
  "reward" | "rewardKwargs" | "rewards" | "judge" | "policy" | "replay" | "latencyMs" | "seed"
>;

/** Rejects with CliError 2. */
export async function askedFunctions(flags: Flags): Promise<AskedFunctions> {
  const { reward, rewards, policy, replay } = flags;
  // The path is relative to the current directory, unlike paths in the file of --rewards.
  const replayed = replay === undefined ? {} : { replay: resolve(replay) };
  if (rewards !== undefined) {
    const several = await readRewards(rewards);
    const options = { ...policy, ...several, ...replayed };
    const files = { "--rewards": rewards };
    return { options, meant: options, single: undefined, flag: `--rewards ${rewards}`, files };
  }
  if (reward === undefined) {
    const flag = `--replay ${replay ?? ""}`;
    const options = { ...policy, ...replayed };
    return { options, meant: options, single: undefined, flag, files: {} };
  }
  const { rewardKwargs } = flags;
  // A cheaper function gets them, too.
  const isAlone = policy.spend === undefined || policy.spend.whenReached === undefined;
  const areKwargsShared = isAlone ? undefined : true;
  const named = { ...readSpec("--reward", reward), rewardKwargs, areKwargsShared };
  const flag = `--reward ${reward}`;
  const files = { "--reward": named.path };
  if (flags.judge !== undefined) return ruleFirst(flags, named, flags.judge, replayed);
  const asked = flags.latencyMs === undefined ? named : judged(named, flags);
  const meant = { ...policy, ...replayed, reward: named };
  const options = { ...meant, reward: asked };
  const single = replay === undefined ? { named, asked } : undefined;
  return { options, meant, single, flag, files };
}

/** Limits and prices belong to the judge: a rule has none. */
function ruleFirst(
  { reward, rewardKwargs, policy }: Flags,
  rule: RewardSpec,
  judgePath: string,
  replayed: Pick<RewardLoopOptions, "replay">,
): AskedFunctions {
  const { limits, spend, ...both } = policy;
  const areKwargsShared = true;
  const judge = { ...readSpec("--judge", judgePath), rewardKwargs, areKwargsShared };
  const cascade = {
    rule: { reward: { ...rule, areKwargsShared } },
    judge: { reward: judge, limits, spend },
  };
  const options = { ...both, ...replayed, cascade };
  return {
    options,
    meant: options,
    single: undefined,
    flag: `--reward ${reward ?? ""} --judge ${judgePath}`,
    files: { "--reward": rule.path, "--judge": judge.path },
  };
}

function judged(reward: RewardSpec, { latencyMs = [0, 0], seed }: Flags): RewardSpec {
  const judge: SimulatedJudge = { reward, latencyMs, seed, baseDirectory: process.cwd() };
  return { path: ownModule("cli/score/simulated-judge").href, rewardKwargs: { judge } };
}

const names: ReadonlySet<string> = new Set(["rewards", "combine", "cascade"]);

/** Reads the file; its paths are relative to its folder. The loop checks its content. */
async function readRewards(path: string): Promise<RewardLoopOptions> {
  const wrong = (reason: string): CliError => new CliError(2, `--rewards ${path}: ${reason}`);
  const { yamlValue } = await import("@rayling/config-tree");
  let content: unknown;
  try {
    content = yamlValue(await readFile(path, "utf8"));
  } catch (error) {
    throw wrong(messageOf(error));
  }
  if (!isRow(content)) {
    throw wrong("it must hold rewards or cascade, as options of a reward loop");
  }
  const other = Object.keys(content).find((key) => !names.has(key));
  if (other !== undefined) throw wrong(`"${other}" is not one of ${[...names].join(", ")}`);
  if (content["rewards"] === undefined && content["cascade"] === undefined) {
    throw wrong("it has neither rewards nor cascade");
  }
  return { ...content, baseDirectory: dirname(resolve(path)) };
}
