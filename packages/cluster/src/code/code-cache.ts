/**
 * Packages of code on an agent's disk, by what they are known by. A package comes into its place complete, checked and at once (rename), and is taken away as a whole,
 * the one unused for longest first, when others need its room; never one that somebody uses.
 *
 *     <directory>/<runtime>/node_modules/...    links to rayling's own packages, which all code below finds as the last place that Node looks in
 *                          /packages/<id>/      manifest.json (the list, whose time is that of the last use), files/
 *                          /incoming/           what is being received; removed if it is not finished
 *                          /uses/<id>.<owner>   who uses what: several agents of a machine may share a directory
 *
 * A package that was there before this process is read once and compared with its name before it is used.
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
import { RaySystemError } from "@rayling/core/cluster";
import { checkManifest } from "./manifest.ts";
import { Receiving } from "./receiving.ts";
import { runtimePackagesHere } from "./runtime-packages.ts";
import { idOfFolder } from "./stream.ts";

export interface CodeCacheOptions {
  readonly directory: string;
  /** Bytes of files that are kept. */
  readonly maxBytes: number;
  /** Bytes of files in one package. */
  readonly maxPackageBytes: number;
  /** Called with each line worth telling. */
  readonly tell: (line: string) => void;
}

/** Tells this process from others, and from earlier ones with its number. */
const owner = `${process.pid}-${randomUUID().slice(0, 8)}`;

export class CodeCache {
  readonly maxPackageBytes: number;
  /** rayling's own packages on this machine: their folders, by name. */
  readonly runtime: ReadonlyMap<string, string> = runtimePackagesHere();
  readonly #options: CodeCacheOptions;
  readonly #base: string;
  readonly #users: Map<string, number> = new Map();
  readonly #checked: Map<string, Promise<boolean>> = new Map();
  #opened: Promise<void> | undefined;
  /** Of packages that are on their way. */
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

  /** Where code that is kept here finds rayling's own packages: the links to them, and what they lead to. */
  get runtimeFolders(): readonly string[] {
    return [join(this.#base, "node_modules"), ...this.runtime.values()];
  }

  /** Makes its folders and removes what was left unfinished. Rejects with RaySystemError when the directory cannot be used. */
  open(): Promise<void> {
    this.#opened ??= this.#open().catch((error: Error) => {
      this.#opened = undefined;
      throw error instanceof RaySystemError ? error : this.#problem(error);
    });
    return this.#opened;
  }

  /** The folder of the package's files, which is kept until `release`; undefined when it is not here. */
  async use(id: string): Promise<string | undefined> {
    await this.open();
    // First the mark, then the look: whoever makes room does it the other way round.
    await this.#count(id, 1);
    if (await this.#isWhole(id)) {
      await this.#touch(id);
      return this.#files(id);
    }
    await this.release(id);
    return undefined;
  }

  async release(id: string): Promise<void> {
    await this.#count(id, -1);
  }

  /** Takes a package in. It is used by whoever sent it when `end` has resolved, until `release`. */
  async receive(id: string): Promise<Receiving> {
    await this.open();
    const folder = join(this.#base, "incoming", `${owner}-${randomUUID()}`);
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

  /** Nothing of it is used by this process any more. */
  async close(): Promise<void> {
    for (const [id, users] of this.#users) await this.#count(id, -users);
  }

  async #open(): Promise<void> {
    if (`${this.#base}${sep}`.includes(`${sep}node_modules${sep}`)) {
      throw new RaySystemError(
        `the code cache ${this.#options.directory} is in a node_modules folder, where Node runs no TypeScript`,
      );
    }
    for (const name of ["packages", "incoming", "uses", join("node_modules", "@rayling")]) {
      await mkdir(join(this.#base, name), { recursive: true, mode: 0o700 });
    }
    // Above it, Node looks for no kind of module any more.
    await writeFile(join(this.#base, "package.json"), "{}\n");
    for (const [name, folder] of this.runtime) {
      await symlink(folder, join(this.#base, "node_modules", name), "junction").catch(ifThere);
    }
    for (const name of await readdir(join(this.#base, "incoming"))) {
      if (isOver(name)) await rm(join(this.#base, "incoming", name), { recursive: true });
    }
    for (const name of await readdir(join(this.#base, "uses"))) {
      if (isOver(name.split(".")[1] ?? "")) await rm(join(this.#base, "uses", name));
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
      // Another driver was quicker with the same.
      if (!existsSync(this.#list(id))) {
        await this.release(id);
        throw error;
      }
    }
    this.#checked.set(id, Promise.resolve(true));
  }

  /** The mark is there while there are users: it is written and removed in turn. */
  #count(id: string, more: number): Promise<void> {
    const users = (this.#users.get(id) ?? 0) + more;
    if (users > 0) this.#users.set(id, users);
    else this.#users.delete(id);
    const path = join(this.#base, "uses", `${id}.${owner}`);
    const marked = this.#marking.then(() =>
      this.#users.has(id) ? writeFile(path, "") : rm(path, { force: true }),
    );
    this.#marking = marked.catch(() => undefined);
    return marked;
  }

  /** One after the other, so that nothing is given away twice. */
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
      if (await this.#isUsed(one.id)) continue;
      await this.#remove(one.id);
      this.#options.tell(`code ${shortCode(one.id)} (${one.bytes} bytes) made room`);
      kept -= one.bytes;
    }
    if (kept + bytes <= maxBytes) return;
    throw new RaySystemError(
      `the code cache ${directory} is full: running drivers use ${kept} bytes of ${maxBytes}, and ${bytes} more are needed`,
    );
  }

  /** The one unused for longest first. */
  async #packages(): Promise<{ id: string; bytes: number; usedMs: number }[]> {
    const found: { id: string; bytes: number; usedMs: number }[] = [];
    for (const id of await readdir(join(this.#base, "packages"))) {
      try {
        const { mtimeMs } = await stat(this.#list(id));
        const bytes = Number(await readFile(join(this.#place(id), "bytes"), "utf8"));
        found.push({ id, bytes, usedMs: mtimeMs });
      } catch (error) {
        // Somebody else removed it meanwhile.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
      }
    }
    return found.toSorted((one, other) => one.usedMs - other.usedMs);
  }

  async #isUsed(id: string): Promise<boolean> {
    if (this.#users.has(id)) return true;
    const names = await readdir(join(this.#base, "uses"));
    return names.some((name) => {
      const [used, by] = name.split(".");
      return used === id && !isOver(by ?? "");
    });
  }

  async #remove(id: string): Promise<void> {
    this.#checked.delete(id);
    const away = join(this.#base, "incoming", `${owner}-${randomUUID()}`);
    await rename(this.#place(id), away).catch(ifGone);
    await rm(away, { recursive: true, force: true });
  }

  /** Notes the time, for who asks what was unused for longest. */
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

/** Enough of it for people. */
export function shortCode(id: string): string {
  return id.slice(0, 12);
}

/** Whether the process of that owner has ended. */
function isOver(name: string): boolean {
  const pid = Number(name.split("-")[0]);
  if (pid === process.pid) return !name.startsWith(owner);
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

function ifThere(error: NodeJS.ErrnoException): void {
  if (error.code !== "EEXIST") throw error;
}

function ifGone(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
