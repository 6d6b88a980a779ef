/**
 * The texts in which verl writes bounds: "2.0", "0.5_2.0", and lists of them. Everything that is
 * not one is refused by its name.
 */

import { present } from "@rayling/reward-manager-registry/values";
import { TrainerInputError } from "../../errors.ts";

export interface Band {
  /** Null where there is only an upper bound. */
  readonly lower: number | null;
  readonly upper: number;
}

/** Returns the bounds of importance weights. @throws TrainerInputError */
export function weightBandOf(threshold: unknown): Band {
  const name = "rolloutIsThreshold";
  if (typeof threshold !== "number" && typeof threshold !== "string") {
    throw new TrainerInputError(
      name,
      `${name} must be a number or a text like "0.5_2.0"; it is ${String(threshold)}`,
    );
  }
  const { lower, upper } = bandOf(name, String(threshold).trim());
  return checked(name, { lower, upper }, threshold);
}

/** Returns the bounds of each test, in the order of the options. @throws TrainerInputError */
export function rejectionBandsOf(options: readonly string[], threshold: unknown): readonly Band[] {
  const name = "rolloutRsThreshold";
  if (typeof threshold !== "number" && typeof threshold !== "string") {
    throw new TrainerInputError(
      name,
      `${name} must be given as a number or a text for ${options.join(", ")}; it is ${String(threshold)}`,
    );
  }
  const texts = String(threshold)
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  if (texts.length !== 1 && texts.length !== options.length) {
    throw new TrainerInputError(
      name,
      `${name} must have one bound for all of ${options.join(", ")}, or one for each; "${threshold}" has ${texts.length}`,
    );
  }
  return options.map((option, index) => {
    const text = present(texts.length === 1 ? texts[0] : texts[index], `the bound of ${option}`);
    const { lower, upper } = bandOf(name, text);
    if (option.endsWith("k1")) {
      return checked(`${name} of ${option}`, { lower: lower ?? 1 / upper, upper }, text, name);
    }
    if (lower !== null) {
      throw new TrainerInputError(
        name,
        `${name} of ${option} has one bound, the upper one; it is "${text}"`,
      );
    }
    return checked(`${name} of ${option}`, { lower, upper }, text, name);
  });
}

function bandOf(name: string, text: string): Band {
  const split = text.indexOf("_");
  const lower = split < 0 ? null : numberOf(text.slice(0, split));
  const upper = numberOf(text.slice(split + 1));
  if (Number.isNaN(upper) || Number.isNaN(lower)) {
    throw new TrainerInputError(name, `${name} must be a number or "low_high"; it is "${text}"`);
  }
  return { lower, upper };
}

/**
 * Reads a number as Python does, without NaN and without JavaScript's other meanings of texts ("",
 * "0x10").
 */
function numberOf(text: string): number {
  const trimmed = text.trim();
  if (/^[+]?inf(?:inity)?$/i.test(trimmed)) return Infinity;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed) : Number.NaN;
}

function checked(what: string, band: Band, given: unknown, name: string = what): Band {
  const { lower, upper } = band;
  if (!(upper > 0) || (lower !== null && !(lower > 0))) {
    throw new TrainerInputError(name, `${what} must be above 0; it is "${String(given)}"`);
  }
  if (lower !== null && lower > upper) {
    throw new TrainerInputError(
      name,
      `${what} must have its lower bound first; it is "${String(given)}"`,
    );
  }
  return band;
}
