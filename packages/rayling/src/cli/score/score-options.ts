/**
 * The flags of the commands that score, and their options; read-options.ts checks them.
 */

import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import { defaultWorkers } from "@rayling/reward-loop/options";
import { count, each, settings } from "../flag-values.ts";
import { addLoopFlags } from "../functions/loop-flags.ts";
import type { LoopFlag } from "../functions/loop-flags.ts";
import { addDashboardFlag } from "../dashboard-flag.ts";
import { addInputFlags } from "../inputs/input-flags.ts";
import type { InputFlags } from "../inputs/input-flags.ts";
import { addPolicyFlags } from "../functions/policy-flags.ts";
import type { Policy, PolicyFlags } from "../functions/policy-flags.ts";
import { addFormatFlag } from "../output/formats.ts";
import type { Format } from "../output/formats.ts";
import type { InputOptions } from "../inputs/solutions.ts";

/** `--out -` */
export const STDOUT = "-";

/** The number of threads, and the time for each sample. */
export interface Threads {
  readonly workers: number;
  readonly concurrency: number;
  readonly executors: number;
  readonly timeoutMs?: number;
}

/** The flags for them. */
export interface ThreadFlags extends Omit<Threads, "timeoutMs"> {
  readonly timeout: number;
}

export interface ScoreOptions extends Threads {
  readonly solutions: string;
  /** Undefined with `rewards`, and when only a log is replayed. */
  readonly reward: string | undefined;
  /** The judge for samples that `reward` cannot score. */
  readonly judge: string | undefined;
  /** The file of several rewards, or of a cascade. */
  readonly rewards: string | undefined;
  /** The reward log of an earlier run, in place of the functions. */
  readonly replay: string | undefined;
  readonly rewardKwargs: Readonly<Record<string, unknown>>;
  /** A manager's name, or the path of its class (PATH[:name]). */
  readonly manager: string;
  readonly managerOptions: Readonly<Record<string, unknown>>;
  readonly policy: Policy;
  /** Whether to continue the results in `out`. */
  readonly resume: boolean;
  /** Whether to rescore samples that another version of the reward function scored. */
  readonly rescoreStale: boolean;
  /** Whether to keep scores of another version, beside new ones. */
  readonly keepStale: boolean;
  /** Whether to skip samples without a line in `out`. */
  readonly onlyRecorded: boolean;
  /** The bounds of the simulated judge's latency; undefined for none. */
  readonly latencyMs: readonly [number, number] | undefined;
  readonly out: string;
  /** Whether a live page of the run is served. */
  readonly dashboard?: boolean | undefined;
  /** The URL of a Ray cluster's dashboard, or "auto". */
  readonly onRay?: string | undefined;
  /** Whether `out` keeps prompts and responses. */
  readonly texts: boolean;
  readonly seed: number;
  readonly baseline: number;
  /** How the report is printed. */
  readonly format: Format;
  /** The format of the solutions. */
  readonly input: InputOptions;
}

/** The flags as they were given; a command without one of them uses its default. */
export interface ScoreFlags
  extends
    PolicyFlags,
    ThreadFlags,
    InputFlags,
    Pick<
      ScoreOptions,
      | "manager"
      | "resume"
      | "rescoreStale"
      | "keepStale"
      | "out"
      | "texts"
      | "seed"
      | "dashboard"
      | "onRay"
      | "format"
    >,
    Partial<Pick<ScoreOptions, "solutions" | "judge" | "replay" | "baseline">> {
  readonly demo: boolean;
  readonly reward?: readonly string[];
  readonly rewards?: readonly string[];
  readonly rewardKwarg: ScoreOptions["rewardKwargs"];
  readonly managerOption: ScoreOptions["managerOptions"];
  readonly latency?: readonly [number, number];
}

const loopFlags: readonly LoopFlag[] = [
  { flags: "--workers <count>", option: "workers", value: defaultWorkers() },
  { flags: "--concurrency <count>", option: "concurrency", value: 64 },
  { flags: "--executors <count>", option: "executors", value: 1 },
  { flags: "--timeout <ms>", option: "timeoutMs", value: 30_000, orNone: true },
];

/** Adds the flags of every command that scores: the samples, the functions and the settings. */
export function addFunctionFlags(command: Command): Command {
  command
    .optionsGroup("Samples:")
    .option(
      "--solutions <path>",
      "JSON Lines, a JSON array (also .gz) or Parquet of { question, ground_truth, any keys with { solution, is_correct? } }, or of rollouts: verl's columns with response or responses, its dumps, TRL's { prompt, completion }, chat messages, samples of lm-eval; - for stdin",
    );
  addInputFlags(command);
  addRewardFlags(command, "run").optionsGroup("The run:");
  return addFormatFlag(addDashboardFlag(command, "never"))
    .option(
      "--latency <min,max>",
      "ms that a simulated judge takes before the reward of an answer is computed, which then comes from no cache; 0 for none (default: 0; demo: 1,40)",
      latency,
    )
    .option("--seed <number>", "seed of the simulated latency", count(0), 1);
}

/**
 * Adds the flags of every command with a reward loop: the functions, and the loop that runs them.
 *
 * @param kind a run that ends, or a server
 */
export function addRewardFlags(command: Command, kind: "run" | "server"): Command {
  command
    .optionsGroup("Reward functions:")
    .option(
      "--reward <path[:name]>",
      "module of the reward function, and its export (default: computeScore); `rayling score` compares several as judges, each with limits of its own",
      each,
    )
    .option(
      "--judge <path[:name]>",
      "a judge for samples that --reward cannot score (it returns null); limits and prices are its own",
    )
    .option(
      "--rewards <path>",
      "YAML or JSON with `rewards` (several with weights) or `cascade`, as options of a reward loop; in place of --reward",
      each,
    )
    .option(
      "--reward-kwarg <key=value>",
      "given to the reward function; may be repeated",
      settings,
      {},
    )
    .option(
      "--manager <name|path[:name]>",
      "reward manager: naive, dapo, gdpo, rate_limited, remote (score functions in processes of their own) or a class",
      "naive",
    )
    .option("--manager-option <key=value>", "of the manager; may be repeated", settings, {});
  addLoopFlags(command.optionsGroup("Workers:"), loopFlags);
  return addPolicyFlags(command.optionsGroup("Limits, failures and money:"), kind);
}

function latency(text: string): readonly [number, number] {
  const parts = text.split(",");
  const [min = Number.NaN, max = min] = parts.map((part) =>
    part.trim() === "" ? Number.NaN : Number(part),
  );
  if (parts.length <= 2 && min >= 0 && max >= min && max < 2 ** 31) return [min, max];
  throw new InvalidArgumentError("It must be MIN,MAX in milliseconds with 0 <= MIN <= MAX, or 0.");
}
