/**
 * The flags for the format of solutions.
 */

import type { Command } from "commander";
import type { InputOptions } from "./solutions.ts";

export interface InputFlags {
  readonly promptKey?: string;
  readonly responseKey?: string;
  readonly truthKey?: string;
  readonly groupKey?: string;
  readonly labelKey?: string;
  readonly allowNan: boolean;
}

export function addInputFlags(command: Command): Command {
  return command
    .option("--prompt-key <name>", "of rollouts: the prompt, by its key or path, as doc.question")
    .option("--response-key <name>", "of rollouts: the response, or a list of several")
    .option("--truth-key <name>", "of rollouts: the ground truth")
    .option(
      "--group-key <name>",
      "which answers are scored as a group: those with the same value there (default: uid, else the same prompt)",
    )
    .option(
      "--label-key <name>",
      "the label of an answer, by its key or path: true, false or a number, to compare scores with (default: is_correct, where it is true, false, 1 or 0)",
    )
    .option("--allow-nan", "read NaN and Infinity in JSON, which Python writes", false);
}

/** Returns the names of the flags that were given. */
export function givenInputFlags(flags: InputFlags): string[] {
  const names = {
    "--prompt-key": flags.promptKey,
    "--response-key": flags.responseKey,
    "--truth-key": flags.truthKey,
    "--group-key": flags.groupKey,
    "--label-key": flags.labelKey,
    "--allow-nan": flags.allowNan || undefined,
  };
  return Object.entries(names).flatMap(([name, value]) => (value === undefined ? [] : [name]));
}

export function inputOf(flags: InputFlags): InputOptions {
  const { promptKey, responseKey, truthKey, groupKey, labelKey, allowNan } = flags;
  return { keys: { promptKey, responseKey, truthKey }, groupKey, labelKey, allowNan };
}
