/**
 * Hydra's grammar of overrides, `key=value` on a command line. Tokens and rules are those of Hydra
 * 1.3, so that a command line has the same meaning in both: `1_024` is a number and `0125` a text,
 * `\,` a comma, `'it\'s'` a text, `{a:1}` keys and `[1,2]` a list, `int('3')` a number.
 */

import { ConfigError } from "../config-error.ts";
import type { ConfigValue } from "../tree.ts";
import { isList } from "../tree.ts";

/** An override of a command line, taken apart. */
export interface Override {
  /** The operation: "" changes an existing key, "+" adds one, "++" does either, "~" removes one. */
  readonly sign: "" | "+" | "++" | "~";
  /** The key with dots, or a group with slashes: `a.b`, `db`, `db/engine`. */
  readonly key: string;
  /** The place for a group's keys: `group@package=name`. */
  readonly package: string | undefined;
  /** Undefined without a value: `~a.b`. */
  readonly value: ConfigValue | undefined;
  /** The override as it was written. */
  readonly text: string;
}

type TokenKind =
  | "("
  | ","
  | ")"
  | "["
  | "]"
  | "{"
  | "}"
  | ":"
  | "="
  | "float"
  | "int"
  | "bool"
  | "null"
  | "char"
  | "id"
  | "escape"
  | "space"
  | "quoted"
  | "reference"
  | "end";

interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly at: number;
}

const unsigned = String.raw`(?:0|[1-9](?:_?[0-9])*)`;
const point = String.raw`(?:${unsigned}?\.[0-9](?:_?[0-9])*|${unsigned}\.)`;
const exponent = String.raw`(?:(?:${point}|${unsigned})[eE][+-]?[0-9](?:_?[0-9])*)`;

