/**
 * Turns the keys of a configuration into options of the library, without keys that have their
 * default value.
 */

import { isDeepStrictEqual } from "node:util";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import type { Form, FunctionFile, OptionsOf, OptionTable } from "../options/table.ts";
import { camel } from "../options/words.ts";
import { fileEntries, noFunction } from "./table-keys.ts";

type Values = Readonly<Record<string, unknown>>;

/** @param config as it was read by the keys of the table */
export function optionsOf<Table extends object>(
  table: Table & OptionTable,
  config: object,
): OptionsOf<Table> {
  return optionsIn(table, config as Values) as OptionsOf<Table>;
}

function optionsIn(table: OptionTable, config: Values): Values {
  const said = fileEntries(table).flatMap(([key, { kind, standard }, name]) => {
    const value = optionAt(kind, config[key], config["adaptive"]);
    const isSaid = value !== undefined && value !== null && !isDeepStrictEqual(value, standard);
    return isSaid ? [[name, value]] : [];
  });
  return Object.fromEntries(said) as Values;
}

/** @param adaptive stands beside it */
function optionAt(kind: Form, value: unknown, adaptive: unknown): unknown {
  const inside = value as Values;
  switch (kind.is) {
    case "section":
      return orNothing(optionsIn(kind.table, inside));
    case "switch":
      return inside["enable"] === true ? optionsIn(kind.table, inside) : undefined;
    case "auto":
      return value === "auto" ? optionsIn(kind.table, adaptive as Values) : value;
    case "module":
      return rewardOf(value as FunctionFile);
    case "judge": {
      const reward = rewardOf(value as FunctionFile);
      const prices = orNothing(optionsIn(kind.prices, inside["prices"] as Values));
      return reward && { reward, ...(prices === undefined ? {} : { spend: { prices } }) };
    }
    case "number":
      return typeof value === "string" ? camel(value) : value;
    case "choice":
      if (kind.field !== undefined && typeof value === "number") return { [kind.field]: value };
      return typeof value === "string" ? camel(value) : value;
    case "parts": {
      const parts = Object.entries(inside) as [string, Values][];
      return orNothing(
        Object.fromEntries(parts.map(([name, part]) => [name, optionsIn(kind.table, part)])),
      );
    }
    default:
      return value;
  }
}

function orNothing(options: Values): Values | undefined {
  return Object.keys(options).length === 0 ? undefined : options;
}

/**
 * Undefined without a function. verl's default name stands for the names that such a function
 * usually has here, too.
 */
function rewardOf({ path, name, reward_kwargs }: FunctionFile): RewardSpec | undefined {
  if (path === null) return undefined;
  return { path, ...(name === noFunction.name ? {} : { name }), rewardKwargs: reward_kwargs };
}
