/**
 * Recognises what a judge quotes of what it was asked about: a response may contain the verdict
 * that it would like to have.
 */

import { bracedIn } from "./braces.ts";
import type { Candidate } from "./json-in.ts";

/**
 * Returns whether a candidate stands in one of the texts, whatever blanks, escapes, fences and
 * quotation marks it is written with, behind the tag that it has before it; within prose also
 * whether one of their objects is equal to it. In an answer that was cut off all is prose: the
 * verdict may have been to come.
 */
export function quotationsOf(
  texts: readonly string[],
): (candidate: Candidate, isCutOff: boolean) => boolean {
  // Made for the first answer with something around its JSON, which most never have.
  let plain: readonly string[] | undefined;
  let objects: ReadonlySet<string> | undefined;
  return ({ source, readings, place }, isCutOff) => {
    const isWithinProse = place === "prose" || isCutOff;
    const values = readings.filter((one) => typeof one === "object" && one !== null);
    if ((place === "alone" && !isCutOff) || values.length === 0) return false;
    plain ??= texts.map(plainOf);
    const before = typeof place === "object" && !isCutOff ? place.behind : "";
    const said = [source, ...values.map((one) => JSON.stringify(one))].map((one) =>
      plainOf(before + one),
    );
    if (plain.some((text) => said.some((one) => text.includes(one)))) return true;
    if (!isWithinProse) return false;
    const known = (objects ??= new Set(texts.flatMap(objectsIn)));
    return values.some((one) => known.has(sorted(one)));
  };
}

function plainOf(text: string): string {
  return text.replaceAll(/```[\w-]*/g, "").replaceAll(/[\s\\"'`]+/g, "");
}

/** An object and those within it and its texts, each in one way of writing. */
function objectsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [...bracedIn(value)].flatMap((one) => objectsIn(one.value));
  if (typeof value !== "object" || value === null) return [];
  return [sorted(value), ...Object.values(value).flatMap(objectsIn)];
}

function sorted(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    typeof one === "object" && one !== null && !Array.isArray(one)
      ? Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : one,
  );
}
