/** Errors of a configuration, by verl's key. */

import { ConfigError } from "@rayling/config-tree";
import { TrainerConfigError } from "../errors.ts";

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
