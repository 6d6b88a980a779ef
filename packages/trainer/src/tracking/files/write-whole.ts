/** Writes that name their file: the system's error of a file that is open names none. */

import { writeFile } from "node:fs/promises";
import { TrackingError } from "../../errors.ts";
import { replaceFile } from "../../values/replace-file.ts";

/**
 * Replaces the file as a whole, and returns its path. Rejects with TrackingError TRACKING_FILES.
 */
export async function writeWhole(
  path: string,
  content: string | Iterable<string>,
): Promise<string> {
  await written(path, () => replaceFile(path, (unfinished) => writeFile(unfinished, content)));
  return path;
}

/** Rejects with TrackingError TRACKING_FILES, which names the path. */
export async function written(path: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (cause) {
    throw new TrackingError("TRACKING_FILES", path, "it cannot be written", cause);
  }
}
