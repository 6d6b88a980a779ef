/** The last lines of a training: whether it did good, its figures, and what to do next. */
import { wrapped } from "@rayling/core/terminal";
import type { TrainerConfig } from "@rayling/trainer/config";
import { coreMetricText, coreMetricValue } from "@rayling/trainer/run";
import { grouped, span } from "../../output/numbers.ts";
import { plain } from "../../output/output.ts";
import { shortPath } from "../../output/short-path.ts";
import { hasFiles, nextCommands } from "./next-commands.ts";
import type { TrainingEnd } from "./training-end.ts";
import { verdictsOf } from "./verdicts.ts";

/** @param args arguments of the command */
export function endLines(
  end: TrainingEnd,
  config: TrainerConfig,
  args: readonly string[],
): string[] {
  const verdicts = verdictsOf(end);
  // Accuracy fell on the way, and is back at the end.
  const isMadeGood = verdicts.length > 0 && !verdicts.some(({ isWorse }) => isWorse);
  const lines: [string, string][] = [
    ...verdicts.map(({ text }): [string, string] => ["verdict", text]),
    ...validationLines(end),
    ...end.warnings.map((warning): [string, string] => [
      isMadeGood ? "on the way" : "warning",
      warning,
    ]),
    ...rewardsLines(end, config),
    ["steps", stepsText(end)],
    ["time", span(end.wallMs)],
    ["files", shortPath(end.directory)],
    ...pageLines(end, config.trainer.logger),
    ...(end.checkpoints === null
      ? []
      : [["checkpoints", shortPath(end.checkpoints)] satisfies [string, string]]),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  const table = lines.flatMap(([name, value]) =>
    wrapped(`${plain(name).padEnd(width)}  ${plain(value)}`, process.stdout, " ".repeat(width + 2)),
  );
  const next = nextCommands(end, config, args);
  // A command is one line, which can be copied.
  return next.length === 0 ? table : [...table, "", ...next];
}

/** The steps of the run; where it was resumed, with how many this process trained. */
function stepsText({ steps, rewardedSteps }: TrainingEnd): string {
  if (!isPart({ steps, rewardedSteps })) return grouped(steps);
  return `${grouped(steps)}, ${grouped(rewardedSteps)} of them in this process`;
}

function isPart({ steps, rewardedSteps }: Pick<TrainingEnd, "steps" | "rewardedSteps">): boolean {
  return rewardedSteps > 0 && rewardedSteps < steps;
}

/** How many rewards failed: those of this process, since earlier ones counted their own. */
function rewardsLines(end: TrainingEnd, { algorithm }: TrainerConfig): [string, string][] {
  const { answers, failed } = end.rewards;
  if (answers === 0) return [];
  const whose = isPart(end) ? " of this process" : "";
  const others = algorithm.advEstimator === "remax" ? "; greedy answers are not counted" : "";
  const text =
    failed === 0
      ? `all ${grouped(answers)}${whose} were given, none failed`
      : `${grouped(failed)} of ${grouped(answers)}${whose} failed: these answers have no score`;
  return [["rewards", `${text}${others}`]];
}

/** Where the page of the run is. */
function pageLines({ page }: TrainingEnd, loggers: readonly string[]): [string, string][] {
  if (page !== null) return [["its page", shortPath(page)]];
  if (loggers.includes("report")) return [["its page", "none: the report failed, see above"]];
  if (hasFiles(loggers)) return [];
  return [["its page", "none: the loggers file and report (trainer.logger) keep what it shows"]];
}

/** The figures of the last validation that no verdict has. */
function validationLines(end: TrainingEnd): [string, string][] {
  const judged = new Set(verdictsOf(end).map(({ name }) => name));
  const names = Object.keys(end.validation ?? {});
  return Object.entries(end.validation ?? {})
    .filter(([name]) => name.startsWith("val-core/") && !judged.has(name))
    .map(([name, value]) => [coreMetricText(name, names), coreMetricValue(name, value)]);
}
