/** Folders of runs that lie beside each other. */

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { runFiles } from "../files/run-lines.ts";

/**
 * Returns the folders of runs in a folder, by name; none where it cannot be read. Links, such as
 * `latest`, are left out.
 */
export async function runFoldersIn(parent: string): Promise<readonly string[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch(() => []);
  const folders = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(parent, name))
    .toSorted();
  const found = await Promise.all(
    folders.map(async (folder) => ((await isRunFolder(folder)) ? [folder] : [])),
  );
  return found.flat();
}

/** Whether the logger `file` has written there. */
export async function isRunFolder(folder: string): Promise<boolean> {
  const stats = await stat(join(folder, runFiles.metrics)).catch(() => undefined);
  return stats?.isFile() === true;
}
