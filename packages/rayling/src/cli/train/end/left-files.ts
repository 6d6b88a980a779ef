/**
 * Whether a training has left something at a path: its files and folders are made before there is
 * anything to put in.
 */
import { readdirSync, statSync } from "node:fs";

/** Whether there is a file with a line. */
export function hasLine(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Whether a folder has a checkpoint, of this run or of one before it. */
export function hasCheckpoint(folder: string): boolean {
  return namesIn(folder).some((name) => /^global_step_\d+$/.test(name));
}

/** A folder that is not there, or cannot be read, has none. */
function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
