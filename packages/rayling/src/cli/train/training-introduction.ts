/** The first line of a training: on what, by what, for how long, and how to stop it. */
import type { WriteStream } from "node:tty";
import { wrapped } from "@rayling/core/terminal";
import type { ScheduleName } from "@rayling/trainer";
import type { TrainerConfig } from "@rayling/trainer/config";
import { plain, tell } from "../output/output.ts";
import { shortPath } from "../output/short-path.ts";

/** Each schedule in words. */
export const scheduleWords: Readonly<Record<ScheduleName, string>> = {
  sync: "each step waits for all of its rewards",
  "one-step-off-policy": "the next batch is generated while the judge is busy",
  "mini-batch-pipeline": "updates begin with the groups that are judged",
  "one-step-pipeline": "the next batch is generated, and updates begin with groups that are judged",
  streaming: "rewards begin with each rollout, updates with groups that are judged",
};

/**
 * Says what goes on until the first step.
 *
 * @param epochs that end the training at the latest; null: its steps alone do
 */
export function introduceTraining(config: TrainerConfig, epochs: number | null): void {
  tell(`${wrapped(plain(introductionOf(config, epochs)), process.stderr).join("\n")}\n`);
}

/**
 * Returns lines that explain the words in the lines of steps.
 *
 * @param isGreedy whether a validation takes the likeliest answers
 */
export function stepWords(stream: WriteStream, isGreedy: boolean): string[] {
  const by = isGreedy ? ", by the likeliest answers" : "";
  const words = [
    "score is the mean reward of a step's answers, which are drawn at random",
    `accuracy is the share of held-out problems that are answered right${by}`,
    // A terminal shows it below the lines.
    ...(stream.isTTY
      ? []
      : ["left is the time to the last step, as expected from the third step on"]),
    "waited is the time with nothing to do but to wait for rewards",
  ];
  return wrapped(`In the lines of steps: ${words.join("; ")}.`, stream);
}

export function introductionOf(
  { algorithm, data, rayling, trainer }: TrainerConfig,
  epochs: number | null,
): string {
  const { totalTrainingSteps: steps, testFreq } = trainer;
  const { policy, schedule, task, warmStartSteps } = rayling;
  const length = [
    ...(steps === null ? [] : [many(steps, "step")]),
    ...(epochs === null ? [] : [many(epochs, "epoch")]),
  ].join(" or ");
  return [
    `Training the policy ${policy} on ${task === null ? filesText(data.trainFiles) : `the task ${task}`} `,
    `by ${algorithm.advEstimator}, schedule ${schedule} (${scheduleWords[schedule]}): `,
    ...(warmStartSteps === 0 ? [] : [`${many(warmStartSteps, "supervised step")}, then `]),
    `${length}${testFreq > 0 ? `, with a validation each ${many(testFreq, "step")}` : ""}. `,
    "Ctrl-C stops it.",
  ].join("");
}

function filesText(files: readonly string[]): string {
  const [first = "", ...others] = files.map(shortPath);
  return others.length === 0 ? first : `${first} and ${many(others.length, "more file")}`;
}

function many(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
