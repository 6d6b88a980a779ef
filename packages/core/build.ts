/**
 * Writes what is published into `dist`: declarations by tsc, one for each module, and the code in few files, because opening files is most of what the
 * start of a host costs. All code lies in one folder: `src/shared/own-files.ts` relies on it.
 *
 * Each file is replaced whole and what is no longer made goes last, so that programs that run meanwhile find the old or the new.
 */
import { execFile } from "node:child_process";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { build } from "esbuild";

const here: string = import.meta.dirname;
const out: string = join(here, "dist");

/** @returns the files, as paths below `dist` */
async function buildCode(): Promise<string[]> {
  const { outputFiles } = await build({
    absWorkingDir: here,
    entryPoints: [
      "src/index.ts",
      "src/cluster.ts",
      "src/control.ts",
      "src/host/thread-main.ts",
      "src/host/process-main.ts",
    ],
    entryNames: "[name]",
    chunkNames: "[name]-[hash]",
    outdir: out,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node22.18",
    packages: "external",
    sourcemap: "linked",
    sourcesContent: false,
    write: false,
    logLevel: "warning",
  });
  await mkdir(out, { recursive: true });
  for (const { path, contents } of outputFiles) {
    const whole = `${path}.${process.pid}`;
    await writeFile(whole, contents);
    await rename(whole, path);
  }
  return outputFiles.map(({ path }) => relative(out, path));
}

async function buildDeclarations(): Promise<string[]> {
  const tsc = join(here, "../../node_modules/.bin/tsc");
  const args = ["-p", here, "--emitDeclarationOnly", "--listEmittedFiles"];
  const { stdout } = await promisify(execFile)(tsc, args);
  return stdout
    .split("\n")
    .filter((line) => line.startsWith("TSFILE: "))
    .map((line) => relative(out, line.slice("TSFILE: ".length)));
}

async function keepOnly(files: readonly string[]): Promise<void> {
  const kept = new Set(files.flatMap((file) => [file, dirname(file)]));
  for (const path of await readdir(out, { recursive: true })) {
    // Another build may be about to rename one of its own.
    const isOnItsWay = /\.\d+$/.test(path);
    if (!kept.has(path) && !isOnItsWay) await rm(join(out, path), { recursive: true, force: true });
  }
}

if (import.meta.main) {
  await keepOnly([...(await buildDeclarations()), ...(await buildCode())]);
}
