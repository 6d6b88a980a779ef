/**
 * rayling's own packages as this process has them, with what they depend on: a machine that gets
 * their files runs the very modules that the driver runs.
 *
 * Files keep their places to each other, and links of node_modules stay links. Declarations, source
 * maps and pages to read stay here.
 */
import { readdirSync, readFileSync, realpathSync } from "node:fs";
import { join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { RaySystemError, registeredModules } from "@rayling/core/cluster";
import type { Manifest } from "../code/manifest.ts";
import { isRuntimePackage, runtimePackagesHere } from "../code/runtime-packages.ts";
import { Listing } from "./listing.ts";
import { codeConditions } from "./module-graph.ts";
import { NpmPackages } from "./npm-packages.ts";

/** Files of a runtime, and where its packages lie among them. */
export interface RuntimeListing {
  /** The folder that all paths are relative to. */
  readonly root: string;
  /** The files and links. */
  readonly manifest: Manifest;
  /** Folders of rayling's packages relative to the root, by name. */
  readonly folders: Readonly<Record<string, string>>;
  /** Conditions for `exports` that this process was started with. */
  readonly conditions: readonly string[];
}

interface PackageJson {
  readonly exports?: Readonly<Record<string, unknown>>;
  readonly files?: readonly string[];
  readonly dependencies?: Readonly<Record<string, unknown>>;
  readonly devDependencies?: Readonly<Record<string, unknown>>;
  readonly peerDependencies?: Readonly<Record<string, unknown>>;
}

const unneeded = /\.(?:map|d\.[cm]?ts|md|markdown|tsbuildinfo)$/;

/** @throws RaySystemError when the package `rayling` is not among what the program can reach */
export function listRuntime(): RuntimeListing {
  const conditions = codeConditions();
  const listing = new Listing((path) => unneeded.test(path));
  const packages = new NpmPackages(listing);
  const found = new Map<string, string>();
  const add = (name: string, folder: string): void => {
    if (found.has(name)) return;
    found.set(name, folder);
    const about = packageJsonIn(folder);
    listing.addFile(join(folder, "package.json"));
    const files = foldersOf(about, conditions).flatMap((one) => filesBelow(join(folder, one)));
    for (const file of files) listing.addFile(file);
    const { dependencies = {}, devDependencies = {}, peerDependencies = {} } = about;
    const others = Object.keys(devDependencies).filter((one) => !(one in peerDependencies));
    const inlined = namesIn(files, others);
    for (const needed of [...Object.keys(dependencies), ...inlined]) {
      const there = packages.find(needed, folder);
      if (there === undefined) continue;
      if (isRuntimePackage(needed)) add(needed, there);
      else packages.add(needed, there, true);
    }
  };
  const command = raylingFolder();
  if (command === undefined) {
    throw new RaySystemError(
      "the npm package rayling is not found from here, and other machines start with it: npm install rayling",
    );
  }
  add("rayling", command);
  const { root, manifest } = listing.finish();
  const inside = (folder: string): string => relative(root, folder).split(sep).join("/");
  const folders = [...found].map(([name, folder]) => [name, inside(folder)]);
  return { root, manifest, folders: Object.fromEntries(folders), conditions };
}

/** Looks from this package, the program, the modules of actors, and beside this package. */
function raylingFolder(): string | undefined {
  const modules = registeredModules().filter((url) => url.startsWith("file:"));
  const starts = [process.argv[1], ...modules.map((url) => fileURLToPath(url))];
  for (const start of starts) {
    const folder = runtimePackagesHere(start).get("rayling");
    if (folder !== undefined) return folder;
  }
  const own = runtimePackagesHere().get("@rayling/cluster");
  const beside = ["../rayling", "../../rayling"].map((path) => join(own ?? "", path));
  const [found] = beside.filter((folder) => packageJsonIn(folder).name === "rayling");
  return found === undefined ? undefined : realpathSync(found);
}

/** Folders of a package that its exports lead to, and those that are published beside them. */
function foldersOf(
  { exports = {}, files = [] }: PackageJson,
  conditions: readonly string[],
): string[] {
  const known = new Set([...conditions, "default"]);
  const targets = Object.values(exports).flatMap((one): string[] => {
    if (typeof one === "string") return [one];
    const [, target] = Object.entries(one ?? {}).find(([name]) => known.has(name)) ?? [];
    return typeof target === "string" ? [target] : [];
  });
  const ofCode = targets
    .map((target) => target.split("/").slice(1))
    .filter((path) => path.length > 1)
    .map(([folder = ""]) => folder);
  const others = files.filter((one) => one !== "dist").map((one) => one.split("/")[0] ?? "");
  return [...new Set([...ofCode, ...others])];
}

function filesBelow(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch {
    // A file, or something that is made when the package is published.
    return [];
  }
}

/** Returns those packages that sources of a checkout import; published code has them inside. */
function namesIn(files: readonly string[], names: readonly string[]): string[] {
  if (names.length === 0) return [];
  const sources = files.filter((file) => file.endsWith(".ts") && !file.endsWith(".d.ts"));
  const text = sources.map((file) => readFileSync(file, "utf8")).join("\n");
  return names.filter(
    (name) => text.includes(` from "${name}`) || text.includes(`import("${name}`),
  );
}

function packageJsonIn(folder: string): PackageJson & { readonly name?: unknown } {
  try {
    return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  } catch {
    // No package is there.
    return {};
  }
}
