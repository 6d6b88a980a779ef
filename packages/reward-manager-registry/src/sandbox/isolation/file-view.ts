/**
 * The files of the machine that a program with a root of its own sees: those that any program
 * needs, and those of its language. All of them are read-only. Nothing of `/etc`, `/home`, `/root`,
 * `/run`, `/tmp` or `/var` is visible unless it is named here.
 */

import { lstat, readlink, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";

export type ViewEntry =
  | { readonly kind: "folder" | "file"; readonly path: string }
  | { readonly kind: "link"; readonly path: string; readonly target: string };

/**
 * Programs, libraries, the loader's and libraries' configuration, time zones; packages of Nix and
 * Guix.
 */
const ofEveryProgram = `/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store
  /etc/ld.so.cache /etc/alternatives /etc/localtime /sys/devices/system/cpu`.split(/\s+/);

/** Returns the entries in the order in which they can be mounted. Missing paths are left out. */
export async function fileView(ofLanguage: readonly string[]): Promise<readonly ViewEntry[]> {
  const entries: ViewEntry[] = [];
  const real = await Promise.all(ofLanguage.map((path) => realpath(path).catch(() => path)));
  const wanted = [...ofEveryProgram, ...ofLanguage, ...real].filter((path) => path !== "/");
  const paths = [...new Set(wanted)].toSorted(byDepth);
  for (const path of paths) {
    // oxlint-disable-next-line no-await-in-loop -- what lies within an earlier one is left out
    const entry = await entryOf(path);
    if (entry !== undefined && !isWithin(path, entries)) entries.push(entry);
  }
  return entries;
}

/** Returns the folders that contain `entries`, outermost first. */
export function foldersAround(entries: readonly ViewEntry[]): readonly string[] {
  const folders = new Set<string>();
  for (const { path } of entries) {
    for (let at = dirname(path); at !== "/"; at = dirname(at)) folders.add(at);
  }
  return [...folders].toSorted(byDepth);
}

async function entryOf(path: string): Promise<ViewEntry | undefined> {
  try {
    // Links of the root stay links (/bin -> usr/bin); any other link becomes its target.
    if (dirname(path) === "/" && (await lstat(path)).isSymbolicLink()) {
      return { kind: "link", path, target: await readlink(path) };
    }
    return { kind: (await stat(path)).isDirectory() ? "folder" : "file", path };
  } catch {
    return undefined;
  }
}

function isWithin(path: string, entries: readonly ViewEntry[]): boolean {
  return entries.some((one) => one.kind !== "file" && path.startsWith(`${one.path}/`));
}

function byDepth(a: string, b: string): number {
  return a.split("/").length - b.split("/").length || (a < b ? -1 : 1);
}
