/**
 * Turns the keys of a configuration into options of the library, without keys that have their
 * default value.
 */

import { isDeepStrictEqual } from "node:util";
import type { RewardSpec } from "@rayling/reward-manager-registry";
import { recordIn } from "@rayling/reward-manager-registry/values";
import type { Form, FunctionFile, OptionsOf, OptionTable } from "../options/table.ts";
import { camel } from "../options/describe-options.ts";
import { fileEntries, functionIn, noFunction } from "./table-keys.ts";

type Values = Readonly<Record<string, unknown>>;

/** @param config as it was read by the keys of the table */
export function optionsOf<Table extends object>(
  table: Table & OptionTable,
  config: object,
): OptionsOf<Table> {
  return optionsIn(table, recordIn(config)) as OptionsOf<Table>;
}

function optionsIn(table: OptionTable, config: Values): Values {
  const said = fileEntries(table).flatMap(([key, { kind, standard }, name]) => {
    const value = optionAt(kind, config[key], config["adaptive"]);
    const isSaid = value !== undefined && value !== null && !isDeepStrictEqual(value, standard);
    return isSaid ? [[name, value] as const] : [];
  });
  return Object.fromEntries(said);
}

/** @param adaptive stands beside it */
function optionAt(kind: Form, value: unknown, adaptive: unknown): unknown {
  const inside = recordIn(value);
  switch (kind.is) {
    case "section":
      return orNothing(optionsIn(kind.table, inside));
    case "switch":
      return inside["enable"] === true ? optionsIn(kind.table, inside) : undefined;
    case "auto":
      return value === "auto" ? optionsIn(kind.table, recordIn(adaptive)) : value;
    case "module":
      return rewardOf(functionIn(value));
    case "judge": {
      const reward = rewardOf(functionIn(value));
      const prices = orNothing(optionsIn(kind.prices, recordIn(inside["prices"])));
      return reward && { reward, ...(prices === undefined ? {} : { spend: { prices } }) };
    }
    case "number":
      return typeof value === "string" ? camel(value) : value;
    case "choice":
      if (kind.field !== undefined && typeof value === "number") return { [kind.field]: value };
      return typeof value === "string" ? camel(value) : value;
    case "parts": {
      const parts = Object.entries(inside);
      return orNothing(
        Object.fromEntries(
          parts.map(([name, part]) => [name, optionsIn(kind.table, recordIn(part))]),
        ),
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
