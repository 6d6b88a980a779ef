/**
 * Whether a package on the disk is what its id says, and nothing more.
 *
 * A package that was there before this process is compared with its id once. Hosts have its folder
 * as their current directory, and may leave files there: whatever is not in the package's list is
 * removed before the first of several users gets the folder, so that it takes part in no import of
 * a later session. While others use the package, what their hosts wrote stays.
 */
import { existsSync } from "node:fs";
import { readdir, readFile, readlink, rm, writeFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { asError } from "@rayling/core/cluster";
import { type CacheFolders, shortCode } from "./cache-folders.ts";
import type { CacheMarks } from "./cache-marks.ts";
import { BadPackageError, checkManifest, foldersOf, type Manifest } from "./manifest.ts";
import { idOfFolder } from "./stream.ts";

export interface KeptPackagesParts {
  readonly folders: CacheFolders;
  readonly marks: CacheMarks;
  /** Called with each line for the operator. */
  readonly tell: (line: string) => void;
  /** Removes a package from the cache. */
  readonly remove: (id: string) => Promise<void>;
}

export class KeptPackages {
  readonly #parts: KeptPackagesParts;
  /** The last check of each package that was checked in this process. */
  readonly #checked: Map<string, Promise<boolean>> = new Map();

  constructor(parts: KeptPackagesParts) {
    this.#parts = parts;
  }

  /** Whether all parts of the package are there. Reads no file. */
  has(id: string): boolean {
    return this.#parts.folders.parts(id).every((path) => existsSync(path));
  }

  /** Records that the package was checked as it came. */
  received(id: string): void {
    this.#checked.set(id, Promise.resolve(true));
  }

  forget(id: string): void {
    this.#checked.delete(id);
  }

  /**
   * Whether the package may be used; one that may not is removed. The caller has marked its use.
   */
  async isWhole(id: string): Promise<boolean> {
    const { folders, marks, remove } = this.#parts;
    const isThere = existsSync(folders.place(id));
    if (!this.has(id)) {
      this.forget(id);
      // A cleaner of old files took a part: the rest would be in the way of the package.
      if (isThere) await remove(id);
      return false;
    }
    let checked = this.#checked.get(id);
    // Later users wait for the check of the first, which runs before any host has the folder.
    if (checked === undefined || marks.usersOf(id) === 1) {
      checked = this.#check(id, checked === undefined);
      this.#checked.set(id, checked);
    }
    if (await checked) return true;
    this.forget(id);
    return false;
  }

  /** @param isNew whether this process has not read the package so far */
  async #check(id: string, isNew: boolean): Promise<boolean> {
    const { folders, tell, remove } = this.#parts;
    try {
      const list: unknown = JSON.parse(await readFile(folders.list(id), "utf8"));
      const manifest = checkManifest(list, Infinity);
      await this.#tidy(id, manifest);
      if (!isNew || (await idOfFolder(manifest, folders.files(id))) === id) return true;
    } catch (error) {
      tell(`code ${shortCode(id)} cannot be read: ${asError(error).message}`);
    }
    tell(`code ${shortCode(id)} was changed on the disk and is removed`);
    await remove(id);
    return false;
  }

  /**
   * Removes what hosts left, if no other agent uses the package. Agents that are about to use it
   * wait for the end, as for that of an eviction.
   */
  async #tidy(id: string, manifest: Manifest): Promise<void> {
    const { folders, marks, tell } = this.#parts;
    const mark = marks.mark("evicting", id);
    await writeFile(mark, "");
    try {
      if (await marks.isUsedElsewhere(id)) return;
      const strays = await removeStrays(manifest, folders.files(id));
      if (strays.length === 0) return;
      const some = strays.slice(0, 3).join(", ") + (strays.length > 3 ? ", …" : "");
      tell(`code ${shortCode(id)}: what hosts left in its folder was removed (${some})`);
    } finally {
      await rm(mark, { force: true });
    }
  }
}

/**
 * Removes what is in the folder of a package and not in its list. Returns the paths.
 *
 * @throws BadPackageError when something of the list is missing, or is of another kind
 */
async function removeStrays(manifest: Manifest, folder: string): Promise<string[]> {
  const listed = new Map<string, "file" | "folder" | { readonly link: string }>();
  for (const [path, target] of manifest.links) listed.set(path, { link: target });
  for (const [path] of manifest.files) listed.set(path, "file");
  for (const [path] of [...manifest.files, ...manifest.links]) {
    for (const above of foldersOf(path)) listed.set(above, "folder");
  }
  const strays: string[] = [];
  let found = 0;
  const visit = async (at: string): Promise<void> => {
    for (const entry of await readdir(join(folder, at), { withFileTypes: true })) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`;
      const place = join(folder, path);
      const kind = listed.get(path);
      if (kind === undefined) {
        strays.push(path);
        await rm(place, { recursive: true, force: true });
        continue;
      }
      const isSame =
        kind === "file"
          ? entry.isFile()
          : kind === "folder"
            ? entry.isDirectory()
            : entry.isSymbolicLink() && (await targetOf(place)) === kind.link;
      if (!isSame) throw new BadPackageError(`${path} was replaced`);
      found++;
      if (kind === "folder") await visit(path);
    }
  };
  await visit("");
  if (found !== listed.size) throw new BadPackageError("some of its files are missing");
  return strays.toSorted();
}

async function targetOf(link: string): Promise<string> {
  return (await readlink(link)).split(sep).join("/");
}
