/**
 * The list under `defaults` of a file: its entries with their groups, the places for their keys,
 * and the key by which an override chooses another file. This module reads no file.
 *
 * Only an entry of a group (`db: pg`) can be exchanged and removed. An entry by its bare name
 * (`base`, `db/pg`) is fixed, as in Hydra.
 */

import { join } from "node:path";
import { ConfigError } from "../config-error.ts";
import { type ConfigValue, isList, isTree } from "../tree.ts";

/** The place of `_self_`: the keys of the file itself. */
export const self = "_self_";

/** An entry of `defaults`. */
export interface Entry {
  /** `file`: a bare name. `group`: one file or several of a group. `override`: another choice. */
  readonly kind: "file" | "group" | "override";
  /** The group with slashes, relative to a search folder; "" for the folder itself. */
  readonly group: string;
  /** The written names of files in the group. */
  readonly choice: Choice;
  /** The written place for the keys, from the root, with dots; undefined without "@". */
  readonly place: string | undefined;
  /** The place for the keys if neither the entry nor the file names one. */
  readonly ownPlace: string;
  /** The key of the choice: `db`, or `db@source` where the place is another one. */
  readonly key: string;
  readonly isOptional: boolean;
  /** Whether the command line adds it. */
  readonly isAdded: boolean;
}

/** The name of a file, several names, or null for none. */
export type Choice = string | null | readonly string[];

/** The file that a list belongs to. */
export interface ListOwner {
  readonly path: string;
  /** The group of the file, with slashes. */
  readonly group: string;
  /** The place for its keys, with dots. */
  readonly place: string;
}

/**
 * Reads a list with `_self_` at its place, or at the end. Throws ConfigError for a list that Hydra
 * refuses.
 */
export function entriesOf(defaults: ConfigValue, owner: ListOwner): (Entry | typeof self)[] {
  const where = `${owner.path}: defaults`;
  const listed = isTree(defaults)
    ? Object.entries(defaults).map(([key, value]) => ({ [key]: value }))
    : defaults;
  if (!isList(listed)) throw new ConfigError(where, "must be a list of names", defaults);
  const entries = listed.map((one) => (one === self ? self : entryOf(one, where, owner)));
  const selves = entries.filter((one) => one === self).length;
  if (selves > 1) throw new ConfigError(where, "has _self_ twice; leave one of them");
  const first = entries.findIndex((one) => one !== self && one.kind === "override");
  const late = entries.find((one, at) => one !== self && one.kind !== "override" && at > first);
  if (first >= 0 && late !== undefined && late !== self) {
    throw new ConfigError(
      where,
      `has ${late.key} behind an override; overrides stand at the end of the list`,
    );
  }
  return selves === 0 ? [...entries, self] : entries;
}

function entryOf(written: ConfigValue, where: string, owner: ListOwner): Entry {
  const wrong = (): never => {
    throw new ConfigError(
      where,
      `has ${JSON.stringify(written)}, which is neither a name nor a group with one`,
      written,
    );
  };
  if (typeof written === "string") {
    const [name = "", place] = written.split("@");
    const slash = name.lastIndexOf("/");
    // "/pg" is a file of a search folder.
    const folder = slash === 0 ? "/" : name.slice(0, Math.max(slash, 0));
    return {
      kind: "file",
      choice: name.slice(slash + 1),
      isOptional: false,
      isAdded: false,
      ...placeOf(folder, place, owner),
    };
  }
  const [only] = isTree(written) ? Object.entries(written) : [];
  if (only === undefined) return wrong();
  const [key, value] = only;
  const [, words = "", name = "", , place] =
    /^((?:(?:override|optional)\s+)*)([^@\s]+)(@(\S+))?$/.exec(key) ?? [];
  if (name === "" || !isChoice(value)) return wrong();
  return {
    kind: words.includes("override") ? "override" : "group",
    choice: value,
    isOptional: words.includes("optional"),
    isAdded: false,
    ...placeOf(name, place, owner),
  };
}

function isChoice(value: ConfigValue | undefined): value is Choice {
  if (value === null || typeof value === "string") return true;
  return isList(value) && value.every((one) => typeof one === "string");
}

type Placed = Pick<Entry, "group" | "place" | "ownPlace" | "key">;

/**
 * Resolves a written group and place.
 *
 * @param written the group: `db` and `../db` are relative to the owner's group, `/db` is not
 * @param at the text behind "@", if there is one
 */
export function placeOf(
  written: string,
  at: string | undefined,
  owner: Pick<ListOwner, "group" | "place">,
): Placed {
  const group = written.startsWith("/")
    ? written.slice(1)
    : join("/", owner.group, written).slice(1).replace(/\/$/, "");
  const relative = written.replace(/^(?:\.{0,2}\/)+/, "");
  const ownPlace = joined(owner.place, relative.replaceAll("/", "."));
  const usual = group.replaceAll("/", ".");
  const place =
    at === undefined
      ? undefined
      : absolute(at.replace(/^_group_/, `_global_.${usual}`), owner.place);
  const last = place ?? ownPlace;
  const key = last === usual ? group : `${group}@${last === "" ? "_global_" : last}`;
  return { group, place, ownPlace, key };
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
