/**
 * A configuration of several files, composed as Hydra does. Under `defaults` a file lists its
 * bases. Each one overrides those before it, and the file itself stands at `_self_`, or at the end.
 *
 * An entry names a file (`base`, `db/pg`), or a file of a group (`db: pg`), with the place for its
 * keys (`db@source: pg`). Overrides of a command line may choose another one (`db=my`), add one
 * (`+db=my`) and remove one (`~db`); so may files (`override db: my`).
 *
 * Two steps: the lists of defaults are expanded to one list of files, and then those are merged.
 * Lists are expanded from their ends, because an override stands behind what it changes.
 */

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Choices, choiceIn, namesOf } from "./choices.ts";
import { ConfigError } from "../config-error.ts";
import {
  type Choice,
  entriesOf,
  type Entry,
  type ListOwner,
  placeOf,
  self,
} from "./defaults-list.ts";
import {
  type ConfigFile,
  type ConfigSearch,
  configNames,
  findConfig,
  groupNames,
  noSuchConfig,
  readConfigFile,
} from "./files.ts";
import type { Override } from "./grammar.ts";
import { isList, isTree, merged, type ConfigTree, withValue } from "../tree.ts";

/** A configuration that is put together from its files. */
export interface ComposedConfig {
  /** Values of all files, without the overrides that change values. */
  readonly tree: ConfigTree;
  /** Overrides that change values and choose no file. */
  readonly overrides: readonly string[];
  /** The files in order, each over those before, with their keys in place. */
  readonly files: readonly ComposedFile[];
}

/** One file of a composed configuration. */
export interface ComposedFile {
  /** The path of the file. */
  readonly path: string;
  /** Values of the file, at their places in the whole configuration. */
  readonly tree: ConfigTree;
}

/**
 * @param name of a file; a name with a "/" that the search does not find is a path
 *
 * Throws ConfigError.
 */
export function composeConfig(
  name: string,
  search: ConfigSearch,
  overrides: readonly string[] = [],
): ComposedConfig {
  for (const folder of search.folders) configNames(folder);
  const path = findConfig(name, search) ?? (/[/\\]/.test(name) ? resolve(name) : undefined);
  if (path === undefined || !existsSync(path)) {
    if (path !== undefined) throw new ConfigError(name, `cannot be read: there is no file ${path}`);
    return noSuchConfig(name, search);
  }
  const all = withSearchPath(path, search);
  const choices = new Choices(all, overrides);
  const root = { path, group: "", place: "", open: [], isLate: false };
  const files = new Expansion(all, choices).file(root).map(composedOf);
  choices.checkUsed();
  const tree = files.map((file) => file.tree).reduce(merged, {});
  return { tree, overrides: choices.values, files };
}

