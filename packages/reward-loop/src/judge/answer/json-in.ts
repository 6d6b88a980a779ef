/**
 * Finds the JSON values that a judge's text may mean, the likeliest first: all of it, or else what
 * stands in fences and in braces within prose, from the end, where models put their verdict.
 * Reasoning is left out, closed or not. The work is linear in the length of the text.
 */

import { bracedIn, mostBraced } from "./braces.ts";
import type { Parsed } from "./braces.ts";
import { parseLoosely } from "./loose-json.ts";
import { withoutThoughts } from "./thoughts.ts";

/** A value that a text may mean. */
export interface Candidate {
  /** As it is, and the last object in a list. */
  readonly readings: readonly unknown[];
  /** Its text. */
  readonly source: string;
  /**
   * Whether the answer is nothing else. Behind a tag it may be, or the tag is a word of what the
   * judge quotes. Within prose its value alone may be quoted, too.
   */
  readonly place: "alone" | "prose" | { readonly behind: string };
}

/** Texts that are longer have their verdict at the end. */
const longest = 100_000;

export function* jsonIn(text: string): Generator<unknown, void, undefined> {
  for (const { readings } of candidatesIn(text)) yield* readings;
}

/** The last first. */
export function candidatesIn(text: string): readonly Candidate[] {
  // Tags within JSON are content.
  const whole = parseLoosely(text.trim());
  if (whole !== undefined) return candidatesOf(whole.value, text, "alone");
  const { said: all, behind, isBefore } = withoutThoughts(text);
  const said = all.slice(-longest);
  const fenced = /^\s*```[\w-]*([\s\S]*?)(?:```\s*)?$/.exec(said)?.[1] ?? "";
  for (const source of [said, fenced]) {
    const found = parseLoosely(source.trim());
    if (found === undefined) continue;
    const place = behind === undefined ? "alone" : { behind };
    return candidatesOf(found.value, source, isBefore ? "prose" : place);
  }
  return partsOf(said).map(({ value, start, end }) => {
    const source = said.slice(start, end);
    return { readings: readingsOf(value, source), source, place: "prose" };
  });
}

/** Returns what an answer may mean that is one value of JSON. A text may be an answer itself. */
function candidatesOf(
  value: unknown,
  source: string,
  place: Candidate["place"],
): readonly Candidate[] {
  if (typeof value !== "string") return [{ readings: readingsOf(value, source), source, place }];
  const [last, ...others] = candidatesIn(value).map((one) =>
    one.place === "alone" ? { ...one, place } : one,
  );
  if (last === undefined) return [{ readings: [value], source, place }];
  return [{ ...last, readings: [...last.readings, value] }, ...others];
}

function readingsOf(value: unknown, text: string): readonly unknown[] {
  if (!Array.isArray(value)) return [value];
  const [last] = bracedIn(text.slice(-longest));
  return last === undefined ? [value] : [value, last.value];
}

/** Returns the values in fences, and the objects outside of fences, the last first. */
function partsOf(text: string): readonly Parsed[] {
  const braced = [...bracedIn(text)];
  const fenced = fencedIn(text).filter((one) => !braced.some((outer) => isWithin(one, outer)));
  const parts = braced.filter((one) => !fenced.some((outer) => isWithin(one, outer)));
  return [...parts, ...fenced].toSorted((one, other) => other.end - one.end);
}

function isWithin(inner: Parsed, outer: Parsed): boolean {
  return inner.start >= outer.start && inner.end <= outer.end;
}

/** The last fence need not be closed. Objects are found by their braces. */
function fencedIn(text: string): readonly Parsed[] {
  const fences = [...text.matchAll(/```[\w-]*[ \t]*\r?\n?([\s\S]*?)(?:```|$)/dg)];
  return fences.slice(-mostBraced).flatMap(({ 1: body = "", indices }) => {
    const [start, end] = indices?.[1] ?? [0, 0];
    const found = /^\s*\{/.test(body) ? undefined : parseLoosely(body.trim());
    return found === undefined ? [] : [{ start, end, value: found.value }];
  });
}
