/**
 * Finds the program in a response: its last block of code.
 */

import type { ProgramLanguage } from "../../sandbox/runtimes.ts";

export interface CodeBlock {
  readonly language: ProgramLanguage;
  readonly code: string;
}

/**
 * As in verl, the program is the text behind the last
 * "```python", up to the next fence. Without one it is the first block of another kind, without the
 * line that names its language; a block of JavaScript runs as JavaScript. Returns undefined without
 * any block.
 */
export function lastCodeBlock(response: string): CodeBlock | undefined {
  const python = response.lastIndexOf("```python");
  if (python !== -1) {
    const code = upToFence(response.slice(python + "```python".length));
    return { language: "python", code };
  }
  const first = response.indexOf("```");
  if (first === -1) return undefined;
  const block = upToFence(response.slice(first + "```".length));
  const [, name, code] = /^[^\S\n]*([A-Za-z]+)[^\S\n]*\n([\s\S]*)$/.exec(block) ?? [];
  if (name === undefined || code === undefined) return { language: "python", code: block };
  const isJavaScript = javaScriptNames.has(name.toLowerCase());
  return { language: isJavaScript ? "javascript" : "python", code };
}

const javaScriptNames: ReadonlySet<string> = new Set([
  "javascript",
  "js",
  "mjs",
  "cjs",
  "node",
  "nodejs",
]);

function upToFence(text: string): string {
  const end = text.indexOf("```");
  return end === -1 ? text : text.slice(0, end);
}
