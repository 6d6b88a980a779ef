/**
 * What `require` gives of a package, for each entry that it exports: the ES module itself, whatever stands between `require` and Node. Loaders such as tsx make CommonJS of
 * what is required, which would be a second copy of the package beside the one that hosts and `import` have; and what one copy makes means nothing to the other.
 *
 * In the package's folder, after its build: `node ../require-entries.ts`.
 */
import { readFile, rename, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";

interface Manifest {
  readonly name: string;
  readonly publishConfig: {
    readonly exports: Readonly<Record<string, string | { readonly require?: string }>>;
  };
}

/** @returns the files, as paths below `dist` */
export async function writeRequireEntries(folder: string): Promise<string[]> {
  const text = await readFile(join(folder, "package.json"), "utf8");
  const { name, publishConfig } = JSON.parse(text) as Manifest;
  const written: string[] = [];
  for (const entry of Object.values(publishConfig.exports)) {
    if (typeof entry === "string" || entry.require === undefined) continue;
    const path = entry.require.replace("./dist/", "");
    const module = basename(path, ".cjs");
    const files = {
      [path]: commonText(name, module, path.split("/").length),
      [join(dirname(path), `${module}.native`)]: `export * from "./${module}.js";\n`,
    };
    for (const [file, content] of Object.entries(files)) {
      const whole = join(folder, "dist", `${file}.${process.pid}`);
      await writeFile(whole, content);
      await rename(whole, join(folder, "dist", file));
      written.push(file);
    }
  }
  return written;
}

/** Of a file so many folders below the package. Runs on any Node. */
function commonText(name: string, module: string, depth: number): string {
  const manifest = `${"../".repeat(depth)}package.json`;
  return `"use strict";
try {
  // Loaders know what they take by its ending, and leave this one to Node. Put together, so that bundlers leave it alone.
  module.exports = require(["./${module}", "native"].join("."));
} catch {
  try {
    module.exports = require("./${module}.js");
  } catch (error) {
    throw reasonOf(error);
  }
}

function reasonOf(error) {
  const needed = require("${manifest}").engines.node.replace(">=", "");
  const [major, minor] = process.versions.node.split(".").map(Number);
  const [oldest, least] = needed.split(".").map(Number);
  if (major < oldest || (major === oldest && minor < least)) {
    return short("rayling needs Node " + needed + " or later; this is " + process.version);
  }
  const cannot = error.code === "ERR_REQUIRE_ESM" || /must use import to load es module/i.test(error.message);
  if (!cannot) return error;
  return short(
    "${name} is an ES module, and this loader cannot require one. Under jest: run Node 24.9 or later with NODE_OPTIONS=--experimental-vm-modules, or write the test as an ES module (.mjs) and import it",
  );
}

/** Where that was found out helps nobody. */
function short(text) {
  const error = new Error(text);
  error.stack = "Error: " + text;
  return error;
}
`;
}

if (import.meta.main) await writeRequireEntries(resolve(process.argv[2] ?? "."));
