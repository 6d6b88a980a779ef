/**
 * OmegaConf's references in a configuration. `${trainer.project_name}` is the value at that key,
 * `${.name}` a sibling, `${..name}` a sibling of the parent. A text that is only a reference
 * becomes the value itself; otherwise the value's text is inserted. `\${` is no reference.
 *
 * `${oc.select:key,default}` is a value with a default, `${oc.env:NAME,default}` an environment
 * variable, `${oc.decode:text}` the value that a text spells, `${oc.create:{a:1}}` keys or a list,
 * `${oc.deprecated:key}` the value of a key's new name. `${oc.dict.keys:key}` and
 * `${oc.dict.values:key}` are lists.
 */

import { ConfigError } from "../config-error.ts";
import { parseValue } from "./grammar.ts";
import { isList, isTree, treeOf, type ConfigTree, type ConfigValue } from "../tree.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Values that references may name beyond those of the tree. */
export interface ReferenceRules {
  /** Further values that references may name; the tree has precedence. */
  readonly among?: ConfigTree | undefined;
  /** The environment. Default `process.env`. */
  readonly environment?: Environment | undefined;
}

/** The most values, and characters of one text, in a configuration with its references resolved. */
const mostValues = 100_000;
const mostCharacters = 1_000_000;

/**
 * Throws ConfigError for a reference without a target, for circular references, and for references
 * that multiply a value beyond the limits.
 */
export function resolveReferences(tree: ConfigTree, rules: ReferenceRules = {}): ConfigTree {
  return treeOf(new References(tree, rules).value(tree, []));
}

type Path = readonly string[];

/** A resolved value, and the number of values in it. */
interface Resolved {
  readonly value: ConfigValue;
  readonly size: number;
}

class References {
  readonly #tree: ConfigTree;
  readonly #among: ConfigTree;
  readonly #environment: Environment;
  readonly #known: Map<string, Resolved> = new Map();
  readonly #open: string[] = [];
  #size = 0;

  constructor(tree: ConfigTree, { among = {}, environment = process.env }: ReferenceRules) {
    this.#tree = tree;
    this.#among = among;
    this.#environment = environment;
  }

