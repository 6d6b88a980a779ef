/** Files of a report, replaced as a whole. */

import { writeFile } from "node:fs/promises";
import { TrackingError } from "../../errors.ts";
import { replaceFile } from "../../values/replace-file.ts";

/** Returns the path. Rejects with TrackingError TRACKING_FILES. */
export async function writeWhole(
  path: string,
  content: string | Iterable<string>,
): Promise<string> {
  try {
    await replaceFile(path, (unfinished) => writeFile(unfinished, content));
    return path;
  } catch (cause) {
    throw new TrackingError("TRACKING_FILES", path, "it cannot be written", cause);
  }
}
