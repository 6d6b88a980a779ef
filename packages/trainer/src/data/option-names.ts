/**
 * Refuses options of data sets and loaders with names that there are not: a misspelt one would
 * train on other rows than were asked for.
 */

import { inspect } from "node:util";
import { nearestOf } from "@rayling/config-tree/nearest";
import { TrainerInputError } from "../errors.ts";

/** Names of all options of a function. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true };

/** Throws TrainerInputError, which names the nearest option, or all that there are. */
export function checkOptionNames<Options extends object>(
  where: string,
  options: Options,
  names: OptionNames<Options>,
): void {
  const given: unknown = options;
  if (typeof given !== "object" || given === null) {
    const message = `${where}: options must be an object, not ${inspect(given)}`;
    throw new TrainerInputError("options", message);
  }
  const name = Object.keys(options).find((one) => !Object.hasOwn(names, one));
  if (name === undefined) return;
  const known = Object.keys(names);
  const nearest = nearestOf(name, known);
  const advice = nearest === undefined ? `it has ${known.join(", ")}` : `did you mean ${nearest}?`;
  throw new TrainerInputError(name, `${where} has no option "${name}"; ${advice}`);
}
