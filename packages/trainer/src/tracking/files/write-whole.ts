/** A file that is there as a whole or not at all: who has the old one open keeps it. */

import { rename, rm, writeFile } from "node:fs/promises";
import { TrackingError } from "../../errors.ts";

/** Returns the path. Rejects with TrackingError TRACKING_FILES. */
export async function writeWhole(
  path: string,
  content: string | Iterable<string>,
): Promise<string> {
  const partial = `${path}.${process.pid}.partial`;
  try {
    await writeFile(partial, content);
    await rename(partial, path);
    return path;
  } catch (cause) {
    await rm(partial, { force: true });
    throw new TrackingError("TRACKING_FILES", path, "it cannot be written", cause);
  }
}
