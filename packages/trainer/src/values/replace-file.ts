/**
 * Replaces a file as a whole: no reader sees half of it, and a reader of the old one keeps that.
 */

import { rename, rm } from "node:fs/promises";

/**
 * Rejects with the error of `write`, and leaves the old file then.
 *
 * @param write writes all of the file at the path that it is given
 * @param unfinished the path until then
 */
export async function replaceFile(
  path: string,
  write: (unfinished: string) => Promise<void>,
  unfinished: string = `${path}.${process.pid}.unfinished`,
): Promise<void> {
  try {
    await write(unfinished);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}