  value(value: ConfigValue, path: Path): ConfigValue {
    this.#size += 1;
    if (this.#size > mostValues) {
      throw new ConfigError(
        nameOf(path),
        `has more than ${mostValues} values with its references resolved`,
      );
    }
    if (typeof value === "string") return this.#text(value, path);
    if (isList(value)) {
      return value.map((one, index) => this.value(one, [...path, String(index)]));
    }
    if (!isTree(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, inside]) => [key, this.value(inside, [...path, key])]),
    );
  }

  #text(text: string, path: Path): ConfigValue {
    if (!text.includes("${")) return text;
    const parts: ConfigValue[] = [];
    let plain = "";
    let at = 0;
    while (at < text.length) {
      const start = text.indexOf("${", at);
      if (start < 0) break;
      // Half of the backslashes before it stay; an odd one escapes it.
      const before = text.slice(at, start);
      const slashes = before.length - before.replace(/\\+$/, "").length;
      plain += before.slice(0, before.length - slashes) + "\\".repeat(Math.floor(slashes / 2));
      if (slashes % 2 === 1) {
        plain += "${";
        at = start + 2;
        continue;
      }
      const end = endOf(text, start);
      if (end === undefined) throw new ConfigError(nameOf(path), "has a ${ without its }", text);
      if (plain !== "") parts.push(plain);
      plain = "";
      parts.push(this.#reference(text.slice(start + 2, end), path));
      at = end + 1;
    }
    plain += text.slice(at);
    if (plain !== "") parts.push(plain);
    const [only = ""] = parts;
    if (parts.length < 2) return only;
    const whole = parts.map(textOf).join("");
    if (whole.length > mostCharacters) {
      throw new ConfigError(
        nameOf(path),
        `is a text of more than ${mostCharacters} characters with its references resolved`,
      );
    }
    return whole;
  }

  #reference(inside: string, path: Path): ConfigValue {
    const [, resolver, rest = ""] = /^\s*([A-Za-z_][\w.]*)\s*:([^]*)$/.exec(inside) ?? [];
    if (resolver !== undefined) return this.#call(resolver, argumentsOf(rest), path);
    // Its key may contain references.
    const name = textOf(this.#text(inside, path)).trim();
    const target = targetOf(name, path);
    if (target === undefined)
      throw new ConfigError(nameOf(path), `has \${${inside}}, which names no key`);
    const found = this.#at(target, path);
    if (found !== undefined) return found;
    throw new ConfigError(nameOf(path), `refers to ${nameOf(target)}, which does not exist`);
  }

  #call(resolver: string, given: readonly string[], path: Path): ConfigValue {
    const name = (): string => textOf(this.#argument(given[0] ?? "", path));
    const fallback = (): ConfigValue | undefined =>
      given[1] === undefined ? undefined : this.#argument(given.slice(1).join(","), path);
    switch (resolver) {
      case "oc.env": {
        const variable = name();
        const value = this.#environment[variable];
        if (value !== undefined) return value;
        const other = fallback();
        if (other === undefined) {
          throw new ConfigError(
            nameOf(path),
            `refers to the environment variable ${variable}, which is not set`,
          );
        }
        return other === null ? null : textOf(other);
      }
      case "oc.select": {
        const target = targetOf(name(), path);
        const found = target === undefined ? undefined : this.#at(target, path);
        // null is a value: only a key that is missing takes the default.
        return found === undefined ? (fallback() ?? null) : found;
      }
      case "oc.decode": {
        const text = this.#argument(given.join(","), path);
        if (text === null) return null;
        if (typeof text !== "string") {
          throw new ConfigError(nameOf(path), "has oc.decode of a value that is no text", text);
        }
        return this.value(parseValue(nameOf(path), text), path);
      }
      case "oc.create": {
        const value = this.#argument(given.join(","), path);
        if (value === null || typeof value === "object") return value;
        throw new ConfigError(
          nameOf(path),
          "has oc.create of a value that has neither keys nor items; oc.decode reads a text",
          value,
        );
      }
      case "oc.deprecated":
        return this.#deprecated(name(), path);
      case "oc.dict.keys":
      case "oc.dict.values": {
        const key = name();
        const target = targetOf(key, path);
        const found = target === undefined ? undefined : this.#at(target, path);
        if (!isTree(found))
          throw new ConfigError(nameOf(path), `refers to the keys of ${key}, which has none`);
        return resolver === "oc.dict.keys" ? Object.keys(found) : Object.values(found);
      }
      default:
        throw new ConfigError(nameOf(path), `there is no resolver ${resolver}`, resolver);
    }
  }

  /** Returns the value at the new name of a key, without the warning that OmegaConf writes. */
  #deprecated(key: string, path: Path): ConfigValue {
    const target = targetOf(key, path);
    const found = target === undefined ? undefined : this.#at(target, path);
    if (found !== undefined) return found;
    throw new ConfigError(nameOf(path), `refers to ${key}, which does not exist`);
  }

  #argument(text: string, path: Path): ConfigValue {
    const bare = text.trim();
    if (bare === "") return "";
    // Lists and keys are taken apart first: a reference in them is a value among others.
    if (/^[[{]/.test(bare)) return this.#inside(parseValue(nameOf(path), bare), path);
    if (!bare.includes("${")) return parseValue(nameOf(path), bare);
    const [, quote, inside = ""] = /^(['"])([^]*)\1$/.exec(bare) ?? [];
    return this.#text(quote === undefined ? bare : inside, path);
  }

  /** Returns a value of an argument; references in it are relative to the key with the call. */
  #inside(value: ConfigValue, path: Path): ConfigValue {
    if (typeof value === "string") return this.#text(value, path);
    if (isList(value)) return value.map((one) => this.#inside(one, path));
    if (!isTree(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, this.#inside(one, path)]),
    );
  }

  /** Returns undefined when the key does not exist. */
  #at(target: Path, from: Path): ConfigValue | undefined {
    const name = nameOf(target);
    const known = this.#known.get(name);
    if (known !== undefined) {
      this.#size += known.size;
      return known.value;
    }
    // The parent of the referring key would contain itself.
    const isAround = target.every((part, index) => from[index] === part);
    if (this.#open.includes(name) || isAround) {
      throw new ConfigError(
        nameOf(from),
        `has a circular reference: ${[...(this.#open.length === 0 ? [nameOf(from)] : this.#open), name].join(" -> ")}`,
      );
    }
    const written = this.#written(target, from);
    if (written === undefined) return undefined;
    this.#open.push(name);
    const before = this.#size;
    const value = this.value(written, target);
    this.#open.pop();
    this.#known.set(name, { value, size: this.#size - before });
    return value;
  }

  /** Returns the value at a path; a reference on the path leads to its target. */
  #written(target: Path, from: Path): ConfigValue | undefined {
    for (const root of [this.#tree, this.#among]) {
      let at: ConfigValue | undefined = root;
      for (const [index, part] of target.entries()) {
        if (typeof at === "string" && at.includes("${"))
          at = this.#at(target.slice(0, index), from);
        at = partOf(at, part);
      }
      if (at !== undefined) return at;
    }
    return undefined;
  }
}

function partOf(value: ConfigValue | undefined, part: string): ConfigValue | undefined {
  if (isList(value)) return /^\d+$/.test(part) ? value[Number(part)] : undefined;
  return isTree(value) && Object.hasOwn(value, part) ? value[part] : undefined;
}

/**
 * Parses `a.b[1]`, or, with dots before it, a path relative to the reference. Returns undefined for
 * an invalid key.
 */
function targetOf(name: string, path: Path): Path | undefined {
  const [, dots = "", key = ""] = /^(\.*)([^]*)$/.exec(name) ?? [];
  if (key === "" && dots === "") return undefined;
  const parts =
    key === ""
      ? []
      : key
          .replaceAll(/\[([^[\]]*)\]/g, ".$1")
          .replace(/^\./, "")
          .split(".");
  if (parts.includes("") || /[[\]{}\s]/.test(parts.join(""))) return undefined;
  if (dots === "") return parts;
  const base = path.slice(0, path.length - dots.length);
  return dots.length > path.length ? undefined : [...base, ...parts];
}

/** Finds the } of the ${ at `start`. */
function endOf(text: string, start: number): number | undefined {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "{") depth += 1;
    if (text[at] === "}" && --depth === 0) return at;
  }
  return undefined;
}

