/** The flags of `rayling score`: their texts, defaults and checks. The command itself is loaded only when it runs. */

import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import { CliError } from "./cli-error.ts";
import { count } from "./flag-values.ts";

export interface ScoreOptions {
  readonly solutions: string;
  readonly reward: string;
  readonly workers: number;
  readonly concurrency: number;
  readonly executors: number;
  /** Of the simulated judge; undefined for none. */
  readonly latencyMs: readonly [number, number] | undefined;
  readonly timeoutMs: number | undefined;
  readonly out: string;
  readonly seed: number;
  readonly baseline: number;
}

interface Flags {
  readonly demo: boolean;
  readonly solutions?: string;
  readonly reward?: string;
  readonly workers: number;
  readonly concurrency: number;
  readonly executors: number;
  readonly latency?: readonly [number, number];
  readonly timeout: number;
  readonly out: string;
  readonly seed: number;
  readonly baseline: number;
}

/** One per CPU, at least two. */
const DEFAULT_WORKERS: number = Math.min(8, Math.max(2, availableParallelism()));

/** The recipe's judge takes 1 to 40 s; at 1:1000. */
const DEMO_LATENCY_MS: readonly [number, number] = [1, 40];

/** @param run does the work; it is loaded when the command is given */
export function addScoreCommand(
  program: Command,
  run: (options: ScoreOptions) => Promise<void>,
): void {
  program
    .command("score")
    .summary("score model solutions with a reward function")
    .description(
      "Scores every solution of a JSONL file with a reward loop of many workers, and a part of them one at a time to compare with.",
    )
    .option(
      "--solutions <path>",
      "JSON Lines: question, ground_truth, and any keys with { solution, is_correct? }",
    )
    .option(
      "--reward <path[:name]>",
      "module of the reward function, and its export (default: computeScore)",
    )
    .option("--demo", "use the example's solutions, reward and latency where none are given", false)
    .option("--workers <count>", "reward loop workers", count(1), DEFAULT_WORKERS)
    .option("--concurrency <count>", "samples in flight per worker", count(1), 64)
    .option("--executors <count>", "threads per worker in which reward functions run", count(1), 1)
    .option(
      "--latency <min,max>",
      "ms that a simulated judge takes before the reward is computed; 0 for none (default: 0; demo: 1,40)",
      latency,
    )
    .option(
      "--timeout <ms>",
      "longest time for one sample, from its start; 0 for no limit",
      count(0),
      30_000,
    )
    .option(
      "--out <path>",
      "where the rewards are written, one JSON line per sample",
      "rewards.jsonl",
    )
    .option("--seed <number>", "seed of the simulated latency", count(0), 1)
    .option(
      "--baseline <count>",
      "samples to score one at a time for comparison; 0 for none",
      count(0),
      64,
    )
    .allowExcessArguments(false)
    .addHelpText("after", HELP)
    .action(async (flags: Flags) => {
      const options = readOptions(flags);
      await run(options);
    });
}

const HELP = `
The reward function gets { dataSource, solutionStr, groundTruth, extraInfo } and returns a number, { score, ...extras }
or a promise of one. A sample whose function throws, hangs, ends its thread or returns no score is invalid, never 0.

Exit codes: 0 done, 1 the run failed, 2 wrong input, 130 stopped by Ctrl-C. Rewards written so far always stay.

Examples:
  rayling score --solutions solutions.jsonl --reward ./reward.ts
  rayling score --solutions solutions.jsonl --reward ./reward.ts:strict --workers 8 --timeout 5000
  rayling score --demo --latency 5,80 --baseline 128`;

function readOptions(flags: Flags): ScoreOptions {
  const { demo } = flags;
  return {
    ...flags,
    solutions: flags.solutions ?? example("--solutions", demo, "data/arithmetic-solutions.jsonl"),
    reward: flags.reward ?? example("--reward", demo, "arithmetic-reward.ts"),
    latencyMs: simulated(flags.latency ?? (demo ? DEMO_LATENCY_MS : [0, 0])),
    timeoutMs: flags.timeout === 0 ? undefined : flags.timeout,
  };
}

/** The examples lie in the workspace; the npm package comes without them. */
function example(flag: string, demo: boolean, name: string): string {
  if (!demo)
    throw new CliError(
      2,
      `${flag} is missing (in a clone of the repository --demo takes the example's).`,
    );
  const url = new URL(`../../../../examples/${name}`, import.meta.url);
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
