/**
 * Finds the user's own modules that some modules reach, without running them, through esbuild,
 * which knows TypeScript and both kinds of modules.
 *
 * esbuild only finds the imports. Resolution follows Node, so nothing is found here that a running
 * module would not find. The machine that runs the code reports unresolved imports in Node's own
 * words. npm packages are not read: they go as a whole.
 */
import { readFileSync, statSync } from "node:fs";
import { createRequire, isBuiltin } from "node:module";
import { dirname, extname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import type * as Bundler from "esbuild";
import type { Loader, OnLoadResult, OnResolveArgs, Plugin, PluginBuild } from "esbuild";
import { isRuntimePackage, runtimePackageOf } from "../code/runtime-packages.ts";
import { whyNotImported } from "../needed-package.ts";
import { isInstalled, type Listing, packageFolderOf, realPathOf } from "./listing.ts";
import type { NpmPackages } from "./npm-packages.ts";

const loaders: Readonly<Record<string, Loader>> = {
  ".ts": "ts",
  ".mts": "ts",
  ".cts": "ts",
  ".tsx": "tsx",
  ".js": "js",
  ".mjs": "js",
  ".cjs": "js",
  ".jsx": "jsx",
};

/** Adds these files, and the modules and packages that they reach. */
export async function addModules(
  files: readonly string[],
  listing: Listing,
  packages: NpmPackages,
): Promise<void> {
  const graph = new Graph(listing, packages);
  const entries = files.filter((file) => graph.takes(file));
  if (entries.length === 0) return;
  const { build, stop } = await bundler();
  try {
    await build({
      entryPoints: entries,
      bundle: true,
      write: false,
      outdir: "unused",
      platform: "node",
      format: "esm",
      target: "esnext",
      logLevel: "silent",
      // Node keeps unused imports, and ignores tsconfig.json.
      tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
      conditions: [...codeConditions(), "node-addons", "module-sync"],
      plugins: [graph.plugin],
    });
  } catch (error) {
    // The search is complete: Node cannot run files that esbuild cannot read or link, and reports
    // them better.
    if (typeof error !== "object" || error === null || !("errors" in error)) throw error;
  } finally {
    await stop();
  }
}

async function bundler(): Promise<typeof Bundler> {
  try {
    return await import("esbuild");
  } catch (error) {
    throw whyNotImported(
      "esbuild",
      error,
      (problem, cause) => new Error(`finding the imports of a module ${problem}`, { cause }),
    );
  }
}

/** Marks this plugin's own queries, which esbuild answers. */
const ours = Symbol("ours");

class Graph {
  readonly plugin: Plugin;
  readonly #listing: Listing;
  readonly #packages: NpmPackages;

  constructor(listing: Listing, packages: NpmPackages) {
    this.#listing = listing;
    this.#packages = packages;
    this.plugin = {
      name: "rayling",
      setup: (build) => {
        build.onResolve({ filter: /.*/ }, (args) => {
          if (args.kind === "entry-point" || args.pluginData === ours) return undefined;
          return this.#resolve(args, build);
        });
        build.onLoad({ filter: /.*/ }, ({ path }) => this.#load(path));
      },
    };
  }

  /** Adds a file. Returns whether its imports must be read. */
  takes(file: string): boolean {
    if (runtimePackageOf(file) !== undefined) return false;
    if (isInstalled(file)) {
      const folder = packageFolderOf(file);
      if (folder !== undefined) this.#packages.add(folder, folder, true);
      return false;
    }
    this.#listing.addFile(file);
    const folder = packageFolderOf(file);
    if (folder !== undefined) this.#listing.addFile(join(folder, "package.json"));
    return loaders[extname(file)] !== undefined;
  }

  async #resolve(
    { path, importer, kind, resolveDir }: OnResolveArgs,
    build: PluginBuild,
  ): Promise<{ path: string; external?: boolean }> {
    const external = { path, external: true };
    const isRequire = kind === "require-call" || kind === "require-resolve";
    let found: string | undefined;
    if (/^(\.{0,2}\/|\.{1,2}$|file:)/.test(path)) {
      found = isRequire ? required(path, importer) : fileOf(new URL(path, pathToFileURL(importer)));
    } else if (!isBuiltin(path) && !/^[a-z]+:/.test(path)) {
      if (!path.startsWith("#")) {
        const name = path.split("/", path.startsWith("@") ? 2 : 1).join("/");
        if (isRuntimePackage(name)) return external;
        const folder = this.#packages.find(name, dirname(importer));
        if (folder !== undefined && isInstalled(folder)) {
          this.#packages.add(name, folder, true);
          return external;
        }
        // A package of the user's own, which node_modules links to, is part of the code but not
        // whole.
        if (folder !== undefined) this.#listing.addFile(join(folder, "package.json"));
      }
      const answer = await build.resolve(path, { importer, kind, resolveDir, pluginData: ours });
      if (answer.errors.length === 0 && !answer.external) found = realPathOf(answer.path);
      if (found !== undefined && isInstalled(found)) this.#linkTo(found, importer);
    }
    return found !== undefined && this.takes(found) ? { path: found } : external;
  }

  /**
   * Links an npm package that a name of `imports` in package.json leads to; its own name then finds
   * it from there.
   */
  #linkTo(file: string, importer: string): void {
    const name = /.*[\\/]node_modules[\\/]((?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file)?.[1];
    if (name !== undefined) this.#packages.find(name.replace("\\", "/"), dirname(importer));
  }

  /**
   * Loads a module, and takes the files that it names by URL; those that are modules are read, too.
   */
  #load(path: string): OnLoadResult {
    let contents = readFileSync(path, "utf8");
    for (const [, , name = ""] of contents.matchAll(urlOfFile)) {
      const file = fileOf(new URL(name, pathToFileURL(path)));
      if (file !== undefined && this.takes(file)) contents += `\n;import(${JSON.stringify(name)});`;
    }
    return { contents, loader: loaders[extname(path)] ?? "empty", resolveDir: dirname(path) };
  }
}

/** `new URL("./x", import.meta.url)`, `import.meta.resolve("./x")` and `require.resolve("./x")`. */
const urlOfFile =
  /(?:new\s+URL\(|(?:import\.meta|require)\.resolve\()\s*(["'`])(\.{1,2}\/[^"'`$\n]+)\1\s*(?:\)|,\s*import\.meta\.url\s*,?\s*\))/g;

function fileOf(url: URL): string | undefined {
  if (url.protocol !== "file:") return undefined;
  const path = realPathOf(fileURLToPath(url));
  return path !== undefined && statSync(path).isFile() ? path : undefined;
}

function required(path: string, importer: string): string | undefined {
  try {
    return createRequire(importer).resolve(path);
  } catch {
    // It would throw at run time, too.
    return undefined;
  }
}

/** Returns the conditions for `exports` of packages that this process was started with. */
export function codeConditions(): string[] {
  const flags = [...process.execArgv, ...(process.env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  return flags.flatMap((flag, index) => {
    const [, value] = /^(?:--conditions|-C)=(.+)$/.exec(flag) ?? [];
    if (value !== undefined) return [value];
    return flag === "-C" || flag === "--conditions" ? flags.slice(index + 1, index + 2) : [];
  });
}
