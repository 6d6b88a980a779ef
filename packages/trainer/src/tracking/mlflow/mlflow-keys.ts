/**
 * Names of metrics and parameters as an MLflow server takes them (`mlflow/utils/validation.py`), in
 * verl's spelling where that is one. Two names never share a key: the values of one would count as
 * the other's.
 */

import { createHash } from "node:crypto";

/** MLflow's limit of a key, in code points. */
const maxLength = 250;
const hashLength = 8;

/**
 * Spells as verl does: "@" is "_at_", several slashes are one, other characters that MLflow refuses
 * are "_". Beyond verl, parts that a path resolves ("a/./b", "../a", "/a") are spelt so that MLflow
 * takes them.
 */
export function mlflowKey(name: string): string {
  const spelt = name
    .replaceAll("@", "_at_")
    // MLflow asks Python's \w: letters and digits of all scripts, without combining marks.
    .replaceAll(/[^/\p{L}\p{N}_.\- :]/gu, "_")
    .replaceAll(/\/+/g, "/")
    .replace(/^\//, "");
  const cut = cutTo(spelt, maxLength).replace(/\/$/, "");
  const parts = cut.split("/").map((part) => (/^\.{1,2}$/.test(part) ? dashed(part) : part));
  // MLflow refuses whatever begins with two points.
  return parts.join("/").replace(/^\.\./, dashed) || "_";
}

/** The keys of one run, each of one name. */
export class MlflowKeys {
  readonly #what: string;
  readonly #warn: (problem: string) => void;
  readonly #keys = new Map<string, string>();
  readonly #taken = new Map<string, string>();

  /** @param what the names, for a warning: "metrics" */
  constructor(what: string, warn: (problem: string) => void) {
    this.#what = what;
    this.#warn = warn;
  }

  /**
   * Returns the key of a name, always the same. One whose key another name has gets an ending.
   *
   * @param id tells apart what has the same name; default: the name
   */
  of(name: string, id: string = name): string {
    const known = this.#keys.get(id);
    if (known !== undefined) return known;
    const plain = mlflowKey(name);
    const other = this.#taken.get(plain);
    const key = other === undefined ? plain : ending(plain, id);
    this.#keys.set(id, key);
    this.#taken.set(key, name);
    if (other !== undefined) {
      this.#warn(
        `the ${this.#what} ${JSON.stringify(other)} and ${JSON.stringify(name)} have one name ` +
          `on the server: the second is sent as ${JSON.stringify(key)}`,
      );
    }
    return key;
  }
}

/** The ending comes from the name alone: a resumed run finds it again. */
function ending(key: string, id: string): string {
  const hash = createHash("sha256").update(id).digest("hex").slice(0, hashLength);
  return `${cutTo(key, maxLength - hashLength - 1)}_${hash}`;
}

function dashed(points: string): string {
  return "_".repeat(points.length);
}

/** Cuts no character in two. */
function cutTo(text: string, length: number): string {
  return text.length <= length ? text : Array.from(text).slice(0, length).join("");
}
