/**
 * Whether two paths name one file: a command that reads one and writes the other would destroy it.
 */

import { stat } from "node:fs/promises";
import { resolve } from "node:path";

/**
 * Compares existing files by identity, else the paths. Special files (a terminal, a pipe) are read
 * and written alike.
 */
export async function isSameFile(first: string, second: string): Promise<boolean> {
  const [one, other] = await Promise.all(
    [first, second].map((path) => stat(path).catch(() => undefined)),
  );
  if (one === undefined || other === undefined) return resolve(first) === resolve(second);
  return one.isFile() && one.dev === other.dev && one.ino === other.ino;
}
