/**
 * Writes what is published of a package into its `dist`: declarations by tsc, one for each module, and the code in few files, because opening files is most of
 * what the start of a thread or a process costs. `node ../build.ts` in the package's folder.
 *
 * Each file is replaced whole and what is no longer made goes last, so that programs that run meanwhile find the old or the new.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";
import type { BuildOptions, OutputFile } from "esbuild";
import { withPage, writePage } from "./build-page.ts";
import { nodeModules } from "./node-modules.ts";
import { inOneFile, inOneModule, type Made, type OneFile, type OneModule } from "./one-file.ts";
import { writeRequireEntries } from "./require-entries.ts";

/**
 * The packages that are bundled, by folder, with the modules that are loaded by their place beside
 * what the package exports: what threads and processes begin with, reward modules, and modules of
 * actors, which would bring all of the package along if they were in one file with it.
 */
export const bundled: Readonly<Record<string, readonly string[]>> = {
  core: ["host/thread-main", "host/thread-host", "host/process-main", "host/code/no-tests"],
  "config-tree": [],
  "data-proto": [],
  "reward-manager-registry": [],
  "reward-loop": [
    "executor/score-executor",
    "limits/reward-limiter",
    "reward-model/router-actor",
    "worker/reward-loop-worker",
  ],
  trainer: [
    "policy/openai/openai-policy",
    "policy/timed-policy",
    "policy/tiny/tiny-critic",
    "policy/tiny/tiny-policy",
    "quickstart/judge",
    "tasks/arithmetic-reward",
  ],
  rayling: [
    "cli/main",
    "cli/output/silence/thread-main",
    "cli/score/baseline",
    "cli/score/simulated-judge",
    "python/actor-host/main",
    "python/agent-main",
    "python/certificate-main",
    "python/imports",
    "python/score-host",
  ],
};

/**
 * Packages whose entries all begin with core's check of Node: the command prints what it says, and
 * has nothing in front of it.
 */
const checkedByCore: readonly string[] = ["rayling"];

/**
 * Packages that take Node's modules as they are written: what they stand on has loaded most of
 * them, and a wrapper for each takes an import longer than it saves.
 */
const importsOfNode: readonly string[] = ["trainer", "rayling"];

/** Packages whose code for threads is one file, with all that the user's modules import of them. */
const inThreads: Readonly<Record<string, OneFile>> = {
  core: {
    file: "core",
    listed: ["index.js", "host/thread-host.js", "code.js", "http.js", "terminal.js"],
    loader: "shared/compiled/kept-code",
    threadMain: "startThread",
  },
};

/** Packages of which threads load one module, with what the bundler would make many files of. */
const inModules: Readonly<Record<string, OneModule>> = {
  "reward-loop": {
    file: "loop",
    listed: [
      "executor/score-executor.js",
      "limits/reward-limiter.js",
      "worker/reward-loop-worker.js",
    ],
  },
};

/**
 * Packages whose code is part of ours, by folder, each with the module that is taken: hosts find and
 * open no files of theirs. msgpackr would bring msgpackr-extract along, which has a build script, and
 * which our entry of it does not use; nanoid for browsers asks for random bytes when it needs some.
 */
const inlined: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  core: {
    comlink: "comlink/dist/esm/comlink.mjs",
    "msgpackr/pack": "msgpackr/index.js",
    nanoid: "nanoid/index.browser.js",
  },
  "reward-manager-registry": { leven: "leven/index.js" },
  "reward-loop": { nanoid: "nanoid/index.browser.js", "yocto-queue": "yocto-queue/index.js" },
};

/** In front of everything. */
const nodeVersion: string = join(import.meta.dirname, "core/src/node-version.ts");

/** @returns the files, as paths below `dist` */
export async function buildCode(folder: string): Promise<string[]> {
  const out = join(folder, "dist");
  const { exports } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
  };
  const exported = Object.values(exports).flatMap((one) =>
    typeof one === "string" ? [] : [one.default],
  );
  const more = bundled[basename(folder)] ?? [];
  const own = Object.entries(inlined[basename(folder)] ?? {});
  const installed = join(folder, "node_modules");
  const options = {
    ...codeOptions,
    ...(checkedByCore.includes(basename(folder)) ? { inject: [] } : {}),
    absWorkingDir: folder,
    packages: "external",
  } as const;
  const built = await build({
    ...options,
    entryPoints: [...exported, ...more.map((one) => `src/${one}.ts`)],
    outdir: out,
    metafile: true,
    alias: Object.fromEntries(own.map(([name, path]) => [name, join(installed, path)])),
    plugins: importsOfNode.includes(basename(folder)) ? [] : [nodeModules],
  });
  const outputFiles = await together(basename(folder), { out, ...built }, options);
  await writeOutput(outputFiles);
  const licenses = await writeLicenses(
    out,
    own.map(([, path]) => join(installed, path.split("/")[0] ?? path)),
  );
  return [...outputFiles.map(({ path }) => relative(out, path)), ...licenses];
}

