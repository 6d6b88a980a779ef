/**
 * The directory of this user's compiled code. A writer to it could change the code of programs and
 * hosts, so it is private to this user.
 */
import { chmodSync, lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isOfUserAlone } from "../machine/user-directory.ts";

/** A directory, or what is wrong with it. */
export interface CodeDirectory {
  readonly path: string;
  /** Its path again, where it is private, or is yet to be made. */
  readonly directory?: string;
  readonly problem?: string;
}

/** @param makes whether it is made where it is not there */
export function codeDirectory(makes = true): CodeDirectory {
  const path = join(tmpdir(), `rayling-code-${process.getuid?.() ?? "user"}`);
  try {
    if (makes) mkdirSync(path, { mode: 0o700, recursive: true });
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined)
      return makes ? { path, problem: "is gone" } : { path, directory: path };
    if (!isOfUserAlone(found)) {
      const isOurs = found.isDirectory() && found.uid === process.getuid?.();
      // Node makes one that was removed meanwhile again, for others to read.
      if (!isOurs || (found.mode & 0o022) !== 0)
        return { path, problem: "is not a directory of this user alone" };
      chmodSync(path, 0o700);
    }
    return { path, directory: path };
  } catch (error) {
    return { path, problem: `cannot be made: ${(error as Error).message}` };
  }
}
