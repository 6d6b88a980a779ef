/**
 * A configuration of several files, composed as Hydra does. Under `defaults` a file lists its
 * bases. Each one overrides those before it, and the file itself stands at `_self_`, or at the end.
 *
 * An entry names a file (`base`, `db/pg`), or a file of a group (`db: pg`), with the place for its
 * keys (`db@source: pg`). Overrides of a command line may choose another one (`db=my`), add one
 * (`+db=my`) and remove one (`~db`).
 */

import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ConfigError } from "../config-error.ts";
import {
  type ConfigSearch,
  configNames,
  findConfig,
  isGroup,
  noSuchConfig,
  readConfigFile,
} from "./files.ts";
import { type Override, parseOverride } from "./grammar.ts";
import { isList, isTree, merged, type ConfigTree, type ConfigValue, withValue } from "../tree.ts";

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
  const composer = new Composer(withSearchPath(path, search), overrides);
  const tree = composer.file(path, "", "", []);
  composer.checkUsed();
  return { tree, overrides: composer.values, files: composer.files };
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

/** An entry of `defaults`. */
interface Entry {
  /** The group with slashes, relative to a search folder; undefined for a file by its own name. */
  readonly group: string | undefined;
  /** The names of the file, or of several files of the group; an empty list chooses nothing. */
  readonly names: readonly string[];
  /** The text behind "@". */
  readonly place: string | undefined;
  readonly isOverride: boolean;
  readonly isOptional: boolean;
}

class Composer {
  readonly values: readonly string[];
  readonly files: ComposedFile[] = [];
  readonly #search: ConfigSearch;
  /** Choices of the command line, by group and place; undefined chooses nothing. */
  readonly #chosen: Map<string, Override> = new Map();
  readonly #added: Override[] = [];
  readonly #used: Set<string> = new Set();
  /** Choices of files, by group and place; those that are read first win. */
  readonly #overriding: Map<string, readonly string[]> = new Map();
  /** Choices by group, for ${group} in an entry. */
  readonly #choices: Map<string, string> = new Map();

  constructor(search: ConfigSearch, overrides: readonly string[]) {
    this.#search = search;
    const values: string[] = [];
    for (const text of overrides) {
      const override = parseOverride(text);
      const isChoice = isGroup(override.key, search) && !override.key.includes(".");
      if (!isChoice) values.push(text);
      else if (override.sign === "+" || override.sign === "++") this.#added.push(override);
      else this.#chosen.set(keyOf(override.key, override.package), override);
    }
    this.values = values;
  }

  /** Throws ConfigError for a choice that chose nothing. */
  checkUsed(): void {
    for (const [key, { text }] of this.#chosen) {
      if (!this.#used.has(key)) {
        throw new ConfigError(
          key,
          `nothing in the lists of defaults chooses one of ${key}; +${text} would add it`,
        );
      }
    }
  }

