/**
 * Makes a folder with those above it, level by level. Node's recursive mkdir reports a read-only
 * file system as ENOENT, and where a folder can hold no others (/proc) it never ends.
 */

import { mkdir, stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { codeOf } from "@rayling/reward-manager-registry/values";

/** Resolves also where the folder is there. Rejects with the error of the level that failed. */
export async function makeFolder(path: string): Promise<void> {
  const folder = resolve(path);
  try {
    await makeLevel(folder);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(folder) === folder) throw error;
    await makeFolder(dirname(folder));
    await makeLevel(folder);
  }
}

async function makeLevel(folder: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch (error) {
    // The root of a disk may answer with another code than EEXIST.
    const found =
      codeOf(error) === "ENOENT" ? undefined : await stat(folder).catch(() => undefined);
    if (found?.isDirectory() !== true) throw error;
  }
}
