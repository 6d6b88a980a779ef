/** Whether two paths are of one file, which a command that reads the one and writes the other would destroy. */

import { stat } from "node:fs/promises";
import { resolve } from "node:path";

/** By whatever name, where both are there; else by their paths. Something that is no file (a terminal, a pipe) is read and written alike. */
export async function isSameFile(first: string, second: string): Promise<boolean> {
  const [one, other] = await Promise.all(
    [first, second].map((path) => stat(path).catch(() => undefined)),
  );
  if (one === undefined || other === undefined) return resolve(first) === resolve(second);
  return one.isFile() && one.dev === other.dev && one.ino === other.ino;
}
