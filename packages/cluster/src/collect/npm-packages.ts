/**
 * The npm packages that code needs. Each goes as a whole, because nobody knows which of its files
 * it reads, with the packages that its package.json depends on, found as Node finds them. Links of
 * node_modules (pnpm, workspaces, `npm link`) stay links, so no file goes twice.
 *
 * rayling's own packages are left out: the machine that gets the code has them, and a host must
 * load them only once.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { isRuntimePackage } from "../code/runtime-packages.ts";
import { type Listing, realPathOf } from "./listing.ts";

/** An npm package that is part of the code. */
export interface InstalledPackage {
  readonly name: string;
  /** Its real path. */
  readonly folder: string;
  /** Its files of native code. */
  readonly addons: readonly string[];
  /** Whether it is needed beyond an `optionalDependencies` entry. */
  isRequired: boolean;
}

interface PackageJson {
  readonly dependencies?: Readonly<Record<string, unknown>>;
  readonly optionalDependencies?: Readonly<Record<string, unknown>>;
  readonly peerDependencies?: Readonly<Record<string, unknown>>;
}

export class NpmPackages {
  readonly #listing: Listing;
  /** Packages by their folders. */
  readonly #known: Map<string, InstalledPackage> = new Map();

  constructor(listing: Listing) {
    this.#listing = listing;
  }

  get all(): readonly InstalledPackage[] {
    return [...this.#known.values()];
  }

  /**
   * Returns the package that an import from a file in `from` finds, and records the link to it;
   * undefined if there is none.
   */
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

  /** Adds the installed packages that the package.json of a folder lists. */
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
    // A package without a package.json, or with a broken one, lists nothing; its importer reports
    // that.
    return {};
  }
}

/**
 * Returns the files of a package without nested packages. Links inside it lead to its own files,
 * and come as files.
 */
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
