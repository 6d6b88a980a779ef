/**
 * Marks the writer of a log by a file beside it, named after the process. Two runs that wrote one
 * log would give the same numbers to different samples, and pay twice.
 *
 * Each writer creates its mark first and then looks for others, so that of two at once at most one
 * continues. The next writer removes the mark of a killed process. Processes of another machine or
 * container cannot be checked, and are ignored.
 */

import { createHash, randomUUID } from "node:crypto";
import { readdir, readFile, readlink, realpath, rm, stat, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, dirname, join } from "node:path";
import { isRunning } from "@rayling/reward-manager-registry/values";
import { RewardLogBusyError } from "../errors.ts";

/** Marks the writer of a log by a file beside it, so that there is one at a time. */
export class WriterMark {
  /**
   * Undefined: there is no mark, as no other process could write there, or no file can be created
   * beside the log.
   */
  readonly #path: string | undefined;

  private constructor(path: string | undefined) {
    this.#path = path;
  }

  /**
   * Rejects with RewardLogBusyError while another writer has the log, in this process or in another
   * one.
   */
  static async put(log: string): Promise<WriterMark> {
    const target = await realpath(log).catch(() => log);
    const kind = await stat(target).catch(() => undefined);
    // A pipe, a terminal: what is written there is not kept.
    if (kind !== undefined && !kind.isFile()) return new WriterMark(undefined);
    const folder = dirname(target);
    const own = `.${basename(target)}.${await ownerHere()}.${randomUUID().slice(0, 8)}.writer`;
    const mark = new WriterMark(join(folder, own));
    try {
      await writeFile(join(folder, own), "", { flag: "wx" });
    } catch {
      // Opening the log reports why it cannot be written; a log that can be written goes without a
      // mark.
      return new WriterMark(undefined);
    }
    try {
      await refuseOthers(log, folder, basename(target), own);
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

async function refuseOthers(log: string, folder: string, name: string, own: string): Promise<void> {
  const here = await numbersHoldHere();
  for (const one of await readdir(folder)) {
    if (one === own || !one.startsWith(`.${name}.`)) continue;
    const [, pid, started = "", where] = markPattern.exec(one.slice(name.length + 2)) ?? [];
    if (pid === undefined || where !== here) continue;
    if (await isAlive(Number(pid), started)) throw new RewardLogBusyError(log, Number(pid));
    await rm(join(folder, one), { force: true });
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
