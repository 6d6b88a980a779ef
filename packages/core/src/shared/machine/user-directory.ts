/**
 * Checks of directories below the temporary folder, which all users share.
 */
import type { Stats } from "node:fs";

/** Whether only this user may read the directory and change files there. */
export function isOfUserAlone(found: Stats): boolean {
  const uid = process.getuid?.();
  if (uid === undefined) return found.isDirectory();
  return found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0;
}
