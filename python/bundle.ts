/**
 * Writes the JavaScript runtime that the wheel has inside, into `python/src/rayling/_js`: the
 * packages that score and serve, each with what it needs of others' packages in its own files.
 * Commands that train, and what only several machines need, stay out. Before a wheel is built:
 * `node python/bundle.ts [FOLDER]`.
 */

import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "esbuild";
import type { Metafile, Plugin } from "esbuild";
import { bundled, codeOptions, writeOutput } from "../packages/build.ts";

const root: string = join(import.meta.dirname, "..");

/** Where the wheel has them. */
export const runtimeFolder: string = join(import.meta.dirname, "src/rayling/_js");

const packages: Readonly<Record<string, readonly string[]>> = {
  core: bundled["core"] ?? [],
  cluster: ["collect/thread-main"],
  "config-tree": [],
  "data-proto": [],
  "reward-manager-registry": [],
  "reward-loop": bundled["reward-loop"] ?? [],
  rayling: bundled["rayling"] ?? [],
};

/** Packages of the workspace that are left out, and what they are for. */
const leftOut: Readonly<Record<string, string>> = {
  "@rayling/on-ray": "sessions on a Ray cluster",
  "@rayling/trainer": "trainings",
};

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly type: string;
  readonly engines: object;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  readonly publishConfig: {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
}

export async function writeRuntime(out: string = runtimeFolder): Promise<void> {
  await rm(out, { recursive: true, force: true });
  const taken = new Set<string>();
  for (const [folder, modules] of Object.entries(packages)) {
    const metafile = await writePackage(join(root, "packages", folder), modules, out);
    for (const one of packagesIn(metafile)) taken.add(one);
  }
  await writeFile(join(out, "LICENSES.txt"), await licensesOf([...taken].toSorted()));
}

/** CommonJS that is bundled into an ES module asks for Node's modules by `require`. */
const banner: string =
  'import { createRequire as $createRequire } from "node:module"; const require = $createRequire(import.meta.url);';

async function writePackage(
  folder: string,
  modules: readonly string[],
  out: string,
): Promise<Metafile> {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
  const { name, version, type, engines, publishConfig } = manifest;
  const exported = Object.values(manifest.exports).flatMap((one) =>
    typeof one === "string" ? [] : [one.default],
  );
  const target = join(out, "node_modules", name);
  const { outputFiles, metafile } = await build({
    ...codeOptions,
    absWorkingDir: folder,
    entryPoints: [...exported, ...modules.map((one) => `src/${one}.ts`)],
    outdir: join(target, "dist"),
    banner: { js: banner },
    plugins: [sisters, lateImports],
    metafile: true,
  });
  await writeOutput(outputFiles);
  const entries = Object.entries(publishConfig.exports).map(([entry, one]) => [
    entry,
    typeof one === "string" ? one : one.default,
  ]);
  const written = { name, version, type, engines, exports: Object.fromEntries(entries) };
  await writeFile(join(target, "package.json"), `${JSON.stringify(written, undefined, 2)}\n`);
  return metafile;
}

/** Packages of the workspace stay packages; those that are left out say so when they are loaded. */
const sisters: Plugin = {
  name: "sisters",
  setup(bundler) {
    bundler.onResolve({ filter: /^(?:rayling|@rayling\/[^/]+)(?:\/|$)/ }, ({ path }) => {
      const [name = ""] = Object.keys(leftOut).filter(
        (one) => path === one || path.startsWith(`${one}/`),
      );
      return name === "" ? { path, external: true } : { path: name, namespace: "left-out" };
    });
    bundler.onLoad({ filter: /.*/, namespace: "left-out" }, ({ path }) => {
      const message = `${path}, for ${leftOut[path]}, is not in the Python package: npm install rayling`;
      return { contents: `throw new Error(${JSON.stringify(message)}); module.exports = {};` };
    });
  },
};

/**
 * A package that is imported late, and is CommonJS, would give nothing but a default: its names are
 * listed, as Node knows them.
 */
const lateImports: Plugin = {
  name: "late imports",
  setup(bundler) {
    bundler.onResolve({ filter: /^[a-z@]/ }, (asked) => {
      const isOurs = /^(?:node:|rayling|@rayling\/)/.test(asked.path);
      if (asked.kind !== "dynamic-import" || isOurs) return undefined;
      return { path: asked.path, namespace: "late", pluginData: asked.resolveDir };
    });
    bundler.onLoad({ filter: /.*/, namespace: "late" }, async ({ path, pluginData }) => {
      const resolveDir = String(pluginData);
      const found = createRequire(join(resolveDir, "x")).resolve(path);
      const names = Object.keys(await import(pathToFileURL(found).href)).filter((name) =>
        /^[A-Za-z_$][\w$]*$/.test(name),
      );
      const lines = names
        .filter((name) => name !== "default" && name !== "module.exports")
        .map((name) => `export const ${name} = all.${name};`);
      const contents = [`import * as all from ${JSON.stringify(path)};`, ...lines].join("\n");
      return { contents, resolveDir };
    });
  },
};

/** Returns the folders of others' packages that something was taken from. */
function packagesIn({ inputs }: Metafile): string[] {
  return Object.keys(inputs).flatMap((path) => {
    const found = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0];
    return found === undefined ? [] : [join(root, found.replace(/^(?:\.\.\/)+/, ""))];
  });
}

async function licensesOf(folders: readonly string[]): Promise<string> {
  const parts = await Promise.all(
    folders.map(async (folder) => {
      const { name, version, license } = JSON.parse(
        await readFile(join(folder, "package.json"), "utf8"),
      ) as { readonly name: string; readonly version: string; readonly license: string };
      const file = (await readdir(folder)).find((one) => /^licen[cs]e/i.test(one));
      const text = file === undefined ? "" : await readFile(join(folder, file), "utf8");
      return `${name} ${version} (${license})\n\n${text.trim()}\n`;
    }),
  );
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

if (import.meta.main) {
  await writeRuntime(process.argv[2]);
}
