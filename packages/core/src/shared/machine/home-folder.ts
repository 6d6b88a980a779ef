/** The user's home folder, where files of Rayling lie by default: it is looked up when needed. */
import { homedir } from "node:os";
import { join } from "node:path";
import { RaySystemError } from "../errors.ts";

/** Returns its path; undefined for a user without one: no HOME, and no entry in passwd. */
export function homeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

/**
 * Returns a path below it.
 *
 * @param what whose place it is, for the error
 * @throws RaySystemError that names HOME
 */
export function inHome(what: string, ...path: readonly string[]): string {
  const home = homeFolder();
  if (home !== undefined) return join(home, ...path);
  throw new RaySystemError(
    `${what} has no place: its default is ~/${path.join("/")}, and this user has no home folder (set HOME, or name another place)`,
  );
}
