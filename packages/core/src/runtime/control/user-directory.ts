/** Directories below the temporary folder, which all users share: whether one is of this user alone. */
import type { Stats } from "node:fs";

/** Nobody but this user may look into it, or change anything there. */
export function isOfUserAlone(found: Stats): boolean {
  const uid = process.getuid?.();
  if (uid === undefined) return found.isDirectory();
  return found.isDirectory() && found.uid === uid && (found.mode & 0o077) === 0;
}
