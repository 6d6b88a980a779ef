/**
 * The flags for comparisons of judges with each other and with labels.
 */

import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { JudgesReportOptions } from "@rayling/reward-loop";
import { CliError } from "../cli-error.ts";
import { count, number } from "../flag-values.ts";

/** The flags as they were given; the report has the defaults. */
export interface CompareFlags {
  readonly tolerance?: number;
  readonly threshold?: number;
  readonly labelThreshold?: number;
  readonly by?: string;
  readonly disagreements?: number;
}

/** How judges are compared. */
export type CompareOptions = Omit<JudgesReportOptions, "labelOf">;

export function addCompareFlags(command: Command): Command {
  return command
    .optionsGroup("Judges and labels:")
    .option(
      "--tolerance <number>",
      "of judges: the largest difference of two scores that counts as agreement (default: 0.1)",
      notNegative,
    )
    .option(
      "--threshold <score>",
      "against labels: the score from which on it says right (default: 0.5)",
      number,
    )
    .option(
      "--label-threshold <number>",
      "the label from which on a sample is right, for labels that are grades (default: labels of true and false, or 1 and 0, say it)",
      number,
    )
    .option(
      "--by <field>",
      "against labels: figures for each value of that field of the log, too (default: dataSource, else solution, where there are several)",
    )
    .option(
      "--disagreements <count>",
      "of several judges: the most disagreements to list (default: 10)",
      count(0),
    );
}

export function compareOptionsOf(flags: CompareFlags): CompareOptions {
  const { tolerance, threshold, labelThreshold, by, disagreements: mostDisagreements } = flags;
  return {
    ...(tolerance === undefined ? {} : { tolerance }),
    ...(threshold === undefined ? {} : { scoreThreshold: threshold }),
    ...(mostDisagreements === undefined ? {} : { mostDisagreements }),
    ...(labelThreshold === undefined ? {} : { labelThreshold }),
    ...(by === undefined ? {} : { by }),
  };
}

/** A comparison, as far as flags act on it. */
export interface Compared {
  readonly judges: number;
  /** The number of samples with a label. */
  readonly labelled: number;
  /** Says for the error that no sample has a label. */
  readonly without: string;
}

/** Refuses flags that would change nothing. Throws CliError 2. */
export function refuseIdle(options: CompareOptions, { judges, labelled, without }: Compared): void {
  if (judges < 2 && options.mostDisagreements !== undefined) {
    throw new CliError(2, "--disagreements is for several judges: there is one.");
  }
  if (labelled > 0) return;
  const ofLabels = {
    "--threshold": options.scoreThreshold,
    "--label-threshold": options.labelThreshold,
    "--by": options.by,
    ...(judges < 2 ? { "--tolerance": options.tolerance } : {}),
  };
  const [flag] = Object.entries(ofLabels).find(([, value]) => value !== undefined) ?? [];
  if (flag !== undefined) throw new CliError(2, `${flag} is for labels: ${without}.`);
}

function notNegative(text: string): number {
  const value = number(text);
  if (value >= 0) return value;
  throw new InvalidArgumentError("It must be a number of at least 0.");
}
