/**
 * The texts of `rayling score`. The command itself loads when it runs.
 */

import { addOnRayFlag } from "../on-ray-flag.ts";
import type { Command } from "commander";
import { CliError } from "../cli-error.ts";
import { count, filePath } from "../flag-values.ts";
import { exitHelp } from "../exit-codes.ts";
import { addCompareFlags, compareOptionsOf } from "../judges/compare-flags.ts";
import type { CompareFlags, CompareOptions } from "../judges/compare-flags.ts";
import { judgesOf } from "../judges/judge-runs.ts";
import type { Judge } from "../judges/judge-runs.ts";
import { readOptions } from "./read-options.ts";
import { addFunctionFlags, STDOUT } from "./score-options.ts";
import type { ScoreFlags, ScoreOptions } from "./score-options.ts";

/** The work of the command, which loads when the command runs. */
export interface ScoreCommands {
  /** @param comparison with the labels of the data, in tables where a flag names their key */
  readonly score: (options: ScoreOptions, comparison: CompareOptions) => Promise<void>;
  /** Several judges of the same samples. */
  readonly compare: (judges: readonly Judge[], comparison: CompareOptions) => Promise<void>;
}

export function addScoreCommand(program: Command, { score, compare }: ScoreCommands): void {
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
  addOnRayFlag(addFunctionFlags(command), "scores on the machines of")
    .option(
      "--baseline <count>",
      "samples to score once more, one at a time and outside of all limits and budgets, for comparison; 0 for none (default: 0; demo: 64)",
      count(0),
    )
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
    .option("--replay <log>", "take rewards from the log of an earlier run, call nothing", filePath)
    .allowExcessArguments(false)
    .addHelpText("after", HELP);
  addCompareFlags(command).action(
    async (input: string | undefined, flags: ScoreFlags & CompareFlags) => {
      const comparison = compareOptionsOf(flags);
      const judges = judgesOf(input, flags);
      if (judges.length > 1) return compare(judges, comparison);
      const options = readOptions(input, flags);
      checkTables(comparison, options);
      return score(options, comparison);
    },
  );
}

/** One judge has tables with --label-key alone. Throws CliError 2. */
function checkTables(
  { tolerance, labelThreshold, by }: CompareOptions,
  { input: { labelKey }, out }: ScoreOptions,
): void {
  if (labelKey !== undefined && out === STDOUT) {
    throw new CliError(2, "--label-key needs a file in --out: the comparison reads it.");
  }
  if (labelKey !== undefined) return;
  const ofTables = { "--tolerance": tolerance, "--label-threshold": labelThreshold, "--by": by };
  const [flag] = Object.entries(ofTables).find(([, value]) => value !== undefined) ?? [];
  if (flag === undefined) return;
  throw new CliError(2, `${flag} needs --label-key, or several --reward: one alone has no tables.`);
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

Several --reward (or --rewards) are judges of the same samples, all at once: each writes a log of its own, beside --out under its
name (rewards.rule.jsonl), and tables say how they agree with each other and with the labels of the data.
${exitHelp} Rewards written so far always stay.

Examples:
  rayling score --solutions solutions.jsonl --reward ./reward.ts
  rayling score --solutions solutions.jsonl --reward ./reward.ts:strict --workers 8 --timeout 5000
  rayling score solutions.jsonl --reward ./judge.ts --rpm 3000 --max-in-flight auto --retries 5 --resume
  rayling score rollouts.parquet --reward ./rule.ts --judge ./judge.ts --price 0.5,1.5 --budget 20 --at-budget ./small-judge.ts
  rayling score solutions.jsonl --reward ./rule.ts --reward ./judge.ts --label-key is_correct --resume
  rayling score --demo --latency 5,80 --baseline 128`;
