/**
 * The files of a package while they are collected, by their real paths on the driver's disk, and
 * the resulting package. Its root is the deepest folder that contains all of them, and the folders
 * `node_modules` that they are in, so each keeps its relative place and every import finds what it
 * found here.
 */
import { realpathSync, statSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { pathToFileURL } from "node:url";
import { RaySystemError } from "@rayling/core/cluster";
import { foldersOf, type Manifest } from "../code/manifest.ts";

/** Says which paths are left out. */
export type Excludes = (path: string, isFolder?: boolean) => boolean;

export class Listing {
  readonly #excludes: Excludes;
  readonly #files: Set<string> = new Set();
  readonly #links: Map<string, string> = new Map();

  constructor(excludes: Excludes) {
    this.#excludes = excludes;
  }

  /** @param path of a file, without links in it */
  addFile(path: string): void {
    if (!this.#excludes(path)) this.#files.add(path);
  }

  hasFile(path: string): boolean {
    return this.#files.has(path);
  }

  /** Records that `path` links to `real`. */
  addLink(path: string, real: string): void {
    if (path !== real && !this.#excludes(path)) this.#links.set(path, real);
  }

  /** @throws RaySystemError when a file has disappeared, or there is none */
  finish(): Listed {
    const paths = [...this.#files].toSorted();
    if (paths.length === 0) throw new RaySystemError("there is no file in it");
    const root = aboveModules(commonFolder([...paths, ...this.#links.keys()]));
    const inside = (path: string): string => relative(root, path).split(sep).join("/");
    const files = paths.map((path): Manifest["files"][number] => {
      const stat = statSync(path, { throwIfNoEntry: false });
      if (stat === undefined) throw new RaySystemError(`${path} was removed meanwhile`);
      return [inside(path), stat.size, (stat.mode & 0o100) === 0 ? 0 : 1];
    });
    const places = new Set(files.flatMap(([path]) => [path, ...foldersOf(path)]));
    // A link stays behind with its target.
    const links = [...this.#links]
      .filter(([, real]) => places.has(inside(real)))
      .map(([path, real]): Manifest["links"][number] => [
        inside(path),
        relative(dirname(path), real).split(sep).join("/"),
      ])
      .toSorted(([one], [other]) => (one < other ? -1 : 1));
    return { root, manifest: { files, links } };
  }
}

export interface Listed {
  /** The folder that all paths are relative to. */
  readonly root: string;
  readonly manifest: Manifest;
}

function commonFolder(paths: readonly string[]): string {
  let common = dirname(paths[0] ?? "");
  for (const path of paths) {
    while (!path.startsWith(withEnd(common))) {
      if (dirname(common) === common) {
        throw new RaySystemError(`${path} and ${paths[0]} are on different drives`);
      }
      common = dirname(common);
    }
  }
  return common;
}

/** Packages find each other by the name of the folder that npm put them in. */
function aboveModules(folder: string): string {
  const parts = folder.split(sep);
  const last = parts.lastIndexOf("node_modules");
  return last < 0 ? folder : parts.slice(0, last).join(sep) || sep;
}

function withEnd(folder: string): string {
  return folder.endsWith(sep) ? folder : folder + sep;
}

export function folderUrl(folder: string): string {
  return pathToFileURL(withEnd(folder)).href;
}

/** Returns undefined when the path does not exist. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // A missing path and a dangling link are equal to the caller.
    return undefined;
  }
}

/** Whether the path belongs to an installed package, in which Node strips no types. */
export function isInstalled(path: string): boolean {
  return path.includes(`${sep}node_modules${sep}`);
}

/** Returns the nearest folder at or above the file's that has a package.json. */
export function packageFolderOf(file: string): string | undefined {
  for (let at = dirname(file); ; at = dirname(at)) {
    const isFile = statSync(join(at, "package.json"), { throwIfNoEntry: false })?.isFile();
    if (isFile === true) return at;
    if (dirname(at) === at) return undefined;
  }
}
