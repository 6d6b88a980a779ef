/**
 * `rayling rewards compare`: judges of the same samples beside each other, from their logs.
 */

import { basename, resolve } from "node:path";
import { labelsOfInput } from "../inputs/labels-of-input.ts";
import { openSolutions } from "../inputs/solutions.ts";
import { print } from "../output/formats.ts";
import type { RewardsCompareOptions } from "../rewards/rewards-options.ts";
import { comparisonOf } from "./compared.ts";
import { refuseIdle } from "./compare-flags.ts";
import { judgesLines } from "./judges-text.ts";

export async function runRewardsCompare(options: RewardsCompareOptions): Promise<void> {
  const { logs, labels, input, comparison, format } = options;
  const named = namesOf(logs).map((name, at) => ({ name, path: logs[at] ?? "" }));
  const labelOf =
    labels === undefined
      ? undefined
      : await labelsOfInput(await openSolutions(labels, new AbortController().signal, input));
  const report = await comparisonOf(named, { ...comparison, labelOf });
  const without = `no sample of ${labels === undefined ? "the logs" : labels} has one`;
  refuseIdle(comparison, { judges: logs.length, labelled: report.labelled, without });
  await print(report, format, () => judgesLines(report, logs));
}

/**
 * Returns names without what all have in common: rule and judge for rewards.rule.jsonl and
 * rewards.judge.jsonl.
 */
function namesOf(logs: readonly string[]): string[] {
  const stems = logs.map((log) => basename(log).replace(/\.jsonl(\.gz)?$/, ""));
  const parts = stems.map((stem) => stem.split("."));
  const [first = []] = parts;
  const shared = first.findIndex((part, at) => parts.some((one) => one[at] !== part));
  const short = parts.map((one) => one.slice(Math.max(shared, 0)).join("."));
  if (isUsable(short)) return short;
  return isUsable(stems) ? stems : logs.map((log) => resolve(log));
}

/** "label" is the name of the labels. */
function isUsable(names: readonly string[]): boolean {
  return new Set(names).size === names.length && !names.includes("") && !names.includes("label");
}
