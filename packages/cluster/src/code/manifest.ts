/**
 * The content of a code package, and its strict check: an agent writes no file of a package that
 * fails it.
 *
 * Paths are relative, in forward slashes, and contain no "." or "..". A link leads to a file or
 * folder of the package by a path without links, so that no read or write through it leaves the
 * package. No entry lies below a file or a link.
 */
import { posix } from "node:path";
import { RaySystemError } from "@rayling/core/cluster";

export interface Manifest {
  /**
   * Path, bytes, and 1 for an executable. The entries are sorted by path, and their contents follow
   * in that order.
   */
  readonly files: readonly (readonly [path: string, size: number, executable: 0 | 1])[];
  /** Path, and its target relative to that place. */
  readonly links: readonly (readonly [path: string, target: string])[];
}

/** The size of a list of 150,000 files, in bytes; some hundred files are typical. */
export const maxManifestBytes: number = 16 * 1024 * 1024;

/** File systems accept more; checks of longer paths take time and memory. */
const maxPathBytes = 1024;
const maxNameBytes = 255;
const maxDepth = 64;
const maxFolders = 100_000;

/** A malformed package. */
export class BadPackageError extends RaySystemError {
  constructor(message: string, options?: ErrorOptions) {
    super(`a package of code cannot be used: ${message}`, options);
  }
}

export function bytesOf({ files }: Manifest): number {
  return files.reduce((sum, [, size]) => sum + size, 0);
}

/** @throws BadPackageError for anything but a manifest of at most `maxBytes` */
export function checkManifest(value: unknown, maxBytes: number): Manifest {
  const { files, links, ...more }: { readonly files?: unknown; readonly links?: unknown } =
    value ?? {};
  if (!Array.isArray(files) || !Array.isArray(links) || Object.keys(more).length > 0) {
    throw new BadPackageError("its list must have files and links, and nothing else");
  }
  for (const entry of files) checkFile(entry);
  for (const entry of links) checkLink(entry);
  const manifest: Manifest = { files, links };
  const bytes = bytesOf(manifest);
  if (bytes > maxBytes) {
    throw new BadPackageError(`it has ${bytes} bytes, and at most ${maxBytes} are allowed`);
  }
  checkPlaces(manifest);
  return manifest;
}

/** @throws BadPackageError */
export function checkPath(path: unknown): asserts path is string {
  const problem = problemOfPath(path);
  if (problem !== undefined) {
    throw new BadPackageError(`the path ${JSON.stringify(path)?.slice(0, 200)} ${problem}`);
  }
}

function problemOfPath(path: unknown): string | undefined {
  if (typeof path !== "string" || path === "") return "is no path";
  if (Buffer.byteLength(path) > maxPathBytes) return "is too long";
  if (path.includes("\0") || path.includes("\\")) return "has a character that is not allowed";
  if (process.platform === "win32" && /[<>:"|?*]/.test(path))
    return "is not possible on this system";
  if (path.startsWith("/")) return "is absolute";
  const names = path.split("/");
  if (names.length > maxDepth) return "is too deep";
  for (const name of names) {
    if (name === "" || name === "." || name === "..") return "is not in its plain form";
    if (Buffer.byteLength(name) > maxNameBytes) return "has a name that is too long";
  }
  return undefined;
}

function checkFile(entry: unknown): void {
  const [path, size, executable, ...more]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  checkPath(path);
  const isSize = typeof size === "number" && Number.isSafeInteger(size) && size >= 0;
  if (!isSize || (executable !== 0 && executable !== 1) || more.length > 0) {
    throw new BadPackageError(`the entry of ${path} is not path, size and mode`);
  }
}

function checkLink(entry: unknown): void {
  const [path, target, ...more]: readonly unknown[] = Array.isArray(entry) ? entry : [];
  checkPath(path);
  if (typeof target !== "string" || more.length > 0) {
    throw new BadPackageError(`the entry of the link ${path} is not path and target`);
  }
}

function checkPlaces({ files, links }: Manifest): void {
  const ends = new Set<string>();
  for (const [path] of [...files, ...links]) {
    if (ends.has(path)) throw new BadPackageError(`${path} is there twice`);
    ends.add(path);
  }
  const folders = new Set<string>();
  for (const path of ends) {
    for (const folder of foldersOf(path)) {
      if (ends.has(folder))
        throw new BadPackageError(`${path} lies below ${folder}, which is no folder`);
      folders.add(folder);
    }
    if (folders.size > maxFolders) throw new BadPackageError(`it has over ${maxFolders} folders`);
  }
  const targets = new Set([...files.map(([path]) => path), ...folders]);
  for (const [path, target] of links) {
    const leadsTo = posix.join(posix.dirname(path), target);
    const isPlain = posix.normalize(target) === target && !posix.isAbsolute(target);
    if (!isPlain || !targets.has(leadsTo)) {
      throw new BadPackageError(`the link ${path} leads to ${target}, which is not in the package`);
    }
  }
}

/** Returns the folders that contain a path, without the root. */
export function foldersOf(path: string): string[] {
  const names = path.split("/").slice(0, -1);
  return names.map((_, index) => names.slice(0, index + 1).join("/"));
}
