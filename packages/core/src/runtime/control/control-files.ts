/**
 * The directory in which drivers of this user can be found. Nobody else may enter it. Each driver
 * has a socket there, and a file that describes the driver.
 *
 * The socket exists before the file, and is removed after it, so that a reader of the file finds a
 * listener, or the driver is dead. A driver removes both; a client that finds no listener removes
 * those of a killed driver.
 */
import { rmdirSync, rmSync } from "node:fs";
import { chmod, readdir, readFile, rename, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import type { DriverAbout } from "../../rpc/commands.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { checkUserDirectory, makeUserDirectory } from "../../shared/machine/make-directory.ts";
import { codeOf } from "../../shared/errors/thrown.ts";

const otherwise = "remove it, or name another in RAYLING_CONTROL_DIRECTORY";

/** A driver's description of itself. */
export interface DriverRecord extends DriverAbout {
  /** The token that opens its socket. */
  readonly token: string;
}

/** A record that was found; its driver may be dead. */
export interface FoundRecord extends DriverRecord {
  /** The path of its socket. */
  readonly path: string;
}

/**
 * A path to a unix socket has at most 103 characters (macOS; Linux has 107); the names inside have
 * 25.
 */
const maxDirectory = 77;

/** @throws RaySystemError when the system has no unix sockets, or the name is too long for one */
export function controlDirectory(): string {
  const uid = process.getuid?.();
  if (uid === undefined) throw new RaySystemError("there are no control sockets on this system");
  const chosen = namedDirectory();
  const directory = resolve(chosen ?? join(tmpdir(), `rayling-user-${uid}`));
  if (directory.length <= maxDirectory) return directory;
  if (chosen === undefined) return join("/tmp", `rayling-user-${uid}`);
  throw new RaySystemError(
    `RAYLING_CONTROL_DIRECTORY has ${directory.length} characters, and a path to a socket in it may have no more than ${maxDirectory}`,
  );
}

/**
 * Makes the directory, if necessary. Rejects with RaySystemError when other users could enter it.
 */
export async function makeDirectory(directory: string): Promise<void> {
  await makeUserDirectory(directory, otherwise);
}

export function socketPath(directory: string, jobId: string): string {
  return join(directory, `${jobId}.sock`);
}

/** Announces the listener; only this user may connect. */
export async function publish(path: string, record: DriverRecord): Promise<void> {
  await chmod(path, 0o600);
  const file = recordPath(path);
  await writeFile(`${file}.new`, `${JSON.stringify(record)}\n`, { mode: 0o600, flag: "wx" });
  // A rename never shows a reader half of the file.
  await rename(`${file}.new`, file);
}

/** Removes a driver's files, and the directory, if it is empty and was not named by the user. */
export async function removeFiles(path: string): Promise<void> {
  for (const file of filesOf(path)) await rm(file, { force: true });
  if (namedDirectory() !== undefined) return;
  await rmdir(dirname(path)).catch(ignoreFull);
}

/** Removes the files at the end of a process that did not shut down. */
export function removeFilesNow(path: string): void {
  for (const file of filesOf(path)) rmSync(file, { force: true });
  if (namedDirectory() !== undefined) return;
  try {
    rmdirSync(dirname(path));
  } catch (error) {
    ignoreFull(error);
  }
}

/** Returns the directory that the user named. */
function namedDirectory(): string | undefined {
  const name = process.env["RAYLING_CONTROL_DIRECTORY"];
  return name === "" ? undefined : name;
}

/** Other drivers use the directory, or removed it first. */
function ignoreFull(error: unknown): void {
  const code = codeOf(error);
  if (code !== "ENOTEMPTY" && code !== "EEXIST" && code !== "ENOENT") throw error;
}

function filesOf(path: string): readonly string[] {
  return [recordPath(path), `${recordPath(path)}.new`, path];
}

function recordPath(path: string): string {
  return join(dirname(path), `${basename(path, ".sock")}.json`);
}

/**
 * Reads the records of drivers, the oldest first; none if there is no directory. Rejects with
 * RaySystemError when other users could have written them.
 */
export async function readRecords(directory: string): Promise<readonly FoundRecord[]> {
  let names: readonly string[];
  try {
    await checkUserDirectory(directory, otherwise);
    names = (await readdir(directory)).filter((name) => name.endsWith(".sock"));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw error;
  }
  const records = await Promise.all(names.map((name) => readRecord(join(directory, name))));
  return records
    .filter((record) => record !== undefined)
    .toSorted((left, right) => left.startTimeMs - right.startTimeMs);
}

/**
 * Returns undefined for a socket whose driver has not announced itself yet, or is gone meanwhile.
 */
async function readRecord(path: string): Promise<FoundRecord | undefined> {
  let text: string;
  try {
    text = await readFile(recordPath(path), "utf8");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  const record = parsed(text);
  if (record === undefined) {
    throw new RaySystemError(`${recordPath(path)} is not the record of a driver: remove it`);
  }
  return { ...record, path };
}

function parsed(text: string): DriverRecord | undefined {
  let record: unknown;
  try {
    record = JSON.parse(text);
  } catch {
    // The writer of the file was no driver.
    return undefined;
  }
  const { jobId, pid, script, startTimeMs, token } = (record ?? {}) as Partial<DriverRecord>;
  const isRecord =
    [jobId, script, token].every((one) => typeof one === "string") &&
    [pid, startTimeMs].every((one) => typeof one === "number");
  return isRecord ? (record as DriverRecord) : undefined;
}