/** The longest match wins; among equal ones, the first. */
const tokens: readonly (readonly [TokenKind, RegExp])[] = [
  ["(", /[ \t]*\([ \t]*/y],
  [",", /[ \t]*,[ \t]*/y],
  [")", /[ \t]*\)/y],
  ["[", /\[[ \t]*/y],
  ["]", /[ \t]*\]/y],
  ["{", /\{[ \t]*/y],
  ["}", /[ \t]*\}/y],
  [":", /[ \t]*:[ \t]*/y],
  ["=", /[ \t]*=[ \t]*/y],
  ["float", new RegExp(`[+-]?(?:${exponent}|${point}|[iI][nN][fF]|[nN][aA][nN])`, "y")],
  ["int", new RegExp(`[+-]?${unsigned}`, "y")],
  ["bool", /true|false/iy],
  ["null", /null/iy],
  ["char", /[/\-\\+.$%*@?|]/y],
  ["id", /[a-zA-Z_][a-zA-Z0-9_-]*/y],
  ["escape", /(?:\\[\\()[\]{}:=, \t])+/y],
  ["space", /[ \t]+/y],
  ["quoted", /"(?:(?:\\\\)*"|[^]*?[^\\](?:\\\\)*")/y],
  ["quoted", /'(?:(?:\\\\)*'|[^]*?[^\\](?:\\\\)*')/y],
  ["reference", /\$\{[^}]+\}/y],
];

/** The tokens of a text without quotes. */
const plain: ReadonlySet<TokenKind> = new Set<TokenKind>([
  "id",
  "null",
  "int",
  "float",
  "bool",
  "reference",
  "char",
  ":",
  "escape",
  "space",
]);

const plainKey: ReadonlySet<TokenKind> = new Set(
  [...plain].filter((kind) => kind !== ":" && kind !== "reference"),
);

const idPattern = String.raw`[a-zA-Z_][a-zA-Z0-9_-]*`;
const partPattern = String.raw`(?:[a-zA-Z_$][a-zA-Z0-9_$-]*|${unsigned})`;
const packagePattern = String.raw`(?:${partPattern}(?:\.${partPattern})+|[a-zA-Z_$][a-zA-Z0-9_$-]*)`;
const keyPattern = new RegExp(
  `^(\\+\\+|\\+|~)?(${idPattern}(?:/${idPattern})+|${packagePattern})(?:@(${packagePattern})?)?(?:=[ \\t]*([^]*))?$`,
);

/** Throws ConfigError, which names the key, for a text that is no override in Hydra's grammar. */
export function parseOverride(text: string): Override {
  const [match, sign = "", key = "", target, value] = keyPattern.exec(text) ?? [];
  if (match === undefined) {
    throw new ConfigError(text, "is no override; write key.key=value, +key=value or ~key");
  }
  if (value === undefined && sign !== "~") {
    throw new ConfigError(key, "has no value; write key=value");
  }
  return {
    sign: sign as Override["sign"],
    key,
    package: target,
    value: value === undefined ? undefined : parseValue(key, value),
    text,
  };
}

/** Parses the text behind the "=". Throws ConfigError. */
export function parseValue(key: string, text: string): ConfigValue {
  return text === "" ? "" : new ValueParser(key, text).whole();
}

/** Functions of the grammar. A sweep is refused, because only Hydra's multirun has sweeps. */
type Scalar = string | number | boolean;
type Casts = Readonly<Record<string, (value: Scalar, wrong: (why: string) => never) => Scalar>>;

const casts: Casts = {
  int: (value, wrong) => {
    const number = typeof value === "string" ? pythonNumber(value, true) : Number(value);
    return Number.isFinite(number)
      ? Math.trunc(number)
      : wrong(`${shown(value)} is no whole number`);
  },
  float: (value, wrong) => {
    const number = typeof value === "string" ? pythonNumber(value, false) : Number(value);
    const isNaNText = typeof value === "string" && /^\s*[+-]?nan\s*$/i.test(value);
    return Number.isNaN(number) && !isNaNText && typeof value === "string"
      ? wrong(`${shown(value)} is no number`)
      : number;
  },
  str: (value) => String(value),
  bool: (value, wrong) => {
    if (typeof value !== "string") return Boolean(value) || Number.isNaN(value);
    const lower = value.toLowerCase();
    return (
      lower === "true" || (lower !== "false" && wrong(`${shown(value)} is neither true nor false`))
    );
  },
};

const sweeps: ReadonlySet<string> = new Set([
  "choice",
  "range",
  "interval",
  "glob",
  "tag",
  "sort",
  "shuffle",
]);

function pythonNumber(text: string, isWhole: boolean): number {
  const bare = text.trim().replaceAll(/(?<=\d)_(?=\d)/g, "");
  if (isWhole) return /^[+-]?\d+$/.test(bare) ? Number(bare) : Number.NaN;
  if (/^[+-]?inf(inity)?$/i.test(bare)) return bare.startsWith("-") ? -Infinity : Infinity;
  return /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(bare) ? Number(bare) : Number.NaN;
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}

class ValueParser {
  readonly #key: string;
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(key: string, text: string) {
    this.#key = key;
    this.#text = text;
    this.#tokens = this.#tokenize();
  }

  whole(): ConfigValue {
    const value = this.#element();
    if (this.#peek().kind === ",") {
      this.#fail(
        `is several values, ${this.#text}: a list is written [${this.#text}], a text with a comma '${this.#text}'`,
      );
    }
    this.#take("end");
    return value;
  }

  #element(): ConfigValue {
    switch (this.#peek().kind) {
      case "[":
        return this.#list();
      case "{":
        return this.#keys();
      case "id":
        return this.#peek(1).kind === "(" ? this.#call() : this.#primitive();
      default:
        return this.#primitive();
    }
  }

  #list(): ConfigValue {
    this.#take("[");
    return this.#several("]", () => this.#element());
  }

  #keys(): ConfigValue {
    this.#take("{");
    const entries = this.#several("}", (): [string, ConfigValue] => {
      const name = this.#primitive(true);
      this.#take(":");
      return [name === null ? "null" : String(name), this.#element()];
    });
    return Object.fromEntries(entries);
  }

  #call(): ConfigValue {
    const { text: name } = this.#take("id");
    this.#take("(");
    const given = this.#several(")", () => {
      const isNamed = this.#peek().kind === "id" && this.#peek(1).kind === "=";
      const argument = isNamed ? this.#take("id").text : undefined;
      if (isNamed) this.#take("=");
      return { argument, value: this.#element() };
    });
    const wrong = (why: string): never => this.#fail(`${name}(): ${why}`);
    if (sweeps.has(name) || given.length > 1) {
      return wrong("a sweep makes several runs; give one value");
    }
    const [only] = given;
    if (only === undefined) return wrong("there is nothing in the brackets");
    if (only.argument !== undefined && only.argument !== "value") {
      return wrong(`there is no argument ${only.argument}`);
    }
    if (name === "json_str") return JSON.stringify(only.value);
    const cast = casts[name];
    if (cast === undefined) {
      return wrong(
        `there is no function ${name}; there are ${Object.keys(casts).join(", ")}, json_str`,
      );
    }
    return this.#cast(only.value, (value) => cast(value, wrong), wrong);
  }

  /** Casts a value, or each value in lists and keys. */
  #cast(
    value: ConfigValue,
    cast: (value: Scalar) => Scalar,
    wrong: (why: string) => never,
  ): ConfigValue {
    if (value === null) return wrong("null cannot be converted");
    if (typeof value !== "object") return cast(value);
    if (isList(value)) return value.map((one) => this.#cast(one, cast, wrong));
    const entries = Object.entries(value);
    return Object.fromEntries(entries.map(([key, one]) => [key, this.#cast(one, cast, wrong)]));
  }

  #several<Item>(end: TokenKind, item: () => Item): Item[] {
    const items: Item[] = [];
    if (this.#peek().kind !== end) {
      do items.push(item());
      while (this.#skip(","));
    }
    this.#take(end);
    return items;
  }

  #primitive(isKey = false): null | boolean | number | string {
    if (!isKey && this.#peek().kind === "quoted") return unquoted(this.#take("quoted").text);
    const kinds = isKey ? plainKey : plain;
    const parts: Token[] = [];
    while (kinds.has(this.#peek().kind)) {
      parts.push(this.#shift());
    }
    if (parts.length === 0) return this.#unexpected();
    if (parts.length === 1 && parts[0]?.kind === "space") this.#fail("contains only spaces");
    if (parts[0]?.kind === "space") parts.shift();
    if (parts.at(-1)?.kind === "space") parts.pop();
    const [only] = parts;
    if (only !== undefined && parts.length === 1) return this.#single(only);
    return parts.map(textOf).join("");
  }

  #single(token: Token): null | boolean | number | string {
    switch (token.kind) {
      case "null":
        return null;
      case "bool":
        return token.text.toLowerCase() === "true";
      case "int": {
        const number = Number(token.text.replaceAll("_", ""));
        if (!Number.isSafeInteger(number))
          this.#fail(`is ${token.text}, which a number cannot hold`);
        // The result is never minus zero.
        return number === 0 ? 0 : number;
      }
      case "float":
        return floatOf(token.text);
      default:
        return textOf(token);
    }
  }

  #peek(ahead = 0): Token {
    const token = this.#tokens[this.#next + ahead] ?? this.#tokens.at(-1);
    return token ?? this.#fail("is empty");
  }

  #shift(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  #skip(kind: TokenKind): boolean {
    if (this.#peek().kind !== kind) return false;
    this.#shift();
    return true;
  }

  #take(kind: TokenKind): Token {
    return this.#peek().kind === kind ? this.#shift() : this.#unexpected();
  }

  #unexpected(): never {
    const { kind, text, at } = this.#peek();
    if (kind === "quoted" && this.#tokens[this.#next + 1]?.kind === ":") {
      return this.#fail(`its value ${this.#text} has a key in quotes, ${text}: keys stand without`);
    }
    const found = kind === "end" ? "ends too early" : `has "${text.trim()}" at place ${at + 1}`;
    return this.#fail(
      `its value ${this.#text} ${found}; a text with such characters stands in quotes: '${this.#text}'`,
    );
  }

  #fail(problem: string): never {
    throw new ConfigError(this.#key, problem, this.#text);
  }

  #tokenize(): Token[] {
    const found: Token[] = [];
    let at = 0;
    while (at < this.#text.length) {
      let [longest, kind]: [string, TokenKind | undefined] = ["", undefined];
      for (const [name, pattern] of tokens) {
        pattern.lastIndex = at;
        const [text = ""] = pattern.exec(this.#text) ?? [];
        if (text.length > longest.length) [longest, kind] = [text, name];
      }
      if (kind === undefined) {
        const character = String.fromCodePoint(this.#text.codePointAt(at) ?? 0);
        return this.#fail(
          `its value ${this.#text} has ${character} at place ${at + 1}; a text with such characters stands in quotes: '${this.#text}'`,
        );
      }
      found.push({ kind, text: longest, at });
      at += longest.length;
    }
    return [...found, { kind: "end", text: "", at }];
  }
}

function textOf({ kind, text }: Token): string {
  return kind === "escape" ? text.replaceAll(/\\([^])/g, "$1") : text;
}

function floatOf(text: string): number {
  const bare = text.replaceAll("_", "").toLowerCase();
  if (bare.endsWith("inf")) return bare.startsWith("-") ? -Infinity : Infinity;
  return bare.endsWith("nan") ? Number.NaN : Number(bare);
}

/** A backslash is special only before a quote, and takes the next character literally. */
function unquoted(text: string): string {
  const escaped = text.startsWith('"') ? /\\+"/g : /\\+'/g;
  const inside = text.slice(1);
  const result = inside.replaceAll(escaped, (run) => run.replaceAll(/[^]([^]?)/g, "$1"));
  // Backslashes before the closing quote count in pairs; the quote goes with the last one.
  return inside.at(-2) === "\\" ? result : result.slice(0, -1);
}
