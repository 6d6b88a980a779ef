/**
 * Keeps existing files: a command never silently overwrites a file.
 */

import { randomUUID } from "node:crypto";
import { access, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname, join, parse } from "node:path";
import { CliError } from "../cli-error.ts";
import { plain, tell } from "./output.ts";

/**
 * Renames an existing file to its last write time, and reports that:
 * `rewards.2026-01-31T09-30-00Z.jsonl`. It does nothing if the path is missing, empty, or no file.
 *
 * @param what describes the file
 */
export async function moveAside(path: string, what: string): Promise<void> {
  // A link stays, and its target moves.
  const file = await realpath(path).catch(() => path);
  const stats = await stat(file).catch(() => undefined);
  if (stats === undefined || !stats.isFile() || stats.size === 0) return;
  const aside = await freeName(file, stats.mtime);
  await rename(file, aside);
  tell(`${plain(path)} existed: ${what} is now in ${plain(aside)}\n`);
}

/**
 * Makes a file through `write`, under another name first, so that a failure costs nothing. A
 * different existing file is moved aside, and an equal one stays. Resolves to the result of
 * `write`, and rejects as it does. Throws CliError 2 for a device or a folder.
 */
export async function replaceFile<Result>(
  path: string,
  what: string,
  write: (path: string) => Promise<Result>,
): Promise<Result> {
  const stats = await stat(path).catch(() => undefined);
  if (stats !== undefined && !stats.isFile()) throw new CliError(2, `${path} is not a file`);
  const file = await realpath(path).catch(() => path);
  const { ext } = parse(file);
  // The format hangs on the ending. The name itself may be as long as a name can be.
  const ending = Buffer.byteLength(ext) <= 20 ? ext : "";
  const made = join(dirname(file), `.rayling-${randomUUID().slice(0, 8)}${ending}`);
  try {
    const result = await write(made);
    if (stats !== undefined && (await isAlike(file, made, stats.size))) return result;
    await moveAside(file, what);
    await rename(made, file);
    return result;
  } catch (error) {
    // The user knows the file by its own name.
    if (error instanceof Error) error.message = error.message.replaceAll(made, file);
    throw error;
  } finally {
    // The user has to know what failed before.
    await rm(made, { force: true }).catch(() => undefined);
  }
}

async function isAlike(file: string, made: string, bytes: number): Promise<boolean> {
  if ((await stat(made)).size !== bytes) return false;
  const [one, other] = await Promise.all([readFile(file), readFile(made)]);
  return one.equals(other);
}

/** Linux, macOS; Windows takes as many characters. */
const maxNameBytes = 255;

function upTo(bytes: number, text: string): string {
  // A character that is cut in two has no meaning.
  return Buffer.from(text)
    .subarray(0, bytes)
    .toString()
    .replace(/\uFFFD+$/, "");
}

async function freeName(file: string, date: Date): Promise<string> {
  const { dir, base } = parse(file);
  const [, stem = base, extension = ""] = /^(.+?)((?:\.[A-Za-z0-9]+){1,2})$/.exec(base) ?? [];
  const stamp = `${date.toISOString().slice(0, 19).replaceAll(":", "-")}Z`;
  for (let count = 1; ; count++) {
    const suffix = count === 1 ? stamp : `${stamp}-${count}`;
    const ending = `.${suffix}${extension}`;
    const name = join(dir, `${upTo(maxNameBytes - Buffer.byteLength(ending), stem)}${ending}`);
    const isTaken = await access(name).then(
      () => true,
      () => false,
    );
    if (!isTaken) return name;
  }
}
