/**
 * Folders of runs: one for each, named after when it began, below a folder that they have in
 * common; `latest` beside them leads to the newest. No run writes into the files of another one.
 */

import { mkdir, rename, rm, symlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { codeOf } from "@rayling/reward-manager-registry/values";
import { TrackingError } from "../errors.ts";
import { makeFolder } from "../values/make-folder.ts";

const LATEST = "latest";

export interface RunFolderOptions {
  /** When it begins. Default: now. */
  readonly now?: Date;
}

/**
 * Makes the folder of a run below `base`, and links `latest` to it where links can be made. Rejects
 * with TrackingError (TRACKING_OPEN).
 *
 * @returns its path: `runs/demo/add/2026-01-31T09-30-00Z`
 */
export async function runFolder(
  base: string,
  { now = new Date() }: RunFolderOptions = {},
): Promise<string> {
  try {
    await makeFolder(base);
    const folder = await madeFolder(base, stampOf(now));
    await linkLatest(base, basename(folder));
    return folder;
  } catch (cause) {
    throw new TrackingError("TRACKING_OPEN", "directory", `${base} cannot be made`, cause);
  }
}

/** Returns the time to the second in UTC, without characters that file systems refuse. */
function stampOf(date: Date): string {
  return `${date.toISOString().slice(0, 19).replaceAll(":", "-")}Z`;
}

/** Runs that begin in one second have folders of their own. */
async function madeFolder(base: string, stamp: string): Promise<string> {
  for (let count = 1; ; count++) {
    const folder = join(base, count === 1 ? stamp : `${stamp}-${count}`);
    try {
      await mkdir(folder);
      return folder;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
    }
  }
}

/** Replaces the one before at once: a reader that follows it finds one of them. */
async function linkLatest(base: string, name: string): Promise<void> {
  const link = join(base, `.${LATEST}-${name}-${process.pid}`);
  try {
    await symlink(name, link, "dir");
    await rename(link, join(base, LATEST));
  } catch {
    // A file system without links, or a folder of the user's with that name: the runs are there
    // all the same.
    await rm(link, { force: true });
  }
}
