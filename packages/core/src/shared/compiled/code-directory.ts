/**
 * The directory of this user's compiled code. A writer to it could change the code of programs and
 * hosts, so it is private to this user.
 */
import { lstatSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isOfUserAlone } from "../machine/user-directory.ts";

/** A directory, or what is wrong with it. */
export interface CodeDirectory {
  readonly path: string;
  /** Its path again, where it is there and private. */
  readonly directory?: string;
  readonly problem?: string;
}

export function codeDirectory(): CodeDirectory {
  const path = join(tmpdir(), `rayling-code-${process.getuid?.() ?? "user"}`);
  try {
    mkdirSync(path, { mode: 0o700, recursive: true });
    if (isOfUserAlone(lstatSync(path))) return { path, directory: path };
    return { path, problem: "is not a directory of this user alone" };
  } catch (error) {
    return { path, problem: `cannot be made: ${(error as Error).message}` };
  }
}
