/**
 * Packages of code on an agent's disk, by their ids. A package arrives complete, checked and
 * atomically (rename). It is removed as a whole when others need its room, the least recently used
 * first, and never while it is in use.
 *
 *     <directory>/<runtime>/node_modules/...    links to rayling's own packages: the last place
 *                                               in which Node looks for the imports of code below
 *                          /packages/<id>/      manifest.json (its time is the last use), files/
 *                          /incoming/           packages in transfer; unfinished ones are removed
 *                          /uses/<id>.<owner>   marks of use: several agents, also those of
 *                                               containers, may share a directory
 *                          /evicting/<id>.<owner>   marks of evictions: a process that has marked
 *                                               a use waits for their end, and looks then
 *
 * A package that was there before this process is read once and compared with its id before its
 * first use.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import {
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from "node:fs/promises";
import { hostname } from "node:os";
import { basename, join, resolve, sep } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { RaySystemError } from "@rayling/core/cluster";
import { checkManifest } from "./manifest.ts";
import { Receiving } from "./receiving.ts";
import { runtimePackagesHere } from "./runtime-packages.ts";
import { idOfFolder } from "./stream.ts";

export interface CodeCacheOptions {
  readonly directory: string;
  /** The most bytes of files in the cache. */
  readonly maxBytes: number;
  /** The most bytes of files in one package. */
  readonly maxPackageBytes: number;
  /** Called with each line for the operator. */
  readonly tell: (line: string) => void;
}

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

export class CodeCache {
  readonly maxPackageBytes: number;
  /** rayling's own packages on this machine: their folders, by name. */
  readonly runtime: ReadonlyMap<string, string> = runtimePackagesHere();
  readonly #options: CodeCacheOptions;
  readonly #base: string;
  readonly #owner = `${thisProcess}-${++caches}`;
  readonly #users: Map<string, number> = new Map();
  readonly #checked: Map<string, Promise<boolean>> = new Map();
  #opened: Promise<void> | undefined;
  #renewing: NodeJS.Timeout | undefined;
  /** The bytes of packages in transfer. */
  #promisedBytes = 0;
  #turn: Promise<unknown> = Promise.resolve();
  #marking: Promise<unknown> = Promise.resolve();

  constructor(options: CodeCacheOptions) {
    this.#options = options;
    this.maxPackageBytes = Math.min(options.maxPackageBytes, options.maxBytes);
    const runtime = [...this.runtime].toSorted(([one], [other]) => (one < other ? -1 : 1));
    const name = createHash("sha256").update(JSON.stringify(runtime)).digest("hex").slice(0, 16);
    this.#base = join(resolve(options.directory), name);
  }

