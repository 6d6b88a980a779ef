/**
 * Help texts of options, taken from the comments on the entries of the tables (help-texts.ts is
 * generated from them).
 */

import { fieldOf } from "@rayling/reward-manager-registry/values";
import * as functions from "./defaults/functions.ts";
import { helpTexts } from "./help-texts.ts";
import * as policies from "./defaults/policies.ts";
import * as rewardModel from "./defaults/reward-model.ts";
import type { Option } from "./table.ts";
import * as timeLimits from "./defaults/time-limits.ts";
import { withNames } from "./describe-options.ts";

const tables: Readonly<Record<string, unknown>> = {
  ...policies,
  ...timeLimits,
  ...functions,
  ...rewardModel,
};

const texts: ReadonlyMap<unknown, string> = new Map(
  Object.entries<Readonly<Record<string, string>>>(helpTexts).flatMap(([table, entries]) =>
    Object.entries(entries).map(([name, text]) => [fieldOf(tables[table], name), text]),
  ),
);

/**
 * Returns an option's help, with the names that the reader knows. @param nameOf undefined where it
 * is no option
 */
export function helpOf(one: Option, nameOf: (option: string) => string | undefined): string {
  return withNames(texts.get(one) ?? "", nameOf);
}
