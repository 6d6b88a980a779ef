/**
 * Marks the writer of a log by a file beside it, named after the process. Two runs that wrote one
 * log would give the same numbers to different samples, and pay twice.
 *
 * It stands in the temporary directory, under the number of the file, where none can be created
 * beside the log.
 *
 * Each writer creates its mark first and then looks for others, so that of two at once at most one
 * continues. The next writer removes the mark of a killed process. Processes of another machine or
 * container cannot be checked, and are ignored.
 */

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, readlink, realpath, rm, stat, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { warn } from "@rayling/core/terminal";
import { isRunning } from "@rayling/reward-manager-registry/values";
import { RewardLogBusyError } from "../errors.ts";

/** Marks the writer of a log by a file beside it, so that there is one at a time. */
export class WriterMark {
  /** Undefined: there is no mark, as nothing is kept there, or none can be created anywhere. */
  readonly #path: string | undefined;

  private constructor(path: string | undefined) {
    this.#path = path;
  }

  /**
   * Rejects with RewardLogBusyError while another writer has the log, in this process or in another
   * one.
   */
  static async put(log: string): Promise<WriterMark> {
    const target = await targetOf(log);
    const kind = await stat(target, { bigint: true }).catch(() => undefined);
    // A pipe, a terminal: what is written there is not kept.
    if (kind !== undefined && !kind.isFile()) return new WriterMark(undefined);
    const beside = { folder: dirname(target), name: nameFor(basename(target)) };
    const places =
      kind === undefined
        ? [beside]
        : [beside, { folder: tmpdir(), name: `rayling-log-${kind.dev}-${kind.ino}` }];
    const own = `${await ownerHere()}.${randomUUID().slice(0, 8)}.writer`;
    const mark = new WriterMark(await madeInOne(places, own));
    if (mark.#path === undefined && kind !== undefined) warn(unmarked(log));
    try {
      for (const place of places) await refuseOthers(log, place, mark.#path);
      return mark;
    } catch (error) {
      await mark.remove();
      throw error;
    }
  }

  /** Removes the file. The log may have another writer then. */
  async remove(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true });
  }
}

/** Where marks of a log stand, and what their names begin with. */
interface MarkPlace {
  readonly folder: string;
  readonly name: string;
}

/** Resolves to the file that a log is, or will be: a link may lead to one that is not there yet. */
async function targetOf(log: string): Promise<string> {
  let path = resolve(log);
  // Linux follows as many.
  for (let links = 0; links < 40; links++) {
    const found = await realpath(path).catch(() => undefined);
    if (found !== undefined) return found;
    const folder = await realpath(dirname(path)).catch(() => dirname(path));
    path = join(folder, basename(path));
    const next = await readlink(path).catch(() => undefined);
    if (next === undefined) return path;
    path = resolve(folder, next);
  }
  return path;
}

/** A name has up to 255 bytes, of which a mark needs 47 for itself. */
function nameFor(log: string): string {
  if (Buffer.byteLength(log) <= 200) return log;
  return createHash("sha256").update(log).digest("hex").slice(0, 32);
}

/** Opening the log reports why it cannot be written: undefined where it has no mark anywhere. */
async function madeInOne(places: readonly MarkPlace[], own: string): Promise<string | undefined> {
  for (const { folder, name } of places) {
    const path = join(folder, `.${name}.${own}`);
    const isMade = await writeFile(path, "", { flag: "wx" }).then(
      () => true,
      () => false,
    );
    if (isMade) return path;
  }
  return undefined;
}

function unmarked(log: string): string {
  return `no file can be created beside the reward log ${log}, nor in ${tmpdir()}: a second writer of it would not be noticed`;
}

async function refuseOthers(
  log: string,
  { folder, name }: MarkPlace,
  own: string | undefined,
): Promise<void> {
  const here = await numbersHoldHere();
  const names = await readdir(folder).catch((error: unknown) => {
    if (own !== undefined && dirname(own) === folder) throw error;
    return [];
  });
  for (const one of names) {
    const path = join(folder, one);
    if (path === own || !one.startsWith(`.${name}.`)) continue;
    const [, pid, started = "", where] = markPattern.exec(one.slice(name.length + 2)) ?? [];
    if (pid === undefined || where !== here) continue;
    if (await isAlive(Number(pid), started)) throw new RewardLogBusyError(log, Number(pid));
    // Another user's stays in the temporary directory, and holds up nobody.
    await rm(path, { force: true }).catch(() => undefined);
  }
}

/** Process, its start, where its number holds, and one of its writers. */
const markPattern = /^(\d+)-(\d+)-([0-9a-f]{8})\.[0-9a-f]{8}\.writer$/;

/** This process, told from others that had its number before. */
async function ownerHere(): Promise<string> {
  return `${process.pid}-${(await startOf(process.pid)) ?? "0"}-${await numbersHoldHere()}`;
}

async function isAlive(pid: number, started: string): Promise<boolean> {
  const start = await startOf(pid);
  if (start !== undefined) return start === started;
  if (started !== "0") return false;
  return isRunning(pid);
}

/**
 * Returns when a process began, in ticks since the machine did; undefined for a process that has
 * ended, and elsewhere than on Linux.
 */
async function startOf(pid: number): Promise<string | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The fields of proc(5) from the third on follow the name, which is in parentheses and may hold
  // any character.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  // A zombie: killed, but its parent has not read its exit status.
  return fields[0] === "Z" ? undefined : fields[19];
}

/**
 * Names the scope in which a process number is unique: this machine since its start, or this
 * container.
 */
async function numbersHoldHere(): Promise<string> {
  const parts = await Promise.all(
    [
      readlink("/proc/self/ns/pid"),
      readFile("/proc/sys/kernel/random/boot_id", "utf8"),
      // Elsewhere than on Linux no containers share a folder with it.
    ].map((part) => part.catch(() => "")),
  );
  return createHash("sha256")
    .update([hostname(), ...parts].join(" "))
    .digest("hex")
    .slice(0, 8);
}