/** Returns the files as they are published, with less of them where threads load a package. */
async function together(
  name: string,
  made: Made,
  options: BuildOptions,
): Promise<readonly OutputFile[]> {
  const { [name]: file } = inThreads;
  if (file !== undefined) return inOneFile(made, file, options);
  const { [name]: module } = inModules;
  const files = module === undefined ? made.outputFiles : await inOneModule(made, module, options);
  return files.map(withOwnNames);
}

/**
 * The bundler writes `var Name = class _Name` where a class names itself, and that name is what
 * printed objects, stacks and lists of actors would show.
 */
function withOwnNames(file: OutputFile): OutputFile {
  const classes = [...file.text.matchAll(/^var (\w+) = class _\1\b/gm)].map(([, name]) => name);
  if (classes.length === 0) return file;
  const inner = new RegExp(`(?<![\\w$.#])_(${classes.join("|")})(?![\\w$])`, "g");
  const text = file.text.replace(inner, "$1");
  return { ...file, text, contents: new TextEncoder().encode(text) };
}

/** @returns the licenses of packages that are part of ours, as paths below `dist` */
async function writeLicenses(out: string, folders: readonly string[]): Promise<string[]> {
  if (folders.length === 0) return [];
  await mkdir(join(out, "licenses"), { recursive: true });
  return Promise.all(
    folders.map(async (folder) => {
      const path = join("licenses", basename(folder));
      const whole = join(out, `${path}.${process.pid}`);
      const license = (await readdir(folder)).find((name) => /^license$/i.test(name)) ?? "LICENSE";
      await writeFile(whole, await readFile(join(folder, license)));
      await rename(whole, join(out, path));
      return path;
    }),
  );
}

/** How all code is bundled; it is not written. */
export const codeOptions: BuildOptions & { readonly write: false } = {
  outbase: "src",
  chunkNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "node22.18",
  inject: [nodeVersion],
  write: false,
  logLevel: "warning",
};

/** Replaces each file whole. */
export async function writeOutput(files: readonly OutputFile[]): Promise<void> {
  for (const directory of new Set(files.map(({ path }) => dirname(path)))) {
    await mkdir(directory, { recursive: true });
  }
  for (const { path, contents } of files) {
    const whole = `${path}.${process.pid}`;
    await writeFile(whole, contents);
    await rename(whole, path);
  }
}

/** @param flags more of them, for tsc */
export async function buildDeclarations(
  folder: string,
  ...flags: readonly string[]
): Promise<string[]> {
  const tsc = join(import.meta.dirname, "../node_modules/.bin/tsc");
  const args = ["-p", folder, "--emitDeclarationOnly", "--listEmittedFiles", ...flags];
  const { stdout } = await promisify(execFile)(tsc, args);
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("TSFILE: "))
    .map((line) => relative(join(folder, "dist"), line.slice("TSFILE: ".length)));
}

/** Removes what is not among them. */
export async function keepOnly(folder: string, files: readonly string[]): Promise<void> {
  const out = join(folder, "dist");
  const kept = new Set(files);
  for (const entry of await readdir(out, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    // Another build may be about to rename one of its own.
    const isOnItsWay = /\.\d+$/.test(path);
    if (entry.isFile() && !kept.has(relative(out, path)) && !isOnItsWay) {
      await rm(path, { force: true });
    }
  }
}

if (import.meta.main) {
  const folder = resolve(process.argv[2] ?? ".");
  const declarations = await buildDeclarations(folder);
  const code = await buildCode(folder);
  const page = withPage.includes(basename(folder)) ? await writePage(join(folder, "dist")) : [];
  const entries = await writeRequireEntries(folder);
  await keepOnly(folder, [...declarations, ...code, ...page, ...entries]);
}
