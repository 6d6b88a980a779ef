/**
 * Lines that fit the width of a terminal: what matters least stands last, and is left out first.
 */

/**
 * Returns the parts, separated by commas, as far as they fit whole. The first one is cut where it
 * is longer than the line.
 */
export function fitted([first = "", ...more]: readonly string[], columns: number): string {
  let line = first.slice(0, Math.max(0, columns));
  for (const part of more) {
    if (line.length + part.length + 2 > columns) break;
    line += `, ${part}`;
  }
  return line;
}
