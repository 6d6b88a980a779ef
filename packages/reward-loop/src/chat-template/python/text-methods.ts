/** The methods of Python's str. */

import { bound, integer } from "./arguments.ts";
import { casing } from "./casing.ts";
import { fail, unsupported } from "../error.ts";
import { padded } from "./format/format-spec.ts";
import { slicePoints } from "./slices.ts";
import { SPACE } from "./text.ts";
import { Callable, characters, iterate, Tuple, typeName } from "./values.ts";
import type { Arguments, Value } from "./values.ts";

/** Undefined where str has no such method; `format` is elsewhere. */
export function textMethod(text: string, name: string): Value | undefined {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (method !== undefined) return new Callable(name, (given) => method(text, given, name));
  return undone.has(name) ? unsupported(`${name} of a text`) : undefined;
}

const undone: ReadonlySet<string> = new Set([
  "encode",
  "translate",
  "maketrans",
  "isidentifier",
  "isprintable",
]);

type Method = (text: string, given: Arguments, name: string) => Value;
type Work = (text: string, values: readonly (Value | undefined)[], name: string) => Value;

function of(
  parameters: readonly string[],
  required: number,
  work: Work,
  keywords: readonly string[] = [],
): Method {
  return (text, given, name) => {
    const foreign = [...given.keyword.keys()].find((key) => !keywords.includes(key));
    if (foreign !== undefined) fail(`${name}() takes no keyword argument '${foreign}'`);
    return work(text, bound(name, given, parameters, required), name);
  };
}

const plain = (work: (text: string) => Value): Method => of([], 0, (text) => work(text));

function textOf(value: Value | undefined, what: string): string {
  return typeof value === "string"
    ? value
    : fail(`${what}: must be str, not ${typeName(value ?? null)}`);
}

const stripping = (isLeft: boolean, isRight: boolean): Method =>
  of(["chars"], 0, (text, [chars = null], name) =>
    stripped(text, chars === null ? undefined : textOf(chars, name), isLeft, isRight),
  );

export function stripped(
  text: string,
  chars: string | undefined,
  isLeft = true,
  isRight = true,
): string {
  const isTaken = (one: string): boolean =>
    chars === undefined ? onlySpace.test(one) : characters(chars).includes(one);
  const all = characters(text);
  let [from, to] = [0, all.length];
  if (isLeft) while (from < to && isTaken(all[from]!)) from += 1;
  if (isRight) while (to > from && isTaken(all[to - 1]!)) to -= 1;
  return all.slice(from, to).join("");
}

const onlySpace = new RegExp(`^[${SPACE}]+$`);
const words = new RegExp(`[^${SPACE}]+`, "g");

const splitting = (isFromRight: boolean): Method =>
  of(
    ["sep", "maxsplit"],
    0,
    (text, [separator = null, most = -1n], name) =>
      split(
        text,
        separator === null ? undefined : textOf(separator, name),
        integer(most, name),
        isFromRight,
      ),
    ["sep", "maxsplit"],
  );

export function split(
  text: string,
  separator: string | undefined,
  most: number,
  isFromRight: boolean,
): string[] {
  if (separator === "") fail("empty separator");
  if (separator === undefined) return splitAtSpace(text, most, isFromRight);
  const parts = text.split(separator);
  if (most < 0 || parts.length <= most + 1) return parts;
  if (!isFromRight) return [...parts.slice(0, most), parts.slice(most).join(separator)];
  if (overlaps(separator)) unsupported("rsplit by a text that can overlap itself");
  const kept = parts.length - most;
  return [parts.slice(0, kept).join(separator), ...parts.slice(kept)];
}

/** A search from the right may find other places than one from the left. */
function overlaps(text: string): boolean {
  return Array.from({ length: text.length - 1 }).some((_, at) =>
    text.endsWith(text.slice(0, at + 1)),
  );
}

function splitAtSpace(text: string, most: number, isFromRight: boolean): string[] {
  const found = [...text.matchAll(words)];
  if (most < 0 || found.length <= most) return found.map(([word]) => word);
  if (!isFromRight) {
    const rest = stripped(text.slice(found[most]!.index), undefined, true, false);
    return [...found.slice(0, most).map(([word]) => word), rest];
  }
  const at = found.length - most;
  const last = found[at - 1]!;
  const head = stripped(text.slice(0, last.index + last[0].length), undefined, true, false);
  return [head, ...found.slice(at).map(([word]) => word)];
}

const breaks = "\\n\\v\\f\\r\\x1c-\\x1e\\x85\\u2028\\u2029";
const lineBreak = new RegExp(`\\r\\n|[${breaks}]`, "g");

export function splitLines(text: string, isKept = false): string[] {
  const lines: string[] = [];
  let from = 0;
  for (const { 0: end, index } of text.matchAll(lineBreak)) {
    lines.push(text.slice(from, isKept ? index + end.length : index));
    from = index + end.length;
  }
  if (from < text.length) lines.push(text.slice(from));
  return lines;
}

export function replaced(text: string, old: string, by: string, most: number): string {
  if (most === 0) return text;
  const isAll = most < 0;
  const pieces = old === "" ? ["", ...characters(text), ""] : text.split(old);
  if (isAll || pieces.length <= most + 1) return pieces.join(by);
  return pieces.slice(0, most).join(by) + by + pieces.slice(most).join(old);
}

