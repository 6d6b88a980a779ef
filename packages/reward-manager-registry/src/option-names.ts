/**
 * Finds options with names that there are not. They are an error wherever options are taken: a
 * misspelt one would change scores without a word. Must not know what an option means.
 */

import { InvalidScorerOptionError } from "./errors.ts";
import { describeValue } from "./value-description.ts";
import { isRecord } from "./values/records.ts";

/** Names of all options of a function. */
export type OptionNames<Options> = { readonly [Name in keyof Required<Options>]: true };

/** A mistake in options, in the words of an error about one of them. */
export interface OptionProblem {
  readonly option: string;
  readonly expected: string;
  readonly received: string;
}

/** Returns the first option that there is not, or undefined. */
export function unknownOption(
  options: unknown,
  names: Readonly<Record<string, true>>,
): OptionProblem | undefined {
  if (!isRecord(options)) {
    return { option: "options", expected: "an object", received: describeValue(options) };
  }
  const option = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (option === undefined) return undefined;
  const known = Object.keys(names);
  const expected = known.length === 0 ? "left out" : `one of ${known.join(", ")}`;
  return { option, expected, received: "unknown" };
}

/** Throws InvalidScorerOptionError for an option that there is not. */
export function checkOptionNames<Options extends object>(
  options: Options,
  names: OptionNames<Options>,
): void {
  const problem = unknownOption(options, names);
  if (problem === undefined) return;
  throw new InvalidScorerOptionError(problem.option, problem.expected, problem.received);
}
