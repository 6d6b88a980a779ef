/**
 * The directory of one session's spill files: its name, and the leftovers of sessions whose process
 * was killed.
 *
 * The name contains the process id, and the machine or container in which that id is valid. The
 * first file creates the directory.
 */
import { createHash } from "node:crypto";
import { readlinkSync, rmSync } from "node:fs";
import { lstat, readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { codeOf } from "../shared/errors/thrown.ts";
import { newId } from "../shared/ids.ts";
import { isRunning } from "../shared/machine/processes.ts";

const prefix = "rayling-spill";

/** Returns a path below `root` that no other session has. */
export function spillDirectoryIn(root: string): string {
  return join(root, [prefix, place(), process.pid, newId("job").slice(4)].join("-"));
}

/**
 * Removes the leftovers of dead processes in `root`. Never fails: files that cannot be removed are
 * left to their owner.
 */
export async function removeLeftovers(root: string): Promise<void> {
  const names = await readdir(root).catch(() => []);
  const ours = `${prefix}-${place()}-`;
  for (const name of names) {
    if (!name.startsWith(ours)) continue;
    const pid = Number(name.slice(ours.length).split("-")[0]);
    if (!Number.isSafeInteger(pid) || isRunning(pid)) continue;
    const path = join(root, name);
    const found = await lstat(path).catch(() => undefined);
    if (found?.isDirectory() !== true || found.uid !== process.getuid?.()) continue;
    await rm(path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** Removes the files of one writer that is gone. */
export async function removeFilesOf(writer: string, directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const files = names.filter((name) => name.startsWith(`${writer}-`));
  await Promise.all(files.map((name) => rm(join(directory, name), { force: true })));
}

/** Removes the directory, if it is there. */
export async function removeDirectory(directory: string): Promise<void> {
  try {
    await rm(directory, { recursive: true, force: true });
  } catch (error) {
    if (!isNowhere(error)) throw error;
  }
}

/** Removes a directory at the end of a process that did not shut down. */
export function removeDirectoryNow(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch (error) {
    if (!isNowhere(error)) throw error;
  }
}

/** Whether a file stands where its parent would be: nothing is below it. */
function isNowhere(error: unknown): boolean {
  return codeOf(error) === "ENOTDIR";
}

/** Returns a name that processes share if they see each other's process ids. */
function place(): string {
  let processes = "";
  try {
    processes = readlinkSync("/proc/self/ns/pid");
  } catch {
    // Only Linux has it, and only there do containers share a disk but not process ids.
    processes = process.platform;
  }
  return createHash("sha256").update(`${hostname()} ${processes}`).digest("hex").slice(0, 8);
}
