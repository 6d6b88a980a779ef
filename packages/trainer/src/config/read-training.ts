/** From options that are given to those that are used: what is missing has its default, what may not stand there is refused by its name. */

import { isTree, nearestOf, valueAt } from "@rayling/config-tree";
import type { ConfigTree } from "@rayling/config-tree";
import { defaultOf, entriesOf, sectionOf, typeOf } from "@rayling/config-tree/options";
import type { OptionTable } from "@rayling/config-tree/options";
import { z } from "zod";
import { TrainerInputError } from "../errors.ts";
import { camelKey } from "./camel-keys.ts";
import { keys, trainingOptions } from "./options/training-options.ts";
import type { GivenOptions, TrainingValues } from "./options/training-options.ts";

const entries = new Map(entriesOf(trainingOptions));
const optionAt = new Map([...keys].map(([option, key]) => [key, option]));

/** @param own defaults that are other ones than the table's, by option. Throws TrainerInputError. */
export function readTrainingOptions(
  given: GivenOptions,
  own: Readonly<Record<string, unknown>>,
): TrainingValues {
  const tree = given as ConfigTree;
  const valueOf = (option: string): unknown => {
    const value = valueAt(tree, option.split("."));
    if (value !== undefined) return value;
    if (Object.hasOwn(own, option)) return own[option];
    const entry = entries.get(option) as z.ZodType;
    const standard = defaultOf(entry);
    if (typeof standard !== "string" || !standard.includes("${")) return standard;
    // What another key says, where a program has an option for that.
    const other = optionAt.get(camelKey(standard.slice(2, -1)));
    if (other === undefined) throw refusal(option, `must be ${typeOf(entry)}`, undefined);
    return valueOf(other);
  };
  const filled = (section: OptionTable, values: ConfigTree, prefix: string): ConfigTree => {
    const complete = Object.entries(section.shape).map(([name, type]) => {
      const [option, value] = [prefix + name, values[name]];
      const inside = sectionOf(type as z.ZodType);
      if (inside === undefined) return [name, valueOf(option)];
      if (value === undefined && type instanceof z.ZodOptional) return [name, undefined];
      const isSection = value === undefined || isTree(value);
      return [name, isSection ? filled(inside, value ?? {}, `${option}.`) : value];
    });
    return { ...values, ...Object.fromEntries(complete) } as ConfigTree;
  };
  const complete = filled(trainingOptions, tree, "");
  const result = trainingOptions.safeParse(complete);
  if (result.success) return result.data as TrainingValues;
  throw refusalOf(result.error, complete);
}

function refusalOf({ issues }: z.ZodError, complete: ConfigTree): TrainerInputError {
  const [issue] = issues as [z.core.$ZodIssue];
  const path = issue.path.map(String);
  if (issue.code === "unrecognized_keys") {
    const option = [...path, issue.keys[0]].join(".");
    const nearest = nearestOf(option, [...entries.keys(), ...Object.keys(trainingOptions.shape)]);
    const advice = nearest === undefined ? "" : `; did you mean ${nearest}?`;
    return new TrainerInputError(option, `there is no option ${option}${advice}`);
  }
  // An item of a list is no option of its own.
  const end = path.findIndex((_, index) => entries.has(path.slice(0, index + 1).join(".")));
  const own = end === -1 ? path : path.slice(0, end + 1);
  const option = own.join(".");
  const entry = entries.get(option);
  const wanted = entry === undefined ? "must be an object of options" : `must be ${typeOf(entry)}`;
  const problem = issue.code === "custom" ? issue.message : wanted;
  return refusal(option, problem, valueAt(complete, own));
}

function refusal(option: string, problem: string, value: unknown): TrainerInputError {
  // JSON has no NaN.
  const text = typeof value === "number" ? String(value) : JSON.stringify(value);
  return new TrainerInputError(option, `${option} ${problem}; it is ${text}`);
}
