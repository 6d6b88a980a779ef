/** The tokens of a template with the place where its parser is. */

import { syntaxError } from "../error.ts";
import type { Token, TokenKind } from "./lexer.ts";

export class TokenStream {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  get current(): Token {
    return this.#tokens[this.#at]!;
  }

  get line(): number {
    return this.current.line;
  }

  peek(): Token {
    return this.#tokens[this.#at + 1] ?? this.current;
  }

  next(): Token {
    const token = this.current;
    if (token.kind !== "end") this.#at += 1;
    return token;
  }

  is(kind: TokenKind, ...texts: readonly string[]): boolean {
    const { current } = this;
    return current.kind === kind && (texts.length === 0 || texts.includes(current.text));
  }

  /** Takes the token if it has one of the texts, and returns its text. */
  take<Text extends string>(kind: TokenKind, ...texts: readonly Text[]): Text | undefined {
    const { current } = this;
    const found = current.kind === kind ? texts.find((text) => text === current.text) : undefined;
    if (found !== undefined) this.next();
    return found;
  }

  skip(kind: TokenKind, text: string): boolean {
    const isThere = this.is(kind, text);
    if (isThere) this.next();
    return isThere;
  }

  expect(kind: TokenKind, text?: string): Token {
    if (text === undefined ? this.is(kind) : this.is(kind, text)) return this.next();
    return this.refuse(text ?? `a ${kind}`);
  }

  refuse(expected: string): never {
    const { kind, text, line } = this.current;
    const seen = kind === "end" ? "the end of the template" : JSON.stringify(text);
    return syntaxError(`expected ${expected}, got ${seen}`, line);
  }
}
