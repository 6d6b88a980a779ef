/** Checks of options that say which one it was, what it must be and what it is. */

import { RewardLoopOptionError } from "./errors.ts";

export interface Range {
  readonly least?: number;
  readonly above?: number;
  readonly most?: number;
  readonly below?: number;
  readonly whole?: boolean;
  readonly infinite?: boolean;
}

/** The value, which may be undefined. Throws RewardLoopOptionError. */
export function between(
  option: string,
  value: number | undefined,
  range: Range,
): number | undefined {
  if (value === undefined) return undefined;
  const { least = -Infinity, above = -Infinity, most = Infinity, below = Infinity } = range;
  const isKind =
    typeof value === "number" &&
    (Number.isFinite(value) || (range.infinite === true && value === Infinity)) &&
    (range.whole !== true || Number.isSafeInteger(value));
  if (
    isKind &&
    value >= least &&
    value > above &&
    value <= most &&
    (value < below || below === Infinity)
  ) {
    return value;
  }
  return notAnOption(option, wordsOf(range), value);
}

/**
 * A misspelt option must not be one that is missing.
 *
 * @param option what they are options of; "" for the loop itself
 */
export function checkKeys<Options extends object>(
  option: string,
  options: Options,
  known: readonly (keyof Options & string)[],
): void {
  if (typeof options !== "object" || options === null) {
    notAnOption(option === "" ? "options" : option, "an object", options);
  }
  for (const key of Object.keys(options)) {
    if ((known as readonly string[]).includes(key)) continue;
    const expected = known.length === 0 ? "left out" : `one of ${known.join(", ")}`;
    notAnOption(option === "" ? key : `${option}.${key}`, expected, "unknown");
  }
}

export function notAnOption(option: string, expected: string, value: unknown): never {
  throw new RewardLoopOptionError(option, expected, value);
}

function wordsOf({ least, above, most, below, whole }: Range): string {
  const limits = [
    ...(least === undefined ? [] : [`of at least ${least}`]),
    ...(above === undefined ? [] : [`above ${above}`]),
    ...(most === undefined ? [] : [`of at most ${most}`]),
    ...(below === undefined ? [] : [`below ${below}`]),
  ];
  return [`a ${whole === true ? "whole " : ""}number`, limits.join(" and ")].join(" ").trim();
}
