/**
 * The npm packages that code needs: each as a whole, because what it reads of its own folder cannot be known, with the packages that it depends on by its
 * package.json, found as Node finds them. Links of node_modules (pnpm, workspaces, `npm link`) stay links, so nothing comes twice.
 *
 * rayling's own packages are left out: the machine that gets the code has them, and a host must have them once.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isRuntimePackage } from "../code/runtime-packages.ts";
import { type Listing, realPathOf } from "./listing.ts";

/** An npm package that is part of what is gathered. */
export interface InstalledPackage {
  readonly name: string;
  /** Its real path. */
  readonly folder: string;
  /** Files of native code in it. */
  readonly addons: readonly string[];
  /** Something needs it for more than an `optionalDependencies` of somebody. */
  isRequired: boolean;
}

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, unknown>>;
  readonly optionalDependencies?: Readonly<Record<string, unknown>>;
  readonly peerDependencies?: Readonly<Record<string, unknown>>;
}

export class NpmPackages {
  readonly #listing: Listing;
  /** By their folders. */
  readonly #known: Map<string, InstalledPackage> = new Map();

  constructor(listing: Listing) {
    this.#listing = listing;
  }

  get all(): readonly InstalledPackage[] {
    return [...this.#known.values()];
  }

  /** Where the package is that an import from a file in `from` finds, with the link to it noted; undefined if there is none. */
  find(name: string, from: string): string | undefined {
    for (let at = from; ; at = dirname(at)) {
      const place = join(at, "node_modules", name);
      const real = basename(at) === "node_modules" ? undefined : realPathOf(place);
      if (real !== undefined) {
        this.#listing.addLink(place, real);
        return real;
      }
      if (dirname(at) === at) return undefined;
    }
  }

  /** @param folder its real path */
  add(name: string, folder: string, isRequired: boolean): void {
    const known = this.#known.get(folder);
    if (known !== undefined && (known.isRequired || !isRequired)) return;
    if (known === undefined) {
      const files = filesOf(folder);
      for (const file of files) this.#listing.addFile(file);
      const addons = files.filter((file) => file.endsWith(".node") && this.#listing.hasFile(file));
      this.#known.set(folder, { name, folder, addons, isRequired });
    } else known.isRequired = true;
    this.addDependencies(folder, isRequired);
  }

  /** Those that the package.json of a folder lists, as far as they are installed. */
  addDependencies(folder: string, isRequired = true): void {
    const { dependencies, optionalDependencies, peerDependencies } = packageJsonIn(folder);
    const optional = { ...peerDependencies, ...optionalDependencies };
    for (const name of Object.keys({ ...dependencies, ...optional })) {
      // Types are erased.
      if (isRuntimePackage(name) || name.startsWith("@types/")) continue;
      const found = this.find(name, folder);
      if (found !== undefined) this.add(name, found, isRequired && !(name in optional));
    }
  }
}

function packageJsonIn(folder: string): PackageJson {
  try {
    return (JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) ?? {}) as PackageJson;
  } catch {
    // A package that has none, or one that is broken, lists nothing; whoever imports it hears of it.
    return {};
  }
}

/** All but other packages in it. Links in packages lead to their own files, if anywhere: they come as the files. */
function filesOf(folder: string): string[] {
  const found: string[] = [];
  const visit = (at: string): void => {
    for (const entry of readdirSync(at, { withFileTypes: true })) {
      if (entry.name === "node_modules" || entry.name === ".git") continue;
      const path = join(at, entry.name);
      if (entry.isDirectory()) visit(path);
      else if (entry.isFile()) found.push(path);
      else if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) found.push(path);
    }
  };
  visit(folder);
  return found;
}
