/**
 * The flags of `rayling score`: their texts, defaults and checks. The command itself loads when it
 * runs.
 */

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import { defaultWorkers } from "@rayling/reward-loop/options";
import { CliError } from "../cli-error.ts";
import { exitHelp } from "../exit-codes.ts";
import { count, settings } from "../flag-values.ts";
import { addLoopFlags } from "../functions/loop-flags.ts";
import type { LoopFlag } from "../functions/loop-flags.ts";
import { addDashboardFlag } from "../dashboard-flag.ts";
import { addInputFlags, inputOf } from "../inputs/input-flags.ts";
import type { InputFlags } from "../inputs/input-flags.ts";
import { addPolicyFlags, policyOf } from "../functions/policy-flags.ts";
import type { Policy, PolicyFlags } from "../functions/policy-flags.ts";
import type { InputOptions } from "../inputs/solutions.ts";

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
  /** A manager's name, or the path of its class. */
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
  /** Whether `out` keeps prompts and responses. */
  readonly texts: boolean;
  readonly seed: number;
  readonly baseline: number;
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
      "manager" | "resume" | "rescoreStale" | "keepStale" | "out" | "texts" | "seed" | "dashboard"
    >,
    Partial<
      Pick<ScoreOptions, "solutions" | "judge" | "rewards" | "replay" | "reward" | "baseline">
    > {
  readonly demo: boolean;
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

/** The recipe's judge takes 1 to 40 s; here at 1:1000. */
const DEMO_LATENCY_MS: readonly [number, number] = [1, 40];

/** @param run does the work; it loads when the command runs */
export function addScoreCommand(
  program: Command,
  run: (options: ScoreOptions) => Promise<void>,
): void {
  const command = program
    .command("score")
    .argument("[input]", "the file of --solutions; - for stdin")
    .summary("score model solutions with a reward function")
    .description(
      "Scores every solution of a JSONL or Parquet file with a reward loop of many workers; with --baseline a part of them again, one at a time, to compare with.",
    )
    .option(
      "--demo",
      "use the example's solutions, reward and latency where none are given",
      false,
    );
  addFunctionFlags(command)
    .option(
      "--out <path>",
      "where the rewards are written, one JSON line per sample; under gzip with .gz; - for standard output",
      "rewards.jsonl",
    )
    .option(
      "--resume",
      "continue the rewards in --out: samples with a score are not scored again",
      false,
    )
    .option(
      "--rescore-stale",
      "with --resume: score samples again that another version of the reward functions scored",
      false,
    )
    .option(
      "--keep-stale",
      "with --resume: keep the scores of another version of the reward functions, beside the new ones",
      false,
    )
    .option(
      "--no-texts",
      "keep no prompts and responses in --out: `rewards show` finds them in the input",
    )
    .option("--replay <log>", "take the rewards from that log of an earlier run, and call nothing")
    .allowExcessArguments(false)
    .addHelpText("after", HELP)
    .action(async (input: string | undefined, flags: ScoreFlags) => {
      await run(readOptions(input, flags));
    });
}

/** Adds the flags of every command that scores: the samples, the functions and the settings. */
export function addFunctionFlags(command: Command): Command {
  command.option(
    "--solutions <path>",
    "JSON Lines, a JSON array (also .gz) or Parquet of { question, ground_truth, any keys with { solution, is_correct? } }, or of rollouts: verl's columns with response or responses, its dumps, TRL's { prompt, completion }, chat messages, samples of lm-eval; - for stdin",
  );
  addInputFlags(command);
  return addDashboardFlag(addRewardFlags(command), "never")
    .option(
      "--latency <min,max>",
      "ms that a simulated judge takes before the reward is computed; 0 for none (default: 0; demo: 1,40)",
      latency,
    )
    .option("--seed <number>", "seed of the simulated latency", count(0), 1)
    .option(
      "--baseline <count>",
      "samples to score once more, one at a time and outside of all limits and budgets, for comparison; 0 for none (default: 0; demo: 64)",
      count(0),
    );
}

/**
 * Adds the flags of every command with a reward loop: the functions, and the loop that runs them.
 */
export function addRewardFlags(command: Command): Command {
  command
    .option(
      "--reward <path[:name]>",
      "module of the reward function, and its export (default: computeScore)",
    )
    .option(
      "--judge <path[:name]>",
      "a judge for samples that --reward cannot score (it returns null); limits and prices are its own",
    )
    .option(
      "--rewards <path>",
      "YAML or JSON with `rewards` (several with weights) or `cascade`, as options of a reward loop; in place of --reward",
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
  addLoopFlags(command, loopFlags);
  return addPolicyFlags(command);
}

const HELP = `
The reward function gets { dataSource, solutionStr, groundTruth, extraInfo } and returns a number, { score, ...extras }
or a promise of one; null says that it cannot tell. A sample whose function throws, hangs, ends its thread or returns no
score is invalid, never 0. A function that takes all answers to a prompt (computeScores) gets those with the same uid, or
the same prompt, wherever they stand in the file; --group-key names another key.

Ctrl-C finishes what is in flight, for one --timeout at most; a second one stops at once; --resume goes on from there, and scores again what was invalid.
It refuses scores that another version of the reward functions gave (their modules' texts, settings and weights), unless it is
told by --rescore-stale or --keep-stale what is to become of them. A sample is the same wherever its file lies and whatever it is
called: by what it says. In an input that was changed --resume says which samples are new and gone, and keeps what it can.
${exitHelp} Rewards written so far always stay.

Examples:
  rayling score --solutions solutions.jsonl --reward ./reward.ts
  rayling score --solutions solutions.jsonl --reward ./reward.ts:strict --workers 8 --timeout 5000
  rayling score solutions.jsonl --reward ./judge.ts --rpm 3000 --max-in-flight auto --retries 5 --resume
  rayling score rollouts.parquet --reward ./rule.ts --judge ./judge.ts --price 0.5,1.5 --budget 20 --at-budget ./small-judge.ts
  rayling score --demo --latency 5,80 --baseline 128`;

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
  const { demo, rewardKwarg, managerOption, judge, rewards, replay } = flags;
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
  if (flags.out === "-" && flags.resume) {
    throw new CliError(2, "--resume needs a file in --out: standard output cannot be read again.");
  }
  const named = input ?? flags.solutions;
  return {
    ...flags,
    judge,
    rewards,
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
    Partial<Pick<ScoreFlags, "reward" | "rewards" | "judge" | "replay" | "latency">>,
): Pick<ScoreOptions, "reward" | "latencyMs"> {
  const { demo, reward, rewards, judge, replay, latency: given, rewardKwarg } = flags;
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
  if (!isSingle && given !== undefined) {
    throw new CliError(2, "--latency is for a --reward alone.");
  }
  const isNone = rewards !== undefined || replay !== undefined;
  return {
    reward:
      reward ?? (isNone ? undefined : example("--reward", demo, "rewards/arithmetic-reward.ts")),
    latencyMs: isSingle ? simulated(given ?? (demo ? DEMO_LATENCY_MS : [0, 0])) : undefined,
  };
}

/** The examples are in the workspace; the npm package has none. */
function example(flag: string, demo: boolean, name: string): string {
  if (!demo)
    throw new CliError(
      2,
      `${flag} is missing (in a clone of the repository --demo takes the example's).`,
    );
  const url = new URL(`../../../../../examples/${name}`, import.meta.url);
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

function latency(text: string): readonly [number, number] {
  const parts = text.split(",");
  const [min = Number.NaN, max = min] = parts.map((part) =>
    part.trim() === "" ? Number.NaN : Number(part),
  );
  if (parts.length <= 2 && min >= 0 && max >= min && max < 2 ** 31) return [min, max];
  throw new InvalidArgumentError("It must be MIN,MAX in milliseconds with 0 <= MIN <= MAX, or 0.");
}
