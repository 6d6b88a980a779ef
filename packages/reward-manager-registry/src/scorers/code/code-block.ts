/**
 * Finds the program in a response: its last block of code in a language that can be run.
 */

import type { ProgramLanguage } from "../../sandbox/runtimes.ts";

export interface CodeBlock {
  readonly language: ProgramLanguage;
  readonly code: string;
}

/**
 * As in verl, the program is the text behind the last
 * "```python", up to the next fence. Without one it is the last block that another name of Python,
 * or a name of JavaScript, opens. Without that it is the first block, as in verl's sandbox_fusion,
 * without the line that names its language. Returns undefined without any block.
 */
export function lastCodeBlock(response: string): CodeBlock | undefined {
  const python = response.lastIndexOf("```python");
  if (python !== -1) {
    const code = upToFence(response.slice(python + "```python".length));
    return { language: "python", code };
  }
  return lastNamedBlock(response) ?? firstBlock(response);
}

/**
 * The line that opens a block of a language that can be run; it may have more behind the name
 * (`js title="a"`), but for another fence.
 */
const namedFence =
  /```[^\S\n]*(?:(py|python3?)|javascript|[cm]?js|node|nodejs|typescript|[cm]?ts)(?![\w+#-])[^\n`]*\n/gi;

/** A block of TypeScript runs as JavaScript: types in it are errors of its syntax. */
function lastNamedBlock(response: string): CodeBlock | undefined {
  const fence = [...response.matchAll(namedFence)].at(-1);
  if (fence === undefined) return undefined;
  const code = upToFence(response.slice(fence.index + fence[0].length));
  return { language: fence[1] === undefined ? "javascript" : "python", code };
}

function firstBlock(response: string): CodeBlock | undefined {
  const first = response.indexOf("```");
  if (first === -1) return undefined;
  const block = upToFence(response.slice(first + "```".length));
  const [, code = block] = /^[^\S\n]*[A-Za-z]+[^\S\n]*\n([\s\S]*)$/.exec(block) ?? [];
  return { language: "python", code };
}

function upToFence(text: string): string {
  const end = text.indexOf("```");
  return end === -1 ? text : text.slice(0, end);
}