/** Splits at commas outside of brackets and quotes. */
function argumentsOf(text: string): string[] {
  const found: string[] = [];
  let [depth, from, quote] = [0, 0, ""];
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (quote !== "") {
      if (character === "\\") at += 1;
      else if (character === quote) quote = "";
    } else if (character === "'" || character === '"') quote = character;
    else if ("{[(".includes(character)) depth += 1;
    else if ("}])".includes(character)) depth -= 1;
    else if (character === "," && depth === 0) {
      found.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return [...found, text.slice(from)];
}

/** Returns the text that Python gives a value, because OmegaConf is written in Python. */
function textOf(value: ConfigValue): string {
  return typeof value === "string" ? value : literalOf(value);
}

/** Returns a value as Python writes it within a list. */
function literalOf(value: ConfigValue): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return pythonNumber(value);
  if (typeof value === "string") return pythonText(value);
  if (isList(value)) return `[${value.map(literalOf).join(", ")}]`;
  const entries = Object.entries(value);
  return `{${entries.map(([key, one]) => `${pythonText(key)}: ${literalOf(one)}`).join(", ")}}`;
}

/** Python takes single quotes, but for a text that has such and no double ones. */
function pythonText(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t")
    .replaceAll(quote, `\\${quote}`);
  return quote + escaped + quote;
}

/**
 * JavaScript writes 0.000001, 1e-7 and 10000000000000000 where Python writes 1e-06, 1e-07 and
 * 1e+16. Whether a whole number was written with a point is not known here: 1.0 is "1".
 */
function pythonNumber(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  if (Number.isSafeInteger(value)) return String(value);
  const size = Math.abs(value);
  const text = size < 1e-4 || size >= 1e16 ? value.toExponential() : String(value);
  const whole = Number.isInteger(value) && size < 1e16 ? ".0" : "";
  return text.replace(/e([+-])(\d)$/, "e$10$2") + whole;
}

function nameOf(path: Path): string {
  return path.join(".");
}
