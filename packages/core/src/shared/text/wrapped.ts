/** Text that is broken between words, where the reader is a terminal. */
import type { WriteStream } from "node:tty";

/** Columns of a line that people read with ease. */
const mostColumns = 100;

/**
 * Returns the lines of a text. A word that is longer than a line (a path, a link) stays whole.
 *
 * @param indent stands before all lines but the first
 */
export function wrapped(text: string, { isTTY, columns }: WriteStream, indent = ""): string[] {
  const width = Math.min(mostColumns, (columns || 80) - 1);
  if (!isTTY || text.length <= width) return [text];
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (line.trim() === "" || longer.length <= width) line = longer;
    else {
      lines.push(line);
      line = `${indent}${word}`;
    }
  }
  return [...lines, line];
}
