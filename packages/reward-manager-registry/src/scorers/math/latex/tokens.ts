/**
 * Tokens of LaTeX, as pylatexenc 2.10 sees them: commands with the white space behind their names,
 * braces, special character sequences.
 */

export type Token =
  | { readonly kind: "character"; readonly text: string }
  | { readonly kind: "command"; readonly name: string; readonly gap: string }
  | { readonly kind: "open" | "close"; readonly text: string }
  | { readonly kind: "begin" | "end"; readonly name: string }
  | { readonly kind: "math"; readonly text: string }
  | { readonly kind: "comment"; readonly gap: string }
  | { readonly kind: "special"; readonly text: string };

/** A token with its end, and the white space before it. */
export interface Read {
  readonly token: Token;
  readonly space: string;
  readonly end: number;
}

/** The optional kinds of tokens. */
export interface TokenKinds {
  /** Whether brackets count as braces. */
  readonly hasBrackets: boolean;
  /** Whether `\begin` and `\end` are tokens of their own. */
  readonly hasEnvironments: boolean;
}

const commandName = /\p{L}+/uy;
const environmentName = /\s*\{([\p{L}\p{N}_* .-]+)\}/uy;
const specials = ["---", "--", "``", "''", "!`", "?`", "&", "~"];

/** Returns the next token, or the final white space of the text. */
export function readToken(
  latex: string,
  from: number,
  { hasBrackets, hasEnvironments }: TokenKinds,
): Read | string {
  let at = from;
  while (isSpace(latex[at] ?? "")) {
    at += 1;
    if (latex.slice(Math.max(from, at - 2), at) === "\n\n") {
      const token = { kind: "character", text: "\n\n" } as const;
      return { token, space: latex.slice(from, at - 2), end: at };
    }
  }
  const space = latex.slice(from, at);
  const character = latex[at];
  if (character === undefined) return space;
  if (character === "\\") {
    return at + 1 < latex.length ? { ...escaped(latex, at, hasEnvironments), space } : "";
  }
  const read = (token: Token, length = 1): Read => ({ token, space, end: at + length });
  if (character === "{" || (hasBrackets && character === "[")) {
    return read({ kind: "open", text: character });
  }
  if (character === "}" || (hasBrackets && character === "]")) {
    return read({ kind: "close", text: character });
  }
  if (character === "%") return { ...comment(latex, at), space };
  if (character === "$") {
    const text = latex.startsWith("$$", at) ? "$$" : "$";
    return read({ kind: "math", text }, text.length);
  }
  const special = specials.find((one) => latex.startsWith(one, at));
  if (special !== undefined) return read({ kind: "special", text: special }, special.length);
  const text = characterAt(latex, at);
  return read({ kind: "character", text }, text.length);
}

/** Returns the character, which may be of two units. */
function characterAt(text: string, at: number): string {
  const code = text.codePointAt(at);
  return code === undefined ? "" : String.fromCodePoint(code);
}

/** Reads the token that begins with the backslash at `at`, which is not the last character. */
function escaped(latex: string, at: number, hasEnvironments: boolean): Omit<Read, "space"> {
  const next = characterAt(latex, at + 1);
  commandName.lastIndex = at + 1;
  const word = commandName.exec(latex)?.[0];
  const name = word ?? next;
  let end = at + 1 + name.length;
  if ("[]()".includes(name)) return { token: { kind: "math", text: `\\${name}` }, end };
  if (hasEnvironments && (name === "begin" || name === "end")) {
    environmentName.lastIndex = end;
    const match = environmentName.exec(latex);
    // Only its name is text then.
    if (match === null) return { token: { kind: "character", text: `\\${name}` }, end };
    return { token: { kind: name, name: match[1] ?? "" }, end: environmentName.lastIndex };
  }
  const start = end;
  if (word !== undefined) {
    while (isSpace(latex[end] ?? "")) {
      end += 1;
      if (latex.slice(Math.max(start, end - 2), end) === "\n\n") {
        end -= 2;
        break;
      }
    }
  }
  return { token: { kind: "command", name, gap: latex.slice(start, end) }, end };
}

/**
 * Reads a comment: to the end of the line and the following spaces, unless they contain an empty
 * line.
 */
function comment(latex: string, at: number): Omit<Read, "space"> {
  const newline = latex.indexOf("\n", at);
  if (newline < 0) return { token: { kind: "comment", gap: "" }, end: latex.length };
  let end = newline + 1;
  while (isSpace(latex[end] ?? "")) end += 1;
  const isParagraph = latex[newline + 1] === "\n";
  return isParagraph
    ? { token: { kind: "comment", gap: "" }, end: newline }
    : { token: { kind: "comment", gap: latex.slice(newline, end) }, end };
}

export function isSpace(character: string): boolean {
  return character !== "" && /^\s$/.test(character);
}
