/**
 * Finds the objects of JSON that stand within a text, as models write them into prose. The work is
 * linear in the length of the text.
 */

import { parseLoosely } from "./loose-json.ts";

export interface Range {
  readonly start: number;
  readonly end: number;
}

export interface Parsed extends Range {
  readonly value: unknown;
}

/** The most pairs of braces that are read, the last ones first: a failed reading is slow. */
export const mostBraced = 500;

/** Outermost objects, the last first. Braces without valid JSON may contain valid JSON. */
export function* bracedIn(text: string): Generator<Parsed, void, undefined> {
  const ends = endsOf(text);
  const open = outermost(ends, 0, text.length);
  for (let read = 0; read < mostBraced; read++) {
    const range = open.pop();
    if (range === undefined) return;
    const found = parseLoosely(text.slice(range.start, range.end));
    if (found !== undefined) yield { ...range, value: found.value };
    else open.push(...outermost(ends, range.start + 1, range.end).slice(-mostBraced));
  }
}

function outermost(ends: ReadonlyMap<number, number>, from: number, to: number): Range[] {
  const ranges: Range[] = [];
  let behind = from;
  for (const [start, end] of ends) {
    if (start >= to) break;
    if (start < behind) continue;
    ranges.push({ start, end });
    behind = end;
  }
  return ranges;
}

/**
 * The end of each pair of braces by its start, in the order of starts. Braces within strings do not
 * count, as seen from the brace before the string.
 */
function endsOf(text: string): ReadonlyMap<number, number> {
  // Undefined: it is not closed.
  const known = new Map<number, number | undefined>();
  for (let at = text.indexOf("{"); at !== -1; at = text.indexOf("{", at + 1)) {
    if (!known.has(at)) scan(text, at, known);
  }
  const closed = [...known].filter((one): one is [number, number] => one[1] !== undefined);
  return new Map(closed.toSorted(([one], [other]) => one - other));
}

/** Adds the brace at `from` and those outside of strings behind it; stops at one that is known. */
function scan(text: string, from: number, known: Map<number, number | undefined>): void {
  const open: number[] = [];
  let isInString = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (isInString) {
      if (character === "\\") at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "{") {
      if (known.has(at)) {
        const end = known.get(at);
        if (end === undefined) break;
        at = end - 1;
      } else open.push(at);
    } else if (character === "}") {
      const start = open.pop();
      if (start !== undefined) known.set(start, at + 1);
      if (open.length === 0) return;
    }
  }
  for (const start of open) known.set(start, undefined);
}
