/** YAML files of configurations, and the folders that they are looked for in. */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseDocument } from "yaml";
import { ConfigError } from "./config-error.ts";
import { nearestOf } from "./nearest.ts";
import { type ConfigTree, isTree } from "./tree.ts";

export interface ConfigSearch {
  /** Looked through one after the other. */
  readonly folders: readonly string[];
  /** Names that stand for others, where there is no file of that name. */
  readonly aliases?: Readonly<Record<string, string>> | undefined;
  /** Groups whose files are nothing here: they may be chosen among without being there. */
  readonly ignoredGroups?: ReadonlySet<string> | undefined;
}

/** One file: its keys, and where they go if it says so itself (`# @package a.b` in its head). */
export interface ConfigFile {
  readonly path: string;
  readonly tree: ConfigTree;
  readonly package: string | undefined;
}

/**
 * @param name with .yaml or without, `group/name` in a folder of that name; undefined is returned for one that there is not
 */
export function findConfig(
  name: string,
  { folders, aliases = {} }: ConfigSearch,
): string | undefined {
  const bare = withoutEnding(name);
  for (const folder of folders) {
    for (const candidate of [bare, aliases[bare]]) {
      if (candidate === undefined) continue;
      for (const ending of [".yaml", ".yml"]) {
        const path = join(resolve(folder), candidate + ending);
        if (existsSync(path)) return path;
      }
    }
  }
  return undefined;
}

/** Throws ConfigError. */
export function noSuchConfig(name: string, { folders }: ConfigSearch): never {
  const bare = withoutEnding(name);
  const group = bare.includes("/") ? bare.slice(0, bare.lastIndexOf("/")) : "";
  const known = folders
    .filter((folder) => existsSync(join(folder, group)))
    .flatMap((folder) => configNames(join(folder, group)))
    .map((one) => (group === "" ? one : `${group}/${one}`));
  throw new ConfigError(
    name,
    `there is no such configuration; there are ${known.join(", ")}`,
    undefined,
    nearestOf(bare, known),
  );
}

/** Whether a folder of files is there that can be chosen among. */
export function isGroup(name: string, { folders }: ConfigSearch): boolean {
  return folders.some((folder) => {
    const path = join(resolve(folder), name);
    return existsSync(path) && statSync(path).isDirectory();
  });
}

/** The files of a folder, without .yaml. Throws ConfigError. */
export function configNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((file) => /\.ya?ml$/.test(file))
      .map(withoutEnding)
      .toSorted();
  } catch (error) {
    throw new ConfigError(folder, `cannot be read: ${(error as Error).message}`);
  }
}

/** Throws ConfigError. */
export function readConfigFile(path: string): ConfigFile {
  const text = textOf(path);
  const [, place] = /^\s*#\s*@package\s+(\S+)/.exec(text) ?? [];
  return { path, tree: treeOf(path, text), package: place };
}

/** One file as YAML reads it; ??? is null, which is not set. Throws ConfigError, also for one that contains itself. */
export function readYamlFile(path: string): ConfigTree {
  return treeOf(path, textOf(path));
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(path, `cannot be read: ${(error as Error).message}`);
  }
}

function treeOf(path: string, text: string): ConfigTree {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) {
    throw new ConfigError(path, `is no YAML: ${error.message.split("\n", 1)[0] ?? ""}`);
  }
  let tree: unknown;
  try {
    tree = document.toJS() ?? {};
  } catch (tooMany) {
    throw new ConfigError(path, `is no configuration: ${(tooMany as Error).message}`);
  }
  if (!isTree(tree)) throw new ConfigError(path, "must hold keys");
  return plain(tree, path, [], []) as ConfigTree;
}

/** A copy that shares nothing. An anchor may stand inside of what it names. */
function plain(
  value: unknown,
  file: string,
  path: readonly string[],
  open: readonly unknown[],
): unknown {
  if (value === "???") return null;
  if (typeof value !== "object" || value === null) return value;
  const key = path.join(".");
  if (open.includes(value)) throw new ConfigError(file, `its key ${key} contains itself`);
  if (value instanceof Date) return value.toISOString();
  const inside = [...open, value];
  if (Array.isArray(value)) {
    return value.map((one, index) => plain(one, file, [...path, String(index)], inside));
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, plain(one, file, [...path, name], inside)]),
  );
}

function withoutEnding(name: string): string {
  return name.replace(/\.ya?ml$/, "");
}
