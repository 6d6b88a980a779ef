/**
 * All files of a folder except those that no other machine needs: `.git`, `node_modules` at any
 * depth, and the files that `.gitignore` files name.
 */
import { type Dirent, existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, sep } from "node:path";
import ignore, { type Ignore } from "ignore";
import { RaySystemError } from "@rayling/core/cluster";
import { type Excludes, type Listing, realPathOf } from "./listing.ts";

const never: ReadonlySet<string> = new Set([".git", "node_modules"]);

/** @param patterns in the language of .gitignore, relative to `folder` */
export function excludesIn(folder: string, patterns: readonly string[]): Excludes {
  if (patterns.length === 0) return () => false;
  return matcher(folder, ignore().add([...patterns]));
}

/** Matches nothing outside of the folder. */
function matcher(folder: string, rules: Ignore): Excludes {
  const verdict = verdicts(folder, rules);
  return (path, isFolder = false) => verdict(path, isFolder) === true;
}

/** Whether the rules of a folder ignore a path, or take it back (false), if they name it. */
type Verdict = (path: string, isFolder: boolean) => boolean | undefined;

function verdicts(folder: string, rules: Ignore): Verdict {
  return (path, isFolder) => {
    const inside = relative(folder, path).split(sep).join("/");
    if (inside === "" || inside === ".." || inside.startsWith("../")) return undefined;
    const { ignored, unignored } = rules.test(isFolder ? `${inside}/` : inside);
    return ignored || unignored ? ignored : undefined;
  };
}

/** As git does it: the innermost rules that name a path decide. */
function isIgnored(rules: readonly Verdict[], path: string, isFolder: boolean): boolean {
  for (const verdict of rules.toReversed()) {
    const ignored = verdict(path, isFolder);
    if (ignored !== undefined) return ignored;
  }
  return false;
}

/**
 * @param folder its real path
 * @param excludes folders and files to skip
 * @throws RaySystemError for a link that leaves the folder
 */
export function addFolder(folder: string, listing: Listing, excludes: Excludes): void {
  const visit = (at: string, outer: readonly Verdict[]): void => {
    const own = join(at, ".gitignore");
    const rules = existsSync(own)
      ? [...outer, verdicts(at, ignore().add(readFileSync(own, "utf8")))]
      : outer;
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      const path = join(at, entry.name);
      const isFolder = entry.isDirectory();
      if (never.has(entry.name) || excludes(path, isFolder)) continue;
      if (isIgnored(rules, path, isFolder)) continue;
      if (isFolder) visit(path, rules);
      else addEntry(entry, path, folder, listing);
    }
  };
  visit(folder, []);
}

/** Sockets, pipes and devices are no code. */
function addEntry(entry: Dirent, path: string, folder: string, listing: Listing): void {
  if (entry.isFile()) return listing.addFile(path);
  if (!entry.isSymbolicLink()) return;
  const real = realPathOf(path);
  if (real === undefined) return;
  if (!`${real}${sep}`.startsWith(`${folder}${sep}`)) {
    throw new RaySystemError(
      `the link ${path} leads out of the folder, to ${real}; exclude it, or replace it by its target`,
    );
  }
  listing.addLink(path, real);
}
