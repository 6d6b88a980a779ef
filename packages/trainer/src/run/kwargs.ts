/** Checks keyword settings for policies and tasks: a misspelt name is an error, as for any key. */

import { nearestOf } from "@rayling/config-tree";
import { snakeKey } from "../config/camel-keys.ts";
import { refusal } from "../config/refusal.ts";

/** @param known in camelCase. Throws TrainerConfigError with the nearest one. */
export function checkKwargs(
  place: string,
  kwargs: Readonly<Record<string, unknown>>,
  known: readonly string[],
): void {
  for (const [name, value] of Object.entries(kwargs)) {
    if (known.includes(name)) continue;
    const key = `${place}.${snakeKey(name)}`;
    const nearest = nearestOf(
      key,
      known.map((one) => `${place}.${snakeKey(one)}`),
    );
    throw refusal(key, "there is no such key", value, { nearest });
  }
}
