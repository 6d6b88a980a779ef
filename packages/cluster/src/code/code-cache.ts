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
 * Whether a package on the disk may be used: kept-packages.ts.
 */
import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
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
import { join, resolve, sep } from "node:path";
import { asError, codeOf, RaySystemError } from "@rayling/core/cluster";
import { CacheFolders, shortCode } from "./cache-folders.ts";
import { CacheMarks, isOver } from "./cache-marks.ts";
import { KeptPackages } from "./kept-packages.ts";
import { Receiving } from "./receiving.ts";
import { runtimePackagesHere } from "./runtime-packages.ts";

export interface CodeCacheOptions {
  readonly directory: string;
  /** The most bytes of files in the cache. */
  readonly maxBytes: number;
  /** The most bytes of files in one package. */
  readonly maxPackageBytes: number;
  /** Called with each line for the operator. */
  readonly tell: (line: string) => void;
}

const folderNames = ["packages", "incoming", "uses", "evicting"] as const;

export class CodeCache {
  readonly maxPackageBytes: number;
  /** rayling's own packages on this machine: their folders, by name. */
  readonly runtime: ReadonlyMap<string, string> = runtimePackagesHere();
  readonly #options: CodeCacheOptions;
  readonly #folders: CacheFolders;
  readonly #marks: CacheMarks;
  readonly #kept: KeptPackages;
  #opened: Promise<void> | undefined;
  #isOpen = false;
  /** The bytes of packages in transfer. */
  #promisedBytes = 0;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: CodeCacheOptions) {
    this.#options = options;
    this.maxPackageBytes = Math.min(options.maxPackageBytes, options.maxBytes);
    const runtime = [...this.runtime].toSorted(([one], [other]) => (one < other ? -1 : 1));
    const name = createHash("sha256").update(JSON.stringify(runtime)).digest("hex").slice(0, 16);
    this.#folders = new CacheFolders(join(resolve(options.directory), name));
    this.#marks = new CacheMarks(this.#folders);
    this.#kept = new KeptPackages({
      folders: this.#folders,
      marks: this.#marks,
      tell: options.tell,
      remove: (id) => this.#remove(id),
    });
  }

  /**
   * The places where cached code finds rayling's own packages: the links to them, and the targets
   * of these.
   */
  get runtimeFolders(): readonly string[] {
    return [join(this.#folders.base, "node_modules"), ...this.runtime.values()];
  }

  /**
   * Makes its folders, again where somebody has removed them, and removes unfinished packages.
   * Rejects with RaySystemError when the directory cannot be used.
   */
  open(): Promise<void> {
    if (this.#isOpen && !isWhole(this.#folders.base, this.runtime.keys())) {
      this.#options.tell(
        `the code cache ${this.#options.directory} was cleared, and is made again`,
      );
      this.#isOpen = false;
      this.#opened = undefined;
    }
    this.#opened ??= this.#open().then(
      () => void (this.#isOpen = true),
      (error: Error) => {
        this.#opened = undefined;
        throw error instanceof RaySystemError ? error : this.#problem(error);
      },
    );
    return this.#opened;
  }

  /**
   * Whether everything is in its place that a host with that package needs. Reads no file: a host
   * starts sooner than a package is read.
   */
  has(id: string): boolean {
    return this.#kept.has(id) && isWhole(this.#folders.base, this.runtime.keys());
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
      await this.#marks.untilEvicted(id);
      if (await this.#kept.isWhole(id)) {
        await this.#touch(id);
        return this.#folders.files(id);
      }
    } catch (error) {
      await this.release(id);
      throw this.#problem(error);
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
    const folder = join(this.#folders.folder("incoming"), `${this.#marks.owner}-${randomUUID()}`);
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

  /** Releases everything that this process uses. A failure is only reported. */
  async close(): Promise<void> {
    await this.#marks.close().catch((error: unknown) => {
      this.#options.tell(`code stays marked as in use: ${this.#problem(error).message}`);
    });
  }

  async #open(): Promise<void> {
    if (`${this.#folders.base}${sep}`.includes(`${sep}node_modules${sep}`)) {
      throw new RaySystemError(
        `the code cache ${this.#options.directory} is in a node_modules folder, where Node runs no TypeScript`,
      );
    }
    for (const name of [...folderNames, join("node_modules", "@rayling")]) {
      await mkdir(join(this.#folders.base, name), { recursive: true, mode: 0o700 });
    }
    // Above this file, Node no longer looks for the type of a module.
    await writeFile(join(this.#folders.base, "package.json"), "{}\n");
    for (const [name, folder] of this.runtime) {
      await symlink(folder, join(this.#folders.base, "node_modules", name), "junction").catch(
        ifThere,
      );
    }
    // Other agents may clean up at the same time.
    for (const kind of ["incoming", "uses", "evicting"]) {
      for (const name of await readdir(join(this.#folders.base, kind))) {
        const path = join(this.#folders.base, kind, name);
        if (await isOver(path)) await rm(path, { recursive: true, force: true });
      }
    }
    this.#marks.open();
  }

  /** Counts uses of a package. A use fails if it cannot be marked. */
  async #count(id: string, more: number): Promise<void> {
    await this.#marks.count(id, more).catch((error: unknown) => {
      throw this.#problem(error);
    });
  }

  async #keep(id: string, folder: string): Promise<void> {
    await this.#count(id, 1);
    try {
      await rename(folder, this.#folders.place(id));
    } catch (error) {
      // Another driver sent an equal package first.
      if (!existsSync(this.#folders.list(id))) {
        await this.release(id);
        throw error;
      }
    }
    this.#kept.received(id);
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
    for (const id of await readdir(this.#folders.folder("packages"))) {
      if (!isId(id)) continue;
      try {
        const { mtimeMs } = await stat(this.#folders.list(id));
        const bytes = Number(await readFile(this.#folders.size(id), "utf8"));
        found.push({ id, bytes, usedMs: mtimeMs });
      } catch (error) {
        // Another process removed it meanwhile.
        if (codeOf(error) !== "ENOENT") throw error;
      }
    }
    return found.toSorted((one, other) => one.usedMs - other.usedMs);
  }

  /** Removes a package that is not in use. Returns whether it is gone. */
  async #removeUnused(id: string): Promise<boolean> {
    const mark = this.#marks.mark("evicting", id);
    await writeFile(mark, "");
    let away: string;
    try {
      if (await this.#marks.isUsed(id)) return false;
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
    this.#kept.forget(id);
    const away = join(this.#folders.folder("incoming"), `${this.#marks.owner}-${randomUUID()}`);
    await rename(this.#folders.place(id), away).catch(ifGone);
    return away;
  }

  /** Records the time of use, for evictions. */
  async #touch(id: string): Promise<void> {
    const now = new Date();
    await utimes(this.#folders.list(id), now, now).catch(ifGone);
  }

  #problem(error: unknown): RaySystemError {
    if (error instanceof RaySystemError) return error;
    const isFull = codeOf(error) === "ENOSPC";
    const why = isFull ? "there is no space left on its disk" : asError(error).message;
    const message = `the code cache ${this.#options.directory} cannot be written: ${why}`;
    return new RaySystemError(message, { cause: error });
  }
}

/** Whether a cache has all folders and files that every use needs. */
function isWhole(base: string, packages: Iterable<string>): boolean {
  const links = [...packages].map((name) => join("node_modules", name));
  return [...folderNames, "package.json", ...links].every((name) => existsSync(join(base, name)));
}

export function isId(name: string): boolean {
  return /^[0-9a-f]{64}$/.test(name);
}

function ifThere(error: unknown): void {
  if (codeOf(error) !== "EEXIST") throw error;
}

function ifGone(error: unknown): void {
  if (codeOf(error) !== "ENOENT") throw error;
}