/** Adds the existing folders of `hydra.searchpath` in the first file. */
function withSearchPath(path: string, search: ConfigSearch): ConfigSearch {
  const { hydra } = readConfigFile(path).tree;
  const listed = isTree(hydra) && isList(hydra["searchpath"]) ? hydra["searchpath"] : [];
  const more = listed
    .filter((one) => typeof one === "string")
    .map((one) => resolve(one.replace(/^file:\/\//, "")))
    .filter((folder) => existsSync(folder));
  return { ...search, folders: [...search.folders, ...more] };
}

/** A file that takes part, and the place for its keys. */
interface Part {
  readonly file: ConfigFile;
  readonly place: string;
}

/** A file to expand. */
interface Asked extends ListOwner {
  /** The files that led to it. */
  readonly open: readonly string[];
  /** Whether one of those was chosen by the name of another choice. */
  readonly isLate: boolean;
}

/** An entry to expand, with the choice that was made for it. */
interface AskedEntry {
  readonly entry: Entry;
  readonly choice: Choice;
  readonly owner: Asked;
}

/** The expansion of the lists of defaults to one list of files. */
class Expansion {
  readonly #search: ConfigSearch;
  readonly #choices: Choices;
  readonly #read: Map<string, ConfigFile> = new Map();

  constructor(search: ConfigSearch, choices: Choices) {
    this.#search = search;
    this.#choices = choices;
  }

  /** Returns a file with all that it stands on, in the order in which they are merged. */
  file(asked: Asked): readonly Part[] {
    const { path, place, open } = asked;
    if (open.includes(path)) {
      throw new ConfigError(path, `has itself as a base: ${[...open, path].join(" -> ")}`);
    }
    const owner = { ...asked, open: [...open, path] };
    const file = this.#fileAt(path);
    const entries = [
      ...entriesOf(file.defaults, owner),
      ...(open.length === 0 ? this.#choices.added.map(additionOf) : []),
    ];
    for (const entry of entries) {
      if (entry !== self && entry.kind === "override") {
        this.#choices.override(entry, path, asked.isLate);
      }
    }
    const parts = entries.map((): readonly Part[] => []);
    const late: (() => void)[] = [];
    for (const [at, entry] of [...entries.entries()].toReversed()) {
      if (entry === self) parts[at] = [{ file, place }];
      if (entry === self || entry.kind === "override") continue;
      const choice = this.#choices.of(entry);
      const expand = (): void => {
        const isLate = asked.isLate || isByName(choice);
        const filled = this.#choices.filled(choice);
        parts[at] = this.#entry({ entry, choice: filled, owner: { ...owner, isLate } });
      };
      // Its name needs the choices of the other entries.
      if (isByName(choice)) late.push(expand);
      else expand();
    }
    for (const expand of late) expand();
    return parts.flat();
  }

  #entry({ entry, choice, owner }: AskedEntry): readonly Part[] {
    if (this.#choices.isRemoved(entry, choice)) return [];
    this.#choices.make(entry, choice, owner.path);
    return namesOf(choice).flatMap((name) => {
      if (name === "???") return this.#unchosen(entry, owner);
      const { group } = entry;
      const whole = group === "" ? name : `${group}/${name}`;
      const path = findConfig(whole, this.#search);
      if (path !== undefined) {
        const place = entry.place ?? this.#headOf(path) ?? entry.ownPlace;
        return this.file({ ...owner, path, group, place });
      }
      const isIgnored = this.#search.ignoredGroups?.has(group) === true;
      return entry.isOptional || isIgnored ? [] : noSuchConfig(whole, this.#search);
    });
  }

  #unchosen({ key, group }: Entry, { path }: Asked): never {
    const names = groupNames(group, this.#search);
    const [first = "NAME"] = names;
    throw new ConfigError(
      `${path}: defaults`,
      `leaves the choice of ${key} open; choose one of ${names.join(", ")} by ${key}=${first}`,
      "???",
    );
  }

  /** Returns the place that a file names in its head. */
  #headOf(path: string): string | undefined {
    const said = this.#fileAt(path).package;
    return said === "_global_" ? "" : said?.replace(/^_global_\./, "");
  }

  #fileAt(path: string): ConfigFile {
    const file = this.#read.get(path) ?? readConfigFile(path);
    this.#read.set(path, file);
    return file;
  }
}

/** Whether a choice has names of other choices in it: `${engine}_actor`. */
function isByName(choice: Choice): boolean {
  return namesOf(choice).some((name) => name.includes("${"));
}

/** Returns the entry that the command line adds behind those of the first file. */
function additionOf({ key, package: place, value = null }: Override): Entry {
  return {
    kind: "group",
    choice: choiceIn(value, key),
    isAdded: true,
    isOptional: false,
    ...placeOf(`/${key}`, place, { group: "", place: "" }),
  };
}

/** Returns a file with its keys in place, without the settings of the program that Hydra starts. */
function composedOf({ file: { path, tree }, place }: Part): ComposedFile {
  const { hydra: _hydra, ...own } = tree;
  return { path, tree: place === "" ? own : withValue({}, place.split("."), tree) };
}
