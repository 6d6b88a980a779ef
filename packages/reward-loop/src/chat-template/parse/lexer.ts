/**
 * A template's text to tokens, as jinja2's lexer with trim_blocks and lstrip_blocks, which
 * transformers sets. Owns white space: what a tag takes away around it, by itself, with `-` and
 * with `+`; which line breaks there are (CRLF and CR are LF); raw blocks and comments.
 */

import { syntaxError } from "../error.ts";
import { SPACE } from "../python/text.ts";

export type TokenKind =
  | "text"
  | "open"
  | "close"
  | "name"
  | "string"
  | "int"
  | "float"
  | "operator"
  | "end";

export interface Token {
  readonly kind: TokenKind;
  /** The delimiter of `open` and `close`: `{{`, `{%`, `}}`, `%}`. The content of a string. */
  readonly text: string;
  readonly line: number;
}

const S = `[${SPACE}]`;
const opening = new RegExp(
  `\\{%([-+]?)${S}*raw${S}*(?:-%\\}${S}*|%\\})|\\{\\{([-+]?)|\\{%([-+]?)|\\{#([-+]?)`,
  "g",
);
const commentEnd = new RegExp(`\\+#\\}|-#\\}${S}*|#\\}\\n?`, "g");
const rawEnd = new RegExp(`\\{%([-+]?)${S}*endraw${S}*(?:\\+%\\}|-%\\}${S}*|%\\}\\n?)`, "g");
const blockEnd = new RegExp(`\\+%\\}|-%\\}${S}*|%\\}\\n?`, "y");
const outputEnd = new RegExp(`-\\}\\}${S}*|\\}\\}`, "y");
const tokenRules: readonly (readonly [TokenKind | "space", RegExp])[] = [
  ["space", new RegExp(`${S}+`, "y")],
  ["float", /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy],
  ["int", /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy],
  ["name", /[\p{L}\p{N}_]+/uy],
  ["string", /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/sy],
  ["operator", /\/\/|\*\*|==|!=|>=|<=|[-+/*%~[\](){}>:|,;.=<]/y],
];

const trimmedEnd = new RegExp(`${S}+$`);
const onlySpace = new RegExp(`^${S}*$`);
const closers: Readonly<Record<string, string>> = { "{": "}", "(": ")", "[": "]" };

/** Throws CHAT_TEMPLATE_SYNTAX. */
export function tokensOf(template: string): readonly Token[] {
  return new Lexer(template.replace(/\r\n|\r/g, "\n").replace(/\n$/, "")).run();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  /** Whether the last tag took the line break behind it. */
  #isLineStart = true;

  constructor(source: string) {
    this.#source = source;
  }

  run(): readonly Token[] {
    while (this.#at < this.#source.length) {
      opening.lastIndex = this.#at;
      const match = opening.exec(this.#source);
      if (match === null) {
        this.#text(this.#source.slice(this.#at));
        this.#advance(this.#source.length - this.#at);
        break;
      }
      const [whole, raw, output, block, comment] = match;
      const sign = raw ?? output ?? block ?? comment ?? "";
      this.#text(
        this.#stripped(this.#source.slice(this.#at, match.index), sign, output === undefined),
      );
      this.#advance(match.index + whole.length - this.#at);
      if (raw !== undefined) this.#raw();
      else if (comment !== undefined) this.#comment();
      else this.#tag(output === undefined ? "{%" : "{{");
    }
    this.#push("end", "");
    return this.#tokens;
  }

  /** Takes from the text before a tag what the tag takes away. */
  #stripped(text: string, sign: string, isBlock: boolean): string {
    if (sign === "-") return text.replace(trimmedEnd, "");
    if (sign === "+" || !isBlock) return text;
    const lineStart = text.lastIndexOf("\n") + 1;
    if (lineStart === 0 && !this.#isLineStart) return text;
    return onlySpace.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
  }

  #comment(): void {
    commentEnd.lastIndex = this.#at;
    const end = commentEnd.exec(this.#source);
    if (end === null) syntaxError("a comment has no end", this.#line);
    this.#advance(end.index + end[0].length - this.#at);
  }

  #raw(): void {
    rawEnd.lastIndex = this.#at;
    const end = rawEnd.exec(this.#source);
    if (end === null) syntaxError("a raw block has no end", this.#line);
    const [whole, sign = ""] = end;
    this.#text(this.#stripped(this.#source.slice(this.#at, end.index), sign, true));
    this.#advance(end.index + whole.length - this.#at);
  }

  #tag(open: "{{" | "{%"): void {
    this.#push("open", open);
    const end = open === "{{" ? outputEnd : blockEnd;
    const expected: string[] = [];
    for (;;) {
      const closed = expected.length === 0 ? this.#match(end) : undefined;
      if (closed !== undefined) {
        this.#push("close", open === "{{" ? "}}" : "%}");
        this.#advance(closed.length);
        return;
      }
      this.#next(expected);
    }
  }

  #next(expected: string[]): void {
    for (const [kind, rule] of tokenRules) {
      const text = this.#match(rule);
      if (text === undefined) continue;
      if (kind === "operator") this.#balance(text, expected);
      if (kind === "name" && !/^[\p{L}\p{Nl}_]/u.test(text)) {
        syntaxError(`${text} is no name`, this.#line);
      }
      if (kind === "string") this.#push(kind, this.#unescaped(text.slice(1, -1)));
      else if (kind !== "space") this.#push(kind, text);
      this.#advance(text.length);
      return;
    }
    const seen = this.#source[this.#at];
    if (seen === undefined) syntaxError("a tag has no end", this.#line);
    syntaxError(`unexpected ${JSON.stringify(seen)}`, this.#line);
  }

  #balance(text: string, expected: string[]): void {
    const closer = closers[text];
    if (closer !== undefined) expected.push(closer);
    else if (/[})\]]/.test(text) && expected.pop() !== text) {
      syntaxError(`unexpected ${text}`, this.#line);
    }
  }

  /** Python's escapes; one that it does not know stays as it stands. */
  #unescaped(text: string): string {
    return text.replace(
      /\\(?:x([\da-f]{2})|u([\da-f]{4})|U([\da-f]{8})|([0-7]{1,3})|(\n)|([\s\S]))/gi,
      (whole: string, ...groups: readonly (string | undefined)[]) => {
        const [x, u, long, octal, newline, one] = groups;
        const hex = x ?? u ?? long;
        if (hex !== undefined) return this.#character(Number.parseInt(hex, 16));
        if (octal !== undefined) return this.#character(Number.parseInt(octal, 8));
        if (newline !== undefined) return "";
        if (one !== undefined && /[xuUN]/.test(one)) {
          syntaxError(`${whole} is no escape that is read here`, this.#line);
        }
        return escapes[one ?? ""] ?? whole;
      },
    );
  }

  #character(code: number): string {
    if (code > 0x10ffff) syntaxError("an escape beyond the last character", this.#line);
    return String.fromCodePoint(code);
  }

  #match(rule: RegExp): string | undefined {
    rule.lastIndex = this.#at;
    return rule.exec(this.#source)?.[0];
  }

  #text(text: string): void {
    if (text !== "") this.#push("text", text);
  }

  #push(kind: TokenKind, text: string): void {
    this.#tokens.push({ kind, text, line: this.#line });
  }

  #advance(length: number): void {
    const passed = this.#source.slice(this.#at, this.#at + length);
    this.#line += passed.split("\n").length - 1;
    this.#isLineStart = passed.endsWith("\n");
    this.#at += length;
  }
}

const escapes: Readonly<Record<string, string>> = {
  n: "\n",
  t: "\t",
  r: "\r",
  a: "\x07",
  b: "\b",
  f: "\f",
  v: "\v",
  "'": "'",
  '"': '"',
  "\\": "\\",
};
