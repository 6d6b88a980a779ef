/**
 * YAML files of configurations, and the folders in which they are found.
 */

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError } from "../config-error.ts";
import { nearestOf } from "../nearest.ts";
import { type ConfigTree, type ConfigValue, isTree } from "../tree.ts";
import { yamlValue } from "../yaml.ts";

/** Where configuration files are looked for, and under which names. */
export interface ConfigSearch {
  /** Folders, searched in order. */
  readonly folders: readonly string[];
  /** Names that stand for others, if no file has the name. */
  readonly aliases?: Readonly<Record<string, string>> | undefined;
  /** Groups whose files have no meaning here: they may be chosen without existing. */
  readonly ignoredGroups?: ReadonlySet<string> | undefined;
}

/** One file: its keys, and their place if the file names one (`# @package a.b` in its head). */
export interface ConfigFile {
  readonly path: string;
  /** The keys without `defaults`. */
  readonly tree: ConfigTree;
  /** The list under `defaults`; empty when there is none. A ??? in it stays: it must be chosen. */
  readonly defaults: ConfigValue;
  readonly package: string | undefined;
}

/**
 * @param name with or without .yaml; `group/name` is a file in a folder
 * @returns the path, or undefined when the file does not exist
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
  const known = groupNames(group, { folders }).map((one) =>
    group === "" ? one : `${group}/${one}`,
  );
  throw new ConfigError(
    name,
    `there is no such configuration; there are ${known.join(", ")}`,
    undefined,
    nearestOf(bare, known),
  );
}

/** Whether a folder of that name contains files to choose from. */
export function isGroup(name: string, { folders }: ConfigSearch): boolean {
  return folders.some((folder) => {
    const path = join(resolve(folder), name);
    return existsSync(path) && statSync(path).isDirectory();
  });
}

/** Returns the names of a group's files in all folders, without .yaml. Throws ConfigError. */
export function groupNames(group: string, { folders }: ConfigSearch): readonly string[] {
  return folders
    .filter((folder) => existsSync(join(folder, group)))
    .flatMap((folder) => configNames(join(folder, group)));
}

/** Returns the names of a folder's files, without .yaml. Throws ConfigError. */
export function configNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((file) => /\.ya?ml$/.test(file))
      .map(withoutEnding)
      .toSorted();
  } catch (error) {
    throw new ConfigError(folder, `cannot be read: ${messageOf(error)}`);
  }
}

/** Throws ConfigError. */
export function readConfigFile(path: string): ConfigFile {
  const text = textOf(path);
  const [, place] = /^\s*#\s*@package\s+(\S+)/.exec(text) ?? [];
  const { defaults = [], ...tree } = treeOf(path, text);
  return { path, tree, defaults, package: place };
}

/**
 * Reads one file as YAML; ??? becomes null, which counts as unset. Throws ConfigError, also for a
 * value that contains itself.
 */
export function readYamlFile(path: string): ConfigTree {
  return treeOf(path, textOf(path));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new ConfigError(path, `cannot be read: ${messageOf(error)}`);
  }
}

function treeOf(path: string, text: string): ConfigTree {
  let tree: unknown;
  try {
    tree = yamlValue(text) ?? {};
  } catch (error) {
    throw new ConfigError(path, `is no YAML: ${messageOf(error)}`);
  }
  if (!isTree(tree)) throw new ConfigError(path, "must hold keys");
  const copy = plain(tree, path, [], []);
  if (!isTree(copy)) throw new ConfigError(path, "must hold keys");
  return copy;
}

/** Copies a value without shared parts. An anchor may stand inside its own value. */
function plain(
  value: unknown,
  file: string,
  path: readonly string[],
  open: readonly unknown[],
): unknown {
  if (value === "???") return path[0] === "defaults" ? value : null;
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
