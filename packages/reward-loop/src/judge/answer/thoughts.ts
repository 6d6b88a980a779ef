/**
 * Removes a model's reasoning from its text. What it considers there is no verdict: in tags, behind
 * a tag that is not closed (its tokens were used up), and before a closing tag alone (the prompt
 * opened it).
 */

const tags =
  /<(\/?)(?:think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad)(?:\s[^<>]{0,200})?>|\u25c1(\/?)think\u25b7/gi;

/** Returns the text without reasoning. Nested tags count as one. */
export function withoutThoughts(text: string): string {
  let said = "";
  let depth = 0;
  let from = 0;
  for (const match of text.matchAll(tags)) {
    const [tag, slash, otherSlash] = match;
    const isClosing = (slash ?? otherSlash) === "/";
    if (depth === 0 && !isClosing) said += text.slice(from, match.index);
    if (depth === 0 && isClosing) said = "";
    depth = Math.max(0, depth + (isClosing ? -1 : 1));
    from = match.index + tag.length;
  }
  return depth === 0 ? said + text.slice(from) : said;
}
