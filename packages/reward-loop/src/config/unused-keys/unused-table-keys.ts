/**
 * Unused keys of a table of options: of a switch that is off, of a function that is not named,
 * without a key that they need, or in conflict with another key.
 */

import { isDeepStrictEqual } from "node:util";
import { present, recordIn } from "@rayling/reward-manager-registry/values";
import type { Form, FunctionFile, Option, OptionTable } from "../../options/table.ts";
import { fileDefaultOf, fileEntries, functionIn, keyNameOf, noFunction } from "../table-keys.ts";
import type { UnusedKey } from "./unused-key.ts";

type Values = Readonly<Record<string, unknown>>;
type Said = Pick<UnusedKey, "key" | "value">;

/** @param at where the table's keys stand. Parts of a loop stand by themselves */
export function unusedKeysOf(table: OptionTable, config: object, at: string): UnusedKey[] {
  const values = recordIn(config);
  return fileEntries(table).flatMap(([key, one]) => [
    ...unusedInside(one.kind, values[key], `${at}.${key}`, {
      settings: recordIn(values["adaptive"]),
      place: `${at}.adaptive`,
    }),
    ...saidAt(key, one, values, at).flatMap((said) =>
      unusedAlone(said, one, { table, values, at }),
    ),
  ]);
}

function unusedInside(
  kind: Form,
  value: unknown,
  place: string,
  adaptive: { readonly settings: Values; readonly place: string },
): UnusedKey[] {
  const inside = recordIn(value);
  switch (kind.is) {
    case "section":
      return unusedKeysOf(kind.table, inside, place);
    case "switch": {
      if (inside["enable"] === true) return unusedKeysOf(kind.table, inside, place);
      const why = `and ${place}.enable is false`;
      return saidIn(kind.table, inside, place).map((said) => ({
        ...said,
        why,
        instead: `${place}.enable=true`,
      }));
    }
    case "auto": {
      if (value === "auto") return unusedKeysOf(kind.table, adaptive.settings, adaptive.place);
      const why = `and ${place}, which it is of, is not auto`;
      return saidIn(kind.table, adaptive.settings, adaptive.place).map((said) => ({
        ...said,
        why,
        instead: `${place}=auto`,
      }));
    }
    case "module":
      return unusedOfNone(functionIn(value), place);
    case "judge": {
      const prices = saidIn(kind.prices, recordIn(inside["prices"]), `${place}.prices`);
      return unusedOfNone(functionIn(value), place, prices);
    }
    default:
      return [];
  }
}

/** Unused keys of a function that is not named. */
function unusedOfNone(
  { path, name, reward_kwargs: kwargs }: FunctionFile,
  at: string,
  besides: readonly Said[] = [],
): UnusedKey[] {
  if (path !== null) return [];
  const said = [
    ...(name === noFunction.name ? [] : [{ key: `${at}.name`, value: name }]),
    ...Object.entries(kwargs).map(([key, value]) => ({ key: `${at}.reward_kwargs.${key}`, value })),
    ...besides,
  ];
  return said.map((one) => ({ ...one, why: `and there is no ${at}.path that it is for` }));
}

interface Beside {
  readonly table: OptionTable;
  readonly values: Values;
  readonly at: string;
}

function unusedAlone(
  said: Said,
  { needs, atLeast }: Option,
  { table, values, at }: Beside,
): UnusedKey[] {
  const placeOf = (name: string): string => `${at}.${keyNameOf(table, name)}`;
  const isSaid = (name: string): boolean =>
    saidAt(keyNameOf(table, name), present(table[name], name), values, at).length > 0;
  if (needs !== undefined && !needs.names.some(isSaid)) {
    const [first, ...others] = needs.names.map(placeOf);
    const none =
      others.length === 0 ? `no ${first}` : `neither ${[first, ...others].join(" nor ")}`;
    return [{ ...said, why: `and there is ${none}, ${needs.why}` }];
  }
  if (atLeast === undefined) return [];
  const least = Number(values[keyNameOf(table, atLeast)]);
  const isLess = Number(said.value) < least;
  return isLess ? [{ ...said, why: `less than ${placeOf(atLeast)}, ${least}` }] : [];
}

/** Returns all values that differ from the defaults. */
export function saidIn(table: OptionTable, config: object, at: string): Said[] {
  const values = recordIn(config);
  return fileEntries(table).flatMap(([key, one]) => saidAt(key, one, values, at));
}

function saidAt(key: string, one: Option, values: Values, at: string): Said[] {
  const place = `${at}.${key}`;
  const value = values[key];
  switch (one.kind.is) {
    case "section":
      return saidIn(one.kind.table, recordIn(value), place);
    case "switch":
      return recordIn(value)["enable"] === true ? [{ key: `${place}.enable`, value: true }] : [];
    case "module":
    case "judge": {
      const { path } = functionIn(value);
      return path === null ? [] : [{ key: `${place}.path`, value: path }];
    }
    default:
      return isDeepStrictEqual(value, fileDefaultOf(one)) ? [] : [{ key: place, value }];
  }
}
