/** Errors of a configuration, by verl's key. */

import { ConfigError, nearestOf } from "@rayling/config-tree";
import { TrainerConfigError } from "../errors.ts";
import { snakeKey } from "./camel-keys.ts";

/** @param problem stands behind the key @param nearest what is written much alike, or would do */
export function refusal(
  key: string,
  problem: string,
  value: unknown,
  { nearest, cause }: { readonly nearest?: string | undefined; readonly cause?: unknown } = {},
): TrainerConfigError {
  const advice = nearest === undefined ? "" : `; did you mean ${nearest}?`;
  return new TrainerConfigError(`${key}: ${problem}${advice}`, { key, value, nearest }, { cause });
}

/** A configuration's errors are the trainer's, whichever package finds them. */
export function asTrainerError<Value>(read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const { key, problem, value, nearest } = error;
    throw refusal(key, problem, value, { nearest, cause: error });
  }
}

/**
 * Checks keyword settings for policies and tasks: a misspelt name is an error, as for any key.
 * Throws TrainerConfigError with the nearest one.
 *
 * @param known in camelCase
 */
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
