/**
 * `rayling new`: copies the template of a project.
 */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf } from "@rayling/reward-manager-registry/values";
import { ownFile } from "../../own-files.ts";
import { CliError } from "../cli-error.ts";
import { print } from "../output/formats.ts";
import type { Format } from "../output/formats.ts";
import { plain } from "../output/output.ts";

const template = fileURLToPath(ownFile("template/"));

/** npm publishes no files of these names, or reads them. */
const renamed: Readonly<Record<string, string>> = {
  _gitignore: ".gitignore",
  "_package.json": "package.json",
};

/** npm's rule for names without a scope, but for its length. */
const packageName = /^(?!favicon\.ico$)[a-z0-9][a-z0-9._-]*$/;

export interface NewOptions {
  /** Version of the packages that the project depends on. */
  readonly version: string;
  readonly format: Format;
}

/** Rejects with CliError 2. */
export async function runNew(folder: string, { version, format }: NewOptions): Promise<void> {
  // It would be the current folder, and readdir finds no folder of that name.
  if (folder === "") throw new CliError(2, "The name is empty: give a new folder.");
  const target = resolve(folder);
  const name = basename(target);
  if (target.split(sep).includes("node_modules")) {
    throw new CliError(2, "Node runs no TypeScript in a folder node_modules: give another one.");
  }
  if (!packageName.test(name) || name.length > 214) {
    throw new CliError(
      2,
      `${name} cannot be the name of a package: it must be of small letters, digits, "-", "." and "_".`,
    );
  }
  await refuseFull(target);
  let files: readonly string[];
  try {
    files = await copy(target, { name, version });
  } catch (error) {
    throw new CliError(2, messageOf(error), { cause: error });
  }
  const place = plain(folder);
  await print({ folder: target, name, files }, format, () => [
    `${place} is a project. What next:`,
    "",
    `  cd ${/^[\w./-]+$/.test(place) ? place : JSON.stringify(place)}`,
    "  npm install",
    "  npm test",
    "  npm run score",
    "",
    "README.md there says what each file is.",
  ]);
}

async function refuseFull(folder: string): Promise<void> {
  let files: readonly string[];
  try {
    files = await readdir(folder);
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return;
    throw new CliError(2, messageOf(error), { cause: error });
  }
  if (files.length > 0) throw new CliError(2, `${folder} is not empty: give a new folder.`);
}

/** Resolves with the paths of the files in the folder. */
async function copy(
  folder: string,
  values: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const files: string[] = [];
  const entries = await readdir(template, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((one) => one.isFile())) {
    const path = join(entry.parentPath, entry.name).slice(template.length);
    const own = join(dirname(path), renamed[entry.name] ?? entry.name);
    const target = join(folder, own);
    const text = await readFile(join(template, path), "utf8");
    await mkdir(dirname(target), { recursive: true });
    const written = text.replaceAll(
      /\{\{(name|version)\}\}/g,
      (_, key: string) => values[key] ?? "",
    );
    // A file that has come since the look at the folder is somebody's.
    await writeFile(target, written, { flag: "wx" });
    files.push(own);
  }
  return files.toSorted();
}