  /**
   * The places where cached code finds rayling's own packages: the links to them, and the targets
   * of these.
   */
  get runtimeFolders(): readonly string[] {
    return [join(this.#base, "node_modules"), ...this.runtime.values()];
  }

  /**
   * Makes its folders and removes unfinished packages. Rejects with RaySystemError when the
   * directory cannot be used.
   */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: Error) => {
      this.#opened = undefined;
      throw error instanceof RaySystemError ? error : this.#problem(error);
    });
    return this.#opened;
  }

  /**
   * Returns the folder of the package's files, which is kept until `release`; undefined when the
   * package is not here.
   */
  async use(id: string): Promise<string | undefined> {
    await this.open();
    // The mark precedes the look: an eviction marks and looks in the same order, so one of the two
    // sees the other.
    await this.#count(id, 1);
    try {
      await this.#untilEvicted(id);
      if (await this.#isWhole(id)) {
        await this.#touch(id);
        return this.#files(id);
      }
    } catch (error) {
      await this.release(id);
      throw this.#problem(error as Error);
    }
    await this.release(id);
    return undefined;
  }

  async release(id: string): Promise<void> {
    await this.#count(id, -1);
  }

  /** Receives a package. When `end` has resolved, the sender uses it until `release`. */
  async receive(id: string): Promise<Receiving> {
    await this.open();
    const folder = join(this.#base, "incoming", `${this.#owner}-${randomUUID()}`);
    let promised = 0;
    return new Receiving({
      id,
      folder,
      maxBytes: this.maxPackageBytes,
      makeRoom: async (bytes) => {
        await this.#makeRoom(bytes);
        promised = bytes;
      },
      settle: async (isComplete) => {
        try {
          if (isComplete) await this.#keep(id, folder);
        } finally {
          this.#promisedBytes -= promised;
          promised = 0;
          await rm(folder, { recursive: true, force: true });
        }
      },
      problem: (error) => this.#problem(error),
    });
  }

  /** Releases everything that this process uses. */
  async close(): Promise<void> {
    clearInterval(this.#renewing);
    for (const [id, users] of this.#users) await this.#count(id, -users);
  }

  async #open(): Promise<void> {
    if (`${this.#base}${sep}`.includes(`${sep}node_modules${sep}`)) {
      throw new RaySystemError(
        `the code cache ${this.#options.directory} is in a node_modules folder, where Node runs no TypeScript`,
      );
    }
    for (const name of [
      "packages",
      "incoming",
      "uses",
      "evicting",
      join("node_modules", "@rayling"),
    ]) {
      await mkdir(join(this.#base, name), { recursive: true, mode: 0o700 });
    }
    // Above this file, Node no longer looks for the type of a module.
    await writeFile(join(this.#base, "package.json"), "{}\n");
    for (const [name, folder] of this.runtime) {
      await symlink(folder, join(this.#base, "node_modules", name), "junction").catch(ifThere);
    }
    // Other agents may clean up at the same time.
    for (const kind of ["incoming", "uses", "evicting"]) {
      for (const name of await readdir(join(this.#base, kind))) {
        const path = join(this.#base, kind, name);
        if (await isOver(path)) await rm(path, { recursive: true, force: true });
      }
    }
    this.#renewing = setInterval(() => this.#renew(), markMs.renewed).unref();
  }

  #renew(): void {
    const now = new Date();
    for (const id of this.#users.keys()) {
      // A mark that is gone meanwhile belongs to nobody.
      utimes(this.#mark("uses", id), now, now).catch(() => undefined);
    }
  }

  /**
   * Waits for the end of an eviction. Rejects when the evicting process is alive and makes no
   * progress.
   */
  async #untilEvicted(id: string): Promise<void> {
    for (;;) {
      const mark = await this.#markOf("evicting", id, markMs.evicting);
      if (mark === undefined) return;
      const age = await ageMs(mark);
      if (age > markMs.evicting && age < Infinity) {
        throw new RaySystemError(
          `code ${shortCode(id)} is marked for removal for over ${markMs.evicting / 1000} s: if no agent is removing it, delete ${mark}`,
        );
      }
      await delay(lookMs);
    }
  }

  async #isWhole(id: string): Promise<boolean> {
    if (!existsSync(this.#list(id))) {
      this.#checked.delete(id);
      return false;
    }
    let checked = this.#checked.get(id);
    if (checked === undefined) {
      checked = this.#check(id);
      this.#checked.set(id, checked);
    }
    if (await checked) return true;
    this.#checked.delete(id);
    return false;
  }

  async #check(id: string): Promise<boolean> {
    try {
      const list: unknown = JSON.parse(await readFile(this.#list(id), "utf8"));
      const manifest = checkManifest(list, Infinity);
      if ((await idOfFolder(manifest, this.#files(id))) === id) return true;
    } catch (error) {
      this.#options.tell(`code ${shortCode(id)} cannot be read: ${(error as Error).message}`);
    }
    this.#options.tell(`code ${shortCode(id)} was changed on the disk and is removed`);
    await this.#remove(id);
    return false;
  }

  async #keep(id: string, folder: string): Promise<void> {
    await this.#count(id, 1);
    try {
      await rename(folder, this.#place(id));
    } catch (error) {
      // Another driver sent an equal package first.
      if (!existsSync(this.#list(id))) {
        await this.release(id);
        throw error;
      }
    }
    this.#checked.set(id, Promise.resolve(true));
  }

  /**
   * Counts users. The mark exists while there are users; writes and removals of it run in order. A
   * use fails if it cannot be marked.
   */
  async #count(id: string, more: number): Promise<void> {
    this.#add(id, more);
    const path = this.#mark("uses", id);
    const marked = this.#marking.then(() =>
      this.#users.has(id) ? writeFile(path, "") : rm(path, { force: true }),
    );
    this.#marking = marked.catch(() => undefined);
    try {
      await marked;
    } catch (error) {
      if (more > 0) this.#add(id, -more);
      throw this.#problem(error as Error);
    }
  }

  #add(id: string, more: number): void {
    const users = (this.#users.get(id) ?? 0) + more;
    if (users > 0) this.#users.set(id, users);
    else this.#users.delete(id);
  }

  /** Reservations run one after the other, so that no room is given away twice. */
  #makeRoom(bytes: number): Promise<void> {
    const made = this.#turn.then(async () => {
      await this.#evictFor(bytes);
      this.#promisedBytes += bytes;
    });
    this.#turn = made.catch(() => undefined);
    return made;
  }

  async #evictFor(bytes: number): Promise<void> {
    const { maxBytes, directory } = this.#options;
    const packages = await this.#packages();
    let kept = packages.reduce((sum, one) => sum + one.bytes, this.#promisedBytes);
    for (const one of packages) {
      if (kept + bytes <= maxBytes) return;
      if (!(await this.#removeUnused(one.id))) continue;
      this.#options.tell(`code ${shortCode(one.id)} (${one.bytes} bytes) made room`);
      kept -= one.bytes;
    }
    if (kept + bytes <= maxBytes) return;
    throw new RaySystemError(
      `the code cache ${directory} is full: running drivers use ${kept} bytes of ${maxBytes}, and ${bytes} more are needed`,
    );
  }

  /** Returns the packages, the least recently used first. */
  async #packages(): Promise<{ id: string; bytes: number; usedMs: number }[]> {
    const found: { id: string; bytes: number; usedMs: number }[] = [];
    for (const id of await readdir(join(this.#base, "packages"))) {
      if (!isId(id)) continue;
      try {
        const { mtimeMs } = await stat(this.#list(id));
        const bytes = Number(await readFile(join(this.#place(id), "bytes"), "utf8"));
        found.push({ id, bytes, usedMs: mtimeMs });
      } catch (error) {
        // Another process removed it meanwhile.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
    return found.toSorted((one, other) => one.usedMs - other.usedMs);
  }

  /** Removes a package that is not in use. Returns whether it is gone. */
  async #removeUnused(id: string): Promise<boolean> {
    const mark = this.#mark("evicting", id);
    await writeFile(mark, "");
    let away: string;
    try {
      if (this.#users.has(id) || (await this.#markOf("uses", id, markMs.old)) !== undefined)
        return false;
      away = await this.#takeAway(id);
    } finally {
      await rm(mark, { force: true });
    }
    await rm(away, { recursive: true, force: true });
    return true;
  }

  async #remove(id: string): Promise<void> {
    await rm(await this.#takeAway(id), { recursive: true, force: true });
  }

  /** Moves a package out of the cache atomically. Returns its new place. */
  async #takeAway(id: string): Promise<string> {
    this.#checked.delete(id);
    const away = join(this.#base, "incoming", `${this.#owner}-${randomUUID()}`);
    await rename(this.#place(id), away).catch(ifGone);
    return away;
  }

  /** Returns a mark of that kind by a living process, if there is one. */
  async #markOf(kind: "uses" | "evicting", id: string, oldMs: number): Promise<string | undefined> {
    const folder = join(this.#base, kind);
    for (const name of await readdir(folder)) {
      const path = join(folder, name);
      if (name.startsWith(`${id}.`) && !(await isOver(path, oldMs))) return path;
    }
    return undefined;
  }

  #mark(kind: "uses" | "evicting", id: string): string {
    return join(this.#base, kind, `${id}.${this.#owner}`);
  }

  /** Records the time of use, for evictions. */
  async #touch(id: string): Promise<void> {
    const now = new Date();
    await utimes(this.#list(id), now, now).catch(ifGone);
  }

  #problem(error: NodeJS.ErrnoException): RaySystemError {
    if (error instanceof RaySystemError) return error;
    const why = error.code === "ENOSPC" ? "there is no space left on its disk" : error.message;
    const message = `the code cache ${this.#options.directory} cannot be written: ${why}`;
    return new RaySystemError(message, { cause: error });
  }

  #place(id: string): string {
    return join(this.#base, "packages", id);
  }

  #files(id: string): string {
    return join(this.#place(id), "files");
  }

  #list(id: string): string {
    return join(this.#place(id), "manifest.json");
  }
}

/** Returns enough of an id for people. */
export function shortCode(id: string): string {
  return id.slice(0, 12);
}

export function isId(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}

/**
 * Whether the process that left a file has ended; the file is named `<owner>-…` or `<id>.<owner>`.
 *
 * @param oldMs the age, in ms, at which a file counts as left if this machine cannot tell
 */
async function isOver(path: string, oldMs: number = markMs.old): Promise<boolean> {
  const owner = basename(path).split(".").at(-1) ?? "";
  const [pid, where] = owner.split("-");
  if (where !== here) {
    return (await ageMs(path)) > oldMs;
  }
  if (Number(pid) === process.pid) return !owner.startsWith(thisProcess);
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
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

function ifThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

function ifGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
