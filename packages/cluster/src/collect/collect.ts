/**
 * The code of a `runtimeEnv.workingDir`: a list of files and links, with the facts that precede
 * their transfer.
 *
 * Files go as files, with their paths relative to each other, and run as at the driver: Node strips
 * their types, finds their imports and packages and reads the files beside them, and a stack names
 * the user's lines. A bundle would be smaller, but another program: other modules (a class is known
 * by its module and its place there), another `import.meta.url`, lines that need a source map, no
 * packages that read files of their own.
 *
 * A search through folders takes as long as the disk needs, so a thread of its own does it
 * (collect/thread.ts) and the driver goes on.
 */
import { realpathSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { RaySystemError } from "@rayling/core/cluster";
import type { Manifest } from "../code/manifest.ts";
import { runtimePackageOf } from "../code/runtime-packages.ts";
import { targetOf } from "./addons.ts";
import { addFolder, excludesIn } from "./folder.ts";
import { folderUrl, Listing } from "./listing.ts";
import { addModules } from "./module-graph.ts";
import { NpmPackages } from "./npm-packages.ts";

export interface CollectRequest {
  /** A folder, or true for only the files that the modules reach. */
  readonly workingDir: string | true;
  readonly excludes: readonly string[];
  /** URLs of the modules that hosts will import. */
  readonly modules: readonly string[];
  /** The current directory of the driver. */
  readonly currentDirectory: string;
}

export interface Collected {
  /** The folder that the paths of the list are relative to. */
  readonly root: string;
  readonly rootUrl: string;
  readonly manifest: Manifest;
  /** The working directory of hosts, relative to the root; "" is the root. */
  readonly directory: string;
  /** rayling's own packages with modules that hosts import: their names and their folders here. */
  readonly runtime: Readonly<Record<string, string>>;
  readonly addons: readonly Addon[];
}

/**
 * An npm package with native code: the machines that it has files for, by the names of
 * `process.platform` and `process.arch`.
 */
export interface Addon {
  readonly name: string;
  readonly targets: readonly string[];
}

/** Rejects with a RaySystemError that says what is wrong with the folder. */
export async function collect({
  workingDir,
  excludes,
  modules,
  currentDirectory,
}: CollectRequest): Promise<Collected> {
  const folder = workingDir === true ? undefined : realFolder(workingDir);
  const excluded = excludesIn(folder ?? currentDirectory, excludes);
  const listing = new Listing(excluded);
  const packages = new NpmPackages(listing);
  const files = modules.filter((url) => url.startsWith("file:")).map((url) => fileOf(url));
  const own = files.filter((file) => file !== undefined);
  if (folder !== undefined) {
    addFolder(folder, listing, excluded);
    packages.addDependencies(folder);
  }
  await addModules(own, listing, packages);
  const { root, manifest } = listing.finish();
  return {
    root,
    rootUrl: folderUrl(root),
    manifest,
    directory: inside(root, folder ?? currentDirectory),
    runtime: runtimeOf(own),
    addons: packages.all
      .filter(({ addons, isRequired }) => addons.length > 0 && isRequired)
      .map(({ name, addons }) => ({
        name,
        targets: addons.map(targetOf).filter((target) => target !== undefined),
      }))
      .filter(({ targets }) => targets.length > 0),
  };
}

/** Returns the relative path; "" for a folder outside of the root. */
function inside(root: string, folder: string): string {
  const path = relative(root, folder).split(sep).join("/");
  return path === ".." || path.startsWith("../") ? "" : path;
}

function realFolder(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new RaySystemError(`the folder ${path} does not exist`, { cause: error });
  }
}

/**
 * Returns the real path, by which modules are known. A module that was removed meanwhile is
 * reported by its importer.
 */
function fileOf(url: string): string | undefined {
  try {
    return realpathSync(fileURLToPath(url));
  } catch {
    return undefined;
  }
}

function runtimeOf(files: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {};
  for (const file of files) {
    const own = runtimePackageOf(file);
    if (own !== undefined) found[own.name] = folderUrl(own.folder);
  }
  return found;
}

/** Returns whether a host with the code can import a module. */
export function modulesIn({ root, runtime, manifest }: Collected): (moduleUrl: string) => boolean {
  const files = new Set(manifest.files.map(([path]) => join(root, path)));
  const own = Object.values(runtime);
  return (moduleUrl) =>
    own.some((url) => moduleUrl.startsWith(url)) ||
    (moduleUrl.startsWith("file:") && files.has(fileURLToPath(moduleUrl)));
}