  /**
   * @param group the group of the file, with slashes
   * @param place the place for its keys, with dots
   */
  file(path: string, group: string, place: string, open: readonly string[]): ConfigTree {
    if (open.includes(path)) {
      throw new ConfigError(path, `has itself as a base: ${[...open, path].join(" -> ")}`);
    }
    const { defaults = [], ...own } = readConfigFile(path).tree;
    const listed = isTree(defaults)
      ? Object.entries(defaults).map(([key, value]) => ({ [key]: value }))
      : defaults;
    if (!isList(listed)) {
      throw new ConfigError(`${path}: defaults`, "must be a list of names", defaults);
    }
    const entries = listed
      .filter((one) => one !== "_self_")
      .map((one) => this.#entry(one, path, group));
    for (const entry of entries) {
      if (entry.isOverride) this.#override(entry, place);
    }
    const self = listed.indexOf("_self_");
    const before = self < 0 ? entries : entries.slice(0, self);
    const isFirst = open.length === 0;
    const inside = [...open, path];
    const keep = (): ConfigTree => {
      const tree = isFirst ? withoutHydra(own) : placed(own, place);
      this.files.push({ path, tree });
      return tree;
    };
    const parts = [
      ...before.map((entry) => this.#part(entry, group, place, inside)),
      keep(),
      ...(self < 0 ? [] : entries.slice(self)).map((entry) =>
        this.#part(entry, group, place, inside),
      ),
      ...(isFirst ? this.#added.map((override) => this.#addition(override, inside)) : []),
    ];
    return parts.reduce(merged, {});
  }

  #entry(written: ConfigValue, path: string, group: string): Entry {
    const wrong = (): never => {
      throw new ConfigError(
        `${path}: defaults`,
        `has ${JSON.stringify(written)}, which is neither a name nor a group with one`,
        written,
      );
    };
    if (typeof written === "string") {
      const [name = "", place] = written.split("@");
      const whole = inGroup(name, group);
      const slash = whole.lastIndexOf("/");
      return {
        group: slash < 0 ? undefined : whole.slice(0, slash),
        names: [whole.slice(slash + 1)],
        place,
        isOverride: false,
        isOptional: false,
      };
    }
    const [only] = isTree(written) ? Object.entries(written) : [];
    if (only === undefined) return wrong();
    const [key, value] = only;
    const [, words = "", name = "", , place] =
      /^((?:(?:override|optional)\s+)*)([^@\s]+)(@(\S+))?$/.exec(key) ?? [];
    const names = value === null ? [] : Array.isArray(value) ? value : [value];
    if (name === "" || !names.every((one) => typeof one === "string")) return wrong();
    const isOverride = words.includes("override");
    return {
      group: isOverride ? name.replace(/^\//, "") : inGroup(name, group),
      names,
      place,
      isOverride,
      isOptional: words.includes("optional"),
    };
  }

  #override(entry: Entry, place: string): void {
    const key = keyOf(
      entry.group ?? "",
      entry.place === undefined ? undefined : absolute(entry.place, place),
    );
    if (!this.#overriding.has(key)) this.#overriding.set(key, entry.names);
  }

  #part(entry: Entry, group: string, parent: string, open: readonly string[]): ConfigTree {
    if (entry.isOverride) return {};
    const { group: own } = entry;
    if (own === undefined) return this.#named(entry, group, parent, open);
    const place = entry.place === undefined ? undefined : absolute(entry.place, parent);
    const key = keyOf(own, place);
    const names = this.#namesOf(key, entry.names);
    const [first] = names;
    if (first !== undefined) this.#choices.set(own, first);
    return this.#named({ ...entry, names }, group, parent, open);
  }

  /** Returns the names that were chosen instead of the written ones. */
  #namesOf(key: string, written: readonly string[]): readonly string[] {
    const override = this.#chosen.get(key);
    const names = (this.#overriding.get(key) ?? written).map((name) => this.#filled(name));
    if (override === undefined) return names;
    this.#used.add(key);
    const value = override.value ?? null;
    if (override.sign === "~") {
      if (override.value === undefined || namesIn(value, key).every((one) => names.includes(one)))
        return [];
      throw new ConfigError(
        key,
        `is ${names.join(", ")}, not ${JSON.stringify(value)}, and is not removed`,
      );
    }
    return namesIn(value, key);
  }

  #named(entry: Entry, group: string, parent: string, open: readonly string[]): ConfigTree {
    return entry.names.reduce<ConfigTree>((result, name) => {
      const whole = entry.group === undefined ? name : `${entry.group}/${name}`;
      const path = findConfig(whole, this.#search);
      if (path === undefined) {
        const isIgnored = this.#search.ignoredGroups?.has(entry.group ?? "") === true;
        if (entry.isOptional || isIgnored) return result;
        return noSuchConfig(whole, this.#search);
      }
      const place = this.#placeOf(path, entry, group, parent);
      return merged(result, this.file(path, entry.group ?? "", place, open));
    }, {});
  }

  /**
   * Returns the place of an entry: its own, else the file's, else its group, relative to the group
   * of the file that names it.
   */
  #placeOf(path: string, entry: Entry, group: string, parent: string): string {
    if (entry.place !== undefined) return absolute(entry.place, parent);
    const said = readConfigFile(path).package;
    if (said !== undefined) return said === "_global_" ? "" : said.replace(/^_global_\./, "");
    const own = entry.group ?? "";
    const isInside = own === group || own.startsWith(`${group}/`);
    const below = group === "" || !isInside ? own : own.slice(group.length + 1);
    return joined(parent, below.replaceAll("/", "."));
  }

  #addition({ key, package: place, value = null }: Override, open: readonly string[]): ConfigTree {
    if (this.#choices.has(key) && place === undefined) {
      throw new ConfigError(
        key,
        `is chosen already: ${key}=${namesIn(value, key).join(",")} chooses another`,
      );
    }
    const entry: Entry = {
      group: key,
      names: namesIn(value, key),
      place,
      isOverride: false,
      isOptional: false,
    };
    return this.#named(entry, "", "", open);
  }

  /** Fills in chosen names: `${engine}_actor`. */
  #filled(name: string): string {
    return name.replaceAll(/\$\{([^}]+)\}/g, (_match, group: string) => {
      const chosen = this.#chosenOf(group.trim());
      if (chosen !== undefined) return chosen;
      throw new ConfigError(name, `needs the choice of ${group}, and no entry before it has one`);
    });
  }

  #chosenOf(group: string): string | undefined {
    const override = this.#chosen.get(group);
    const value = override?.sign === "" ? override.value : undefined;
    return typeof value === "string" ? value : this.#choices.get(group);
  }
}

function namesIn(value: ConfigValue, key: string): readonly string[] {
  if (value === null) return [];
  const names = isList(value) ? value : [value];
  return names.map((name) => {
    if (typeof name === "object") throw new ConfigError(key, "must be the name of a file", value);
    return String(name);
  });
}

/**
 * Resolves a group relative to the group of the file that names it: `db`, `../db`; `/db` is
 * relative to a search folder.
 */
function inGroup(name: string, group: string): string {
  if (name.startsWith("/")) return name.slice(1);
  return join("/", group, name).slice(1);
}

/**
 * Resolves `_here_` and names relative to the place of the file that names them; `_global_` is the
 * root.
 */
function absolute(place: string, parent: string): string {
  if (place === "_global_") return "";
  if (place.startsWith("_global_.")) return place.slice("_global_.".length);
  return joined(parent, place === "_here_" ? "" : place.replace(/^_here_\./, ""));
}

function joined(parent: string, place: string): string {
  return [parent, place].filter((part) => part !== "").join(".");
}

function placed(tree: ConfigTree, place: string): ConfigTree {
  return place === "" ? tree : withValue({}, place.split("."), tree);
}

/** Drops the settings of the program that Hydra starts. */
function withoutHydra({ hydra: _hydra, ...tree }: ConfigTree): ConfigTree {
  return tree;
}

function keyOf(group: string, place: string | undefined): string {
  return place === undefined ? group : `${group}@${place}`;
}
