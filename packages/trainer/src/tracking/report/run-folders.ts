/** Folders of runs that lie beside each other. */

import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { requireRun } from "../files/run-files.ts";
import { runFiles } from "../files/run-lines.ts";

/**
 * Returns a folder that holds a run, or the folders of the runs in it. Rejects with TrackingError
 * TRACKING_FILES where there is no run.
 */
export async function runFoldersOf(directory: string): Promise<readonly string[]> {
  if (await isRunFolder(directory)) return [directory];
  const within = await runFoldersIn(directory);
  if (within.length === 0) await requireRun(directory);
  return within;
}

/** Returns the paths of the files that pages and traces of a run are made of. */
export function runInputsIn(folder: string): readonly string[] {
  const { metrics, timeline, generations } = runFiles;
  return [metrics, timeline, generations].map((name) => join(folder, name));
}

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
async function isRunFolder(folder: string): Promise<boolean> {
  const stats = await stat(join(folder, runFiles.metrics)).catch(() => undefined);
  return stats?.isFile() === true;
}
