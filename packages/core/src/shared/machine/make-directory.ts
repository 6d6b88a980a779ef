/** Makes directories that no other user of the machine can enter. */
import { lstat, mkdir } from "node:fs/promises";
import { RaySystemError } from "../errors.ts";
import { codeOf } from "../errors/thrown.ts";
import { isOfUserAlone } from "./user-directory.ts";

/**
 * Makes a directory of this user alone, unless it is there.
 *
 * @param otherwise what helps where another user has something of that name
 * @throws RaySystemError when something else is there
 */
export async function makeUserDirectory(
  directory: string,
  otherwise: string = "remove it",
): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (codeOf(error) !== "EEXIST") throw error;
  });
  await checkUserDirectory(directory, otherwise);
}

/** @throws RaySystemError when something else is there than a directory of this user alone */
export async function checkUserDirectory(directory: string, otherwise: string): Promise<void> {
  const found = await lstat(directory);
  if (isOfUserAlone(found)) return;
  const isOwn = found.isDirectory() && found.uid === process.getuid?.();
  const fix = isOwn ? `chmod 700 ${directory}` : otherwise;
  throw new RaySystemError(`${directory} is not a directory of this user alone: ${fix}`);
}
