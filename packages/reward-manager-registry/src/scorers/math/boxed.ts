/**
 * Finds the answer that a solution puts in a LaTeX box. Linear in the length of the text.
 */

/**
 * Returns the last `command{…}` with balanced braces, as `[start, end)`; undefined when there is
 * none, or it is not closed.
 */
export function lastBalanced(text: string, command: string): [number, number] | undefined {
  const start = text.lastIndexOf(command);
  if (start < 0) return undefined;
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "{") depth += 1;
    if (text[at] !== "}") continue;
    depth -= 1;
    if (depth === 0) return [start, at + 1];
  }
  return undefined;
}

/** Returns the content of the last `\boxed{…}`, or null. */
export function lastBoxed(text: string): string | null {
  const range = lastBalanced(text, String.raw`\boxed{`);
  return range === undefined
    ? null
    : text.slice(range[0] + String.raw`\boxed{`.length, range[1] - 1);
}
