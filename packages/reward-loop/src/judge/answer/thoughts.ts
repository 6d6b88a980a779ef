/**
 * Removes a model's reasoning from its text. What it considers there is no verdict: in tags, behind
 * a tag that is not closed (its tokens were used up), before a closing tag alone (the prompt opened
 * it), and in the channels of gpt-oss but the final one, where its server passes them on.
 *
 * Many responses think in tags, and a judge speaks of them. A tag is a word of the judge within
 * JSON, within quotation marks, and where it opens in the midst of a line and nothing closes.
 */

import { bracedIn } from "./braces.ts";
import type { Range } from "./braces.ts";

const names = "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think";

/** Tags, and the marks of fences. A group has the sign of a closing tag. */
const tags = new RegExp(
  String.raw`<(\/?)(?:${names})(?:\s[^<>]{0,200})?>|\u25c1(\/?)think\u25b7|\[(\/?)think\]` +
    String.raw`|<\|(?:start_thinking|(end)_thinking|begin_of_thought|(end)_of_thought)\|>` +
    String.raw`|^[ \t]*${"```"}`,
  "gim",
);

export interface Spoken {
  /** The text without reasoning. */
  readonly said: string;
  /**
   * The tag that it stands behind, where nothing tells that the tag is the judge's: one that closes
   * what nothing opened, or the token that begins a channel.
   */
  readonly behind: string | undefined;
  /** Whether some of it stands before what was removed. */
  readonly isBefore: boolean;
}

/** Nested tags count as one, if all of them are closed. */
export function withoutThoughts(text: string): Spoken {
  // With every object of JSON made unreadable, and as long as before.
  let mask = text;
  if (/[<[\u25c1]|assistantfinal/.test(text)) {
    for (const { start, end } of bracedIn(text)) {
      mask = mask.slice(0, start) + ".".repeat(end - start) + mask.slice(end);
    }
  }
  const final = finalChannelOf(mask);
  const kept = joined(mask, final.ranges);
  const { ranges, closing } = spokenIn(kept);
  return {
    said: joined(joined(text, final.ranges), ranges),
    behind: closing ?? final.behind,
    isBefore: final.isBefore || isBeforeOthers(kept, ranges),
  };
}

/** Whether more than the last one has something in it. */
function isBeforeOthers(text: string, ranges: readonly Range[]): boolean {
  return joined(text, ranges.slice(0, -1)).trim() !== "";
}

function joined(text: string, ranges: readonly Range[]): string {
  return ranges.map(({ start, end }) => text.slice(start, end)).join("");
}

interface Tag extends Range {
  readonly kind: "opening" | "closing" | "fence";
}

function tagsIn(text: string): readonly Tag[] {
  return [...text.matchAll(tags)].flatMap((match): Tag[] => {
    const { index: start } = match;
    const [tag, ...signs] = match;
    const end = start + tag.length;
    if (tag.endsWith("`")) return [{ start, end, kind: "fence" }];
    const [before = "", after = ""] = [text[start - 1], text[end]];
    if (before === after && /["'`]/.test(before)) return [];
    const isClosing = signs.some((sign) => sign !== undefined && sign !== "");
    return [{ start, end, kind: isClosing ? "closing" : "opening" }];
  });
}

function spokenIn(text: string): { ranges: readonly Range[]; closing: string | undefined } {
  const found = tagsIn(text);
  const lastClosing = found.findLast(({ kind }) => kind === "closing")?.start ?? -1;
  let ranges: Range[] = [];
  let closing: string | undefined;
  let last: string | undefined;
  let depth = 0;
  let from = 0;
  let isFenced = false;
  for (const { start, end, kind } of found) {
    if (kind === "fence") {
      if (depth === 0) isFenced = !isFenced;
    } else if (kind === "closing") {
      last = text.slice(start, end);
      if (depth === 0) [ranges, closing] = [[], last];
      depth = Math.max(0, depth - 1);
      from = end;
      isFenced = false;
    } else if (depth > 0) {
      depth += 1;
    } else if (start < lastClosing || (!isFenced && beginsLine(text, from, start))) {
      ranges.push({ start: from, end: start });
      depth = 1;
      from = text.length;
    }
  }
  // A thought that speaks of opening tags is over behind the last closing one, if that is its own.
  if (depth > 0) closing ??= last;
  return { ranges: [...ranges, { start: from, end: text.length }], closing };
}

/** Whether nothing but blanks stands before it in its line, or since `from`. */
function beginsLine(text: string, from: number, start: number): boolean {
  let at = start;
  while (at > from && /[ \t]/.test(text[at - 1] ?? "")) at -= 1;
  return at <= from || text[at - 1] === "\n";
}

/** gpt-oss writes `<|channel|>final<|message|>…<|return|>`. */
const harmony = /<\|(start|channel|constrain|message|end|return|call)\|>/g;

/** An answer in channels begins with one. */
const beginsChannel =
  /^\s*(?:(?:assistant|analysis|commentary|final)\s*)?<\|(?:start|channel|constrain|message)\|>/;

interface Final {
  readonly ranges: readonly Range[];
  /** The token that the last range stands behind. */
  readonly behind?: string;
  readonly isBefore: boolean;
}

/**
 * Returns what stands in the final channel: all of the text where there are no channels. Where the
 * server left out the special tokens, the words between them are run together.
 */
function finalChannelOf(text: string): Final {
  const { length: end } = text;
  if (/^\s*analysis/.test(text)) {
    const behind = "assistantfinal";
    const found = text.lastIndexOf(behind);
    if (found !== -1) {
      return { ranges: [{ start: found + behind.length, end }], behind, isBefore: false };
    }
  }
  if (!beginsChannel.test(text)) return { ranges: [{ start: 0, end }], isBefore: false };
  const tokens = [...text.matchAll(harmony)];
  const said = saidIn(text, tokens);
  const last = said.findLast((one) => joined(text, [one]).trim() !== "");
  if (last === undefined) return { ranges: said, isBefore: false };
  const behind = tokens.findLast(({ index }) => index < last.start)?.[0];
  const isBefore = text.slice(last.end).replaceAll(harmony, "").trim() !== "";
  return { ranges: said, ...(behind !== undefined && { behind }), isBefore };
}

function saidIn(text: string, tokens: readonly RegExpExecArray[]): readonly Range[] {
  const said: Range[] = [];
  let channel = "final";
  for (const [at, { 0: whole, 1: token, index }] of tokens.entries()) {
    const start = index + whole.length;
    const next = tokens[at + 1];
    const end = next?.index ?? text.length;
    if (token === "start") channel = "final";
    if (token === "channel") {
      const [head, named] = /^\s*(\w*)/.exec(text.slice(start, end)) ?? [""];
      channel = named ?? "";
      const isHead = next?.[1] === "message" || next?.[1] === "constrain";
      if (channel === "final" && !isHead) said.push({ start: start + head.length, end });
    }
    if (token === "message" && channel === "final") said.push({ start, end });
  }
  return said;
}
