/** Reads the options of a program; a missing one gets its default. */

import { ConfigError, isTree, treeOf, valueAt } from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import { defaultOf, entriesOf, readOptions, sectionOf } from "@rayling/config-tree/options";
import type { OptionTable } from "@rayling/config-tree/options";
import { z } from "zod";
import { present } from "@rayling/reward-manager-registry/values";
import { camelKey } from "./camel-keys.ts";
import { keys, trainingOptions } from "./options/training-options.ts";
import type { GivenOptions, TrainingValues } from "./options/training-options.ts";

const entries = new Map(entriesOf(trainingOptions));
const optionAt = new Map([...keys].map(([option, key]) => [key, option]));

/**
 * @param own defaults that are other ones than the table's, by option. Throws ConfigError, which
 * names the option.
 */
export function readTrainingOptions(
  given: GivenOptions,
  own: Readonly<Record<string, unknown>>,
): TrainingValues {
  const tree = treeOf(given);
  const valueOf = (option: string): unknown => {
    const value = valueAt(tree, option.split("."));
    if (value !== undefined) return value;
    if (Object.hasOwn(own, option)) return own[option];
    const standard = defaultOf(present(entries.get(option), option));
    if (typeof standard !== "string" || !standard.includes("${")) return standard;
    // The value of another key, where a program has an option for it.
    const other = optionAt.get(camelKey(standard.slice(2, -1)));
    if (other === undefined) throw new ConfigError(option, "is needed");
    return valueOf(other);
  };
  const filled = (section: OptionTable, values: ConfigTree, prefix: string): ConfigTree => {
    const complete = Object.entries(section.shape).map(([name, type]) => {
      const value = values[name];
      const inside = type instanceof z.ZodType ? sectionOf(type) : undefined;
      if (inside === undefined) return [name, valueOf(prefix + name)];
      const isLeftOut = value === undefined && type instanceof z.ZodOptional;
      if (isLeftOut || (value !== undefined && !isTree(value))) return [name, value];
      return [name, filled(inside, value ?? {}, `${prefix}${name}.`)];
    });
    return { ...values, ...Object.fromEntries(complete) };
  };
  const complete = filled(trainingOptions, tree, "");
  return readOptions(trainingOptions, complete) as TrainingValues;
}