/** Within `[start:end]`; undefined where that part lies behind the end. */
function partOf(
  text: string,
  start: Value,
  end: Value,
): { from: number; part: string } | undefined {
  const all = characters(text);
  const [from, to] = slicePoints(all.length, start, end, 1);
  if (typeof start === "bigint" && Number(start) > all.length) return undefined;
  return from > to ? undefined : { from, part: all.slice(from, to).join("") };
}

const affix = (isStart: boolean): Method =>
  of(["affix", "start", "end"], 1, (text, [affixes = null, start = null, end = null], name) => {
    const all = affixes instanceof Tuple ? affixes.items : [affixes];
    const texts = all.map((one) => textOf(one, name));
    const { part } = partOf(text, start, end) ?? {};
    if (part === undefined) return false;
    return texts.some((one) => (isStart ? part.startsWith(one) : part.endsWith(one)));
  });

const finding = (isLast: boolean, isIndex: boolean): Method =>
  of(["sub", "start", "end"], 1, (text, [sub, start = null, end = null], name) => {
    const wanted = textOf(sub, name);
    const found = partOf(text, start, end);
    const at =
      found === undefined
        ? -1
        : isLast
          ? found.part.lastIndexOf(wanted)
          : found.part.indexOf(wanted);
    if (found === undefined || at === -1) return isIndex ? fail("substring not found") : -1n;
    return BigInt(found.from + characters(found.part.slice(0, at)).length);
  });

const partitioning = (isLast: boolean): Method =>
  of(["sep"], 1, (text, [separator], name) => {
    const by = textOf(separator, name);
    if (by === "") fail("empty separator");
    const at = isLast ? text.lastIndexOf(by) : text.indexOf(by);
    if (at === -1) return new Tuple(isLast ? ["", "", text] : [text, "", ""]);
    return new Tuple([text.slice(0, at), by, text.slice(at + by.length)]);
  });

const padding = (align: "<" | ">" | "^"): Method =>
  of(["width", "fillchar"], 1, (text, [width = null, fill = " "], name) => {
    const by = textOf(fill, name);
    if (characters(by).length !== 1) fail("The fill character must be exactly one character long");
    const wide = integer(width, name);
    return align === "^" ? centered(text, wide, by) : padded(text, wide, align, by);
  });

/** str.center puts an odd space to the left where the width is odd; a format does not. */
export function centered(text: string, width: number, fill = " "): string {
  const missing = width - characters(text).length;
  if (missing <= 0) return text;
  const before = Math.floor(missing / 2) + (missing & width & 1);
  const left = padded("", before, "<", fill);
  return left + text + padded("", missing - before, "<", fill);
}

const removal = (isStart: boolean): Method =>
  of(["affix"], 1, (text, [affixed], name) => {
    const one = textOf(affixed, name);
    if (one === "") return text;
    if (isStart) return text.startsWith(one) ? text.slice(one.length) : text;
    return text.endsWith(one) ? text.slice(0, -one.length) : text;
  });

const methods: Readonly<Record<string, Method>> = {
  ...Object.fromEntries(Object.entries(casing).map(([name, work]) => [name, plain(work)])),
  strip: stripping(true, true),
  lstrip: stripping(true, false),
  rstrip: stripping(false, true),
  split: splitting(false),
  rsplit: splitting(true),
  splitlines: of(
    ["keepends"],
    0,
    (text, [kept = false]) => splitLines(text, kept === true || kept === 1n),
    ["keepends"],
  ),
  join: of(["iterable"], 1, (text, [items = null]) =>
    iterate(items)
      .map((item, at) => textOf(item, `sequence item ${at}`))
      .join(text),
  ),
  replace: of(
    ["old", "new", "count"],
    2,
    (text, [old, by, most = -1n], name) =>
      replaced(text, textOf(old, name), textOf(by, name), integer(most, name)),
    // Python 3.13 and later allow `count` by name.
    ["count"],
  ),
  startswith: affix(true),
  endswith: affix(false),
  find: finding(false, false),
  rfind: finding(true, false),
  index: finding(false, true),
  rindex: finding(true, true),
  count: of(["sub", "start", "end"], 1, (text, [sub, start = null, end = null], name) => {
    const wanted = textOf(sub, name);
    const { part } = partOf(text, start, end) ?? {};
    if (part === undefined) return 0n;
    return BigInt(wanted === "" ? characters(part).length + 1 : part.split(wanted).length - 1);
  }),
  partition: partitioning(false),
  rpartition: partitioning(true),
  removeprefix: removal(true),
  removesuffix: removal(false),
  ljust: padding("<"),
  rjust: padding(">"),
  center: padding("^"),
  zfill: of(["width"], 1, (text, [width = null], name) => {
    const isSigned = /^[-+]/.test(text);
    const wide = integer(width, name);
    return isSigned
      ? text[0]! + padded(text.slice(1), wide - 1, ">", "0")
      : padded(text, wide, ">", "0");
  }),
  expandtabs: of(["tabsize"], 0, (text, [size = 8n], name) => expanded(text, integer(size, name)), [
    "tabsize",
  ]),
};

function expanded(text: string, size: number): string {
  let column = 0;
  let result = "";
  for (const one of text) {
    const wide = one === "\t" ? (size > 0 ? size - (column % size) : 0) : 1;
    result += one === "\t" ? " ".repeat(wide) : one;
    column = one === "\n" || one === "\r" ? 0 : column + wide;
  }
  return result;
}
