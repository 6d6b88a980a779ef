/**
 * Finds the JSON values that a judge's text may mean, the likeliest first: all of it, then the
 * content of fences, then braces within prose, from the end, where models put their verdict.
 * Reasoning in think tags is left out.
 */

/** Texts that are longer have their verdict at the end. */
const longest = 100_000;

export function* jsonIn(text: string): Generator<unknown, void, undefined> {
  const said = text.replaceAll(/<think(ing)?>[\s\S]*?<\/think(ing)?>/g, "").slice(-longest);
  const fenced = [...said.matchAll(/```[\w-]*[ \t]*\r?\n?([\s\S]*?)```/g)].map(([, body]) => body);
  const unclosed = /^\s*```[\w-]*[ \t]*\r?\n([\s\S]*)$/.exec(said)?.[1];
  const texts = [said, ...fenced.toReversed(), unclosed, ...[...bracedIn(said)].toReversed()];
  for (const one of texts) {
    const found = one === undefined ? undefined : parsed(one.trim());
    if (found !== undefined) yield found.value;
  }
}

/** Outermost objects; braces within their strings do not count. */
function* bracedIn(text: string): Generator<string, void, undefined> {
  for (let at = text.indexOf("{"); at !== -1; at = text.indexOf("{", at + 1)) {
    const end = endOf(text, at);
    if (end === undefined) continue;
    const braced = text.slice(at, end);
    yield braced;
    // Braces without valid JSON may contain valid JSON.
    if (parsed(braced) !== undefined) at = end - 1;
  }
}

function endOf(text: string, from: number): number | undefined {
  let depth = 0;
  let isInString = false;
  for (let at = from; at < text.length; at++) {
    const character = text[at];
    if (isInString) {
      if (character === "\\") at += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "{") depth += 1;
    else if (character === "}" && --depth === 0) return at + 1;
  }
  return undefined;
}

function parsed(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
