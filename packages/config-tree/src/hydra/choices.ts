/**
 * The choices of files in a composition: those of the command line (`db=my`, `+db=my`, `~db`),
 * those of `override` entries, and those that the lists of defaults have made so far. The first
 * override of a key wins: the command line, then a file before the files that it lists.
 */

import { ConfigError } from "../config-error.ts";
import type { Choice, Entry } from "./defaults-list.ts";
import { type ConfigSearch, isGroup } from "./files.ts";
import { type Override, parseOverride } from "./grammar.ts";
import { nearestOf } from "../nearest.ts";
import { type ConfigValue, isList, isTree } from "../tree.ts";

/** A choice in place of the written one. */
interface Instead {
  readonly choice: Choice;
  /** The file with the override; undefined for the command line. */
  readonly path: string | undefined;
  /** The override as it is written. */
  readonly text: string;
}

export class Choices {
  /** Overrides that choose no file. */
  readonly values: readonly string[];
  /** Choices that the command line adds. */
  readonly added: readonly Override[];
  readonly #search: ConfigSearch;
  readonly #instead: Map<string, Instead> = new Map();
  readonly #removed: Map<string, Override> = new Map();
  readonly #used: Set<string> = new Set();
  /** Every choice of one name that was made, by its key. */
  readonly #made: Map<string, { readonly name: string | null; readonly isAdded: boolean }> =
    new Map();

  constructor(search: ConfigSearch, overrides: readonly string[]) {
    this.#search = search;
    const values: string[] = [];
    const added: Override[] = [];
    for (const text of overrides) {
      const override = parseOverride(text);
      const { sign, value = null } = override;
      const key = keyOf(override);
      const chooses = isGroup(override.key, search) && !override.key.includes(".");
      if (!chooses || isTree(value)) values.push(text);
      else if (sign === "~") this.#removed.set(key, override);
      else if (sign === "") {
        this.#instead.set(key, { choice: choiceIn(value, key), path: undefined, text });
      } else added.push(override);
    }
    this.values = values;
    this.added = added;
  }

  /**
   * Notes an `override` entry. Throws ConfigError for an entry that comes too late.
   *
   * @param path the file with the entry
   * @param isLate whether the file was chosen by the name of another choice
   */
  override(entry: Entry, path: string, isLate: boolean): void {
    const text = `override ${entry.key}: ${shown(entry.choice)}`;
    if (isLate) {
      throw new ConfigError(
        `${path}: defaults`,
        `has ${text}, and the file is chosen by a name with \${}; move the override to another file`,
      );
    }
    if (!this.#instead.has(entry.key))
      this.#instead.set(entry.key, { choice: entry.choice, path, text });
  }

  /** Returns the choice for an entry: the one of an override, or the written one. */
  of({ kind, key, choice }: Entry): Choice {
    const instead = kind === "group" ? this.#instead.get(key) : undefined;
    if (instead === undefined) return choice;
    this.#used.add(key);
    return instead.choice;
  }

  /** Whether the command line removes an entry. Throws ConfigError if it removes another choice. */
  isRemoved({ kind, key }: Entry, choice: Choice): boolean {
    const override = kind === "group" ? this.#removed.get(key) : undefined;
    if (override === undefined) return false;
    this.#used.add(key);
    const { value } = override;
    const names = namesOf(choice);
    if (value === undefined) return true;
    if (namesOf(choiceIn(value, key)).every((one) => names.includes(one))) return true;
    throw new ConfigError(
      key,
      `is ${shown(choice)}, not ${JSON.stringify(value)}, and is not removed`,
    );
  }

  /**
   * Notes what an entry has chosen. Throws ConfigError for a key with a choice.
   *
   * @param path the file with the entry
   */
  make({ kind, key, isAdded }: Entry, choice: Choice, path: string): void {
    if (kind !== "group" || (choice !== null && typeof choice !== "string")) return;
    const before = this.#made.get(key);
    if (before === undefined) {
      this.#made.set(key, { name: choice, isAdded });
      return;
    }
    if (before.name === null && choice === null) return;
    if (isAdded || before.isAdded) {
      const name = isAdded ? choice : before.name;
      throw new ConfigError(key, `is chosen already: ${key}=${shown(name)} chooses another`);
    }
    throw new ConfigError(
      `${path}: defaults`,
      `has ${key}: ${shown(choice)} beside ${key}: ${shown(before.name)}; ` +
        `"override ${key}: NAME" at the end of a list chooses another`,
    );
  }

  /** Fills in chosen names: `${engine}_actor`. Throws ConfigError. */
  filled(choice: Choice): Choice {
    if (choice === null) return null;
    if (typeof choice !== "string") return choice.map((name) => this.#name(name));
    return this.#name(choice);
  }

  #name(text: string): string {
    return text.replaceAll(/\$\{([^}]+)\}/g, (_match, written: string) => {
      const key = written.trim();
      const name = this.#made.get(key)?.name ?? null;
      if (name !== null) return name;
      const known = [...this.#made.keys()];
      const problem = `needs the choice of ${key}, and no entry has one`;
      throw new ConfigError(text, problem, undefined, nearestOf(key, known));
    });
  }

  /** Throws ConfigError for a choice that chose nothing. */
  checkUsed(): void {
    for (const [key, { path, text }] of this.#instead) {
      if (this.#used.has(key) || (path !== undefined && this.#isOthers(key))) continue;
      if (path !== undefined) throw this.#unused(key, path, text);
      throw new ConfigError(
        key,
        `nothing in the lists of defaults chooses one of ${key}; +${text} would add it`,
        undefined,
        this.#like(key),
      );
    }
    for (const [key, { text }] of this.#removed) {
      if (this.#used.has(key)) continue;
      const problem = `nothing in the lists of defaults chooses one of ${key}, so that ${text} removes nothing`;
      throw new ConfigError(key, problem, undefined, this.#like(key));
    }
  }

  /** Whether a group has no meaning here: those of Hydra itself, and those that are ignored. */
  #isOthers(key: string): boolean {
    const [group = ""] = key.split("@");
    return /^hydra(\/|$)/.test(group) || this.#search.ignoredGroups?.has(group) === true;
  }

  #unused(key: string, path: string, text: string): ConfigError {
    const problem = this.#made.has(key)
      ? `has ${text}, which comes too late: list the file behind the entry that it changes`
      : `has ${text}, and nothing in the lists of defaults chooses one of ${key}`;
    return new ConfigError(`${path}: defaults`, problem, undefined, this.#like(key));
  }

  /** Returns a choice with a similar key: another place of the group, or another spelling. */
  #like(key: string): string | undefined {
    const made = [...this.#made.keys()].filter((one) => one !== key);
    const last = (one: string): string => one.replace(/@.*$/, "").replace(/^.*\//, "");
    return made.find((one) => last(one) === last(key)) ?? nearestOf(key, made);
  }
}

/** Returns the choice in an override's value. Throws ConfigError. */
export function choiceIn(value: ConfigValue, key: string): Choice {
  if (value === null) return null;
  const nameOf = (name: ConfigValue): string => {
    if (typeof name !== "object") return String(name);
    throw new ConfigError(key, "must be the name of a file", value);
  };
  return isList(value) ? value.map(nameOf) : nameOf(value);
}

/** Returns the names in a choice. */
export function namesOf(choice: Choice): readonly string[] {
  if (choice === null) return [];
  return typeof choice === "string" ? [choice] : choice;
}

function keyOf({ key, package: place }: Override): string {
  return place === undefined ? key : `${key}@${place}`;
}

function shown(choice: Choice): string {
  return choice === null ? "null" : namesOf(choice).join(", ");
}
