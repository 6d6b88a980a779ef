/**
 * Removes a model's reasoning from its text. What it considers there is no verdict: in tags, behind
 * a tag that is not closed (its tokens were used up), before a closing tag alone (the prompt opened
 * it), and in the channels of gpt-oss but the final one, where its server passes them on.
 */

import { itemAt } from "@rayling/reward-manager-registry/values";

const names = "think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think";

/** A group has the sign of a closing tag. */
const tags = new RegExp(
  String.raw`<(\/?)(?:${names})(?:\s[^<>]{0,200})?>|\u25c1(\/?)think\u25b7|\[(\/?)think\]` +
    String.raw`|<\|(?:start_thinking|(end)_thinking|begin_of_thought|(end)_of_thought)\|>`,
  "gi",
);

/** Returns the text without reasoning. Nested tags count as one. */
export function withoutThoughts(text: string): string {
  const final = finalChannelOf(text);
  let said = "";
  let depth = 0;
  let from = 0;
  for (const match of final.matchAll(tags)) {
    const [tag, ...signs] = match;
    const isClosing = signs.some((sign) => sign !== undefined && sign !== "");
    if (depth === 0 && !isClosing) said += final.slice(from, match.index);
    if (depth === 0 && isClosing) said = "";
    depth = Math.max(0, depth + (isClosing ? -1 : 1));
    from = match.index + tag.length;
  }
  return depth === 0 ? said + final.slice(from) : said;
}

/** gpt-oss writes `<|channel|>final<|message|>…<|return|>`. */
const harmony = /<\|(start|channel|constrain|message|end|return|call)\|>/;

/**
 * Returns what stands in the final channel: all of the text where there are no channels. Where the
 * server left out the special tokens, the words between them are run together.
 */
function finalChannelOf(text: string): string {
  if (/^\s*analysis/.test(text)) {
    const end = text.lastIndexOf("assistantfinal");
    if (end !== -1) return text.slice(end + "assistantfinal".length);
  }
  if (!text.includes("<|channel|>")) return text;
  const [before = "", ...rest] = text.split(harmony);
  let said = before;
  let channel = "final";
  for (let at = 0; at < rest.length; at += 2) {
    const [token, part, next] = [itemAt(rest, at), itemAt(rest, at + 1), rest[at + 2]];
    if (token === "start") channel = "final";
    if (token === "channel") {
      const [head, named] = /^\s*(\w*)/.exec(part) ?? [""];
      channel = named ?? "";
      const isHead = next === "message" || next === "constrain";
      if (channel === "final" && !isHead) said += part.slice(head.length);
    }
    if (token === "message" && channel === "final") said += part;
  }
  return said;
}
