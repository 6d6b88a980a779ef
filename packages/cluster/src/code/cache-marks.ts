/**
 * Marks in a code cache, by which processes and machines tell each other which packages they use,
 * and which they remove.
 */
import { createHash, randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { readdir, rm, stat, utimes, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join } from "node:path";
import { isRunning, pause, RaySystemError, timers } from "@rayling/core/cluster";
import { type CacheFolders, type MarkKind, shortCode } from "./cache-folders.ts";

/**
 * Tells this process from others, from earlier ones with its id, and from processes of machines and
 * containers where the id means another one.
 */
const here = whereNumbersHold();
const thisProcess = `${process.pid}-${here}-${randomUUID().slice(0, 8)}`;

/**
 * Ages of marks in ms. A mark of another machine or container cannot be verified: it is renewed at
 * this interval, and expires when it is old. A mark of an eviction expires soon; nobody waits
 * longer for it.
 */
const markMs = { renewed: 3_600_000, old: 86_400_000, evicting: 60_000 };

/** The pause between two looks for the end of an eviction, in ms. */
const lookMs = 20;

let caches = 0;

export class CacheMarks {
  /** Tells this cache from all others. */
  readonly owner: string = `${thisProcess}-${++caches}`;
  readonly #folders: CacheFolders;
  /** The packages that this cache uses, with the number of uses. */
  readonly #users: Map<string, number> = new Map();
  #marking: Promise<unknown> = Promise.resolve();
  #renewing: NodeJS.Timeout | undefined;

  constructor(folders: CacheFolders) {
    this.#folders = folders;
  }

  /** Keeps the marks fresh until `close`. */
  open(): void {
    timers.clearInterval(this.#renewing);
    this.#renewing = timers.setInterval(() => this.#renew(), markMs.renewed).unref();
  }

  /** Removes all marks of use. Rejects when one of them stays. */
  async close(): Promise<void> {
    timers.clearInterval(this.#renewing);
    const all = [...this.#users];
    const removed = await Promise.allSettled(all.map(([id, users]) => this.count(id, -users)));
    for (const one of removed) if (one.status === "rejected") throw one.reason;
  }

  /** Whether anybody uses the package. */
  async isUsed(id: string): Promise<boolean> {
    return this.#users.has(id) || (await this.markOf("uses", id, markMs.old)) !== undefined;
  }

  /** The number of uses by this cache. */
  usersOf(id: string): number {
    return this.#users.get(id) ?? 0;
  }

  /** Whether another cache uses the package. */
  async isUsedElsewhere(id: string): Promise<boolean> {
    return (await this.markOf("uses", id, markMs.old, this.mark("uses", id))) !== undefined;
  }

  /** Renews the marks, which other machines cannot verify. */
  #renew(): void {
    const now = new Date();
    for (const id of this.#users.keys()) {
      // A mark that is gone meanwhile belongs to nobody.
      utimes(this.mark("uses", id), now, now).catch(() => undefined);
    }
  }

  /**
   * Waits for the end of an eviction. Rejects when the evicting process is alive and makes no
   * progress.
   */
  async untilEvicted(id: string): Promise<void> {
    for (;;) {
      const mark = await this.markOf("evicting", id, markMs.evicting);
      if (mark === undefined) return;
      const age = await ageMs(mark);
      if (age > markMs.evicting && age < Infinity) {
        throw new RaySystemError(
          `code ${shortCode(id)} is marked for removal for over ${markMs.evicting / 1000} s: if no agent is removing it, delete ${mark}`,
        );
      }
      await pause(lookMs);
    }
  }

  /**
   * Counts users. The mark exists while there are users; writes and removals of it run in order. A
   * use fails if it cannot be marked.
   */
  async count(id: string, more: number): Promise<void> {
    this.#add(id, more);
    const path = this.mark("uses", id);
    const marked = this.#marking.then(() =>
      this.#users.has(id) ? writeFile(path, "") : rm(path, { force: true }),
    );
    this.#marking = marked.catch(() => undefined);
    try {
      await marked;
    } catch (error) {
      if (more > 0) this.#add(id, -more);
      throw error;
    }
  }

  #add(id: string, more: number): void {
    const users = (this.#users.get(id) ?? 0) + more;
    if (users > 0) this.#users.set(id, users);
    else this.#users.delete(id);
  }

  /** Returns a mark of that kind by a living process, if there is one besides `own`. */
  async markOf(
    kind: MarkKind,
    id: string,
    oldMs: number,
    own?: string,
  ): Promise<string | undefined> {
    const folder = this.#folders.folder(kind);
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (path !== own && name.startsWith(`${id}.`) && !(await isOver(path, oldMs))) return path;
    }
    return undefined;
  }

  mark(kind: MarkKind, id: string): string {
    return join(this.#folders.folder(kind), `${id}.${this.owner}`);
  }
}

/**
 * Whether the process that left a file has ended; the file is named `<owner>-…` or `<id>.<owner>`.
 *
 * @param oldMs the age, in ms, at which a file counts as left if this machine cannot tell
 */
export async function isOver(path: string, oldMs: number = markMs.old): Promise<boolean> {
  const owner = basename(path).split(".").at(-1) ?? "";
  const [pid, where] = owner.split("-");
  if (where !== here) {
    return (await ageMs(path)) > oldMs;
  }
  if (Number(pid) === process.pid) return !owner.startsWith(thisProcess);
  return !isRunning(Number(pid));
}

/** Returns Infinity for a file that another process removed meanwhile. */
async function ageMs(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch {
    return Infinity;
  }
}

/**
 * Names the range in which a process id is unique: this machine since its start, or this container.
 */
function whereNumbersHold(): string {
  const parts = [hostname()];
  try {
    parts.push(readlinkSync("/proc/self/ns/pid"));
    parts.push(readFileSync("/proc/sys/kernel/random/boot_id", "utf8"));
  } catch {
    // Other systems than Linux have no containers that share the directory.
  }
  return createHash("sha256").update(parts.join(" ")).digest("hex").slice(0, 8);
}
