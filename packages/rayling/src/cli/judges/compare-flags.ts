/**
 * The flags for comparisons of judges with each other and with labels.
 */

import { InvalidArgumentError } from "commander";
import type { Command } from "commander";
import type { JudgesReportOptions } from "@rayling/reward-loop";
import { count, number } from "../flag-values.ts";

/** The flags as they were given. */
export interface CompareFlags {
  readonly tolerance: number;
  readonly threshold: number;
  readonly labelThreshold?: number;
  readonly by?: string;
  readonly disagreements: number;
}

/** How judges are compared. */
export type CompareOptions = Omit<JudgesReportOptions, "labelOf">;

export function addCompareFlags(command: Command): Command {
  return command
    .optionsGroup("Judges and labels:")
    .option(
      "--tolerance <number>",
      "of judges: the largest difference of two scores that counts as agreement",
      notNegative,
      0.1,
    )
    .option(
      "--threshold <score>",
      "against labels: the score from which on it says right",
      number,
      0.5,
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
    .option("--disagreements <count>", "of judges: the most disagreements to list", count(0), 10);
}

export function compareOptionsOf(flags: CompareFlags): CompareOptions {
  const { tolerance, threshold, labelThreshold, by, disagreements: mostDisagreements } = flags;
  return {
    tolerance,
    scoreThreshold: threshold,
    mostDisagreements,
    ...(labelThreshold === undefined ? {} : { labelThreshold }),
    ...(by === undefined ? {} : { by }),
  };
}

function notNegative(text: string): number {
  const value = number(text);
  if (value >= 0) return value;
  throw new InvalidArgumentError("It must be a number of at least 0.");
}
