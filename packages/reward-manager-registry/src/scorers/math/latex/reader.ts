/**
 * Reads LaTeX as a tree, as pylatexenc 2.10 does (`LatexWalker`, tolerant of errors), because the
 * graders use that result.
 *
 * An extra closing brace is skipped, and an open one is closed at the end. A command that lacks
 * arguments has none. The arguments of commands are data (commands.ts). A command that is itself an
 * argument takes none: `\sqrt\sqrt2`.
 *
 * The number of tokens is bounded: after an unclosed optional argument the rest is read again,
 * which may double the work at each command.
 */

import { argumentsOf } from "./commands.ts";
import { isSpace, readToken } from "./tokens.ts";
import type { Read, Token } from "./tokens.ts";

export type LatexNode =
  | { readonly kind: "characters"; readonly text: string }
  | { readonly kind: "group"; readonly nodes: readonly LatexNode[] }
  /**
   * `args` has null for a missing optional argument; it is undefined when required ones are
   * missing.
   */
  | {
      readonly kind: "command";
      readonly name: string;
      readonly args: readonly (LatexNode | null)[] | undefined;
      /** The white space behind its name. */
      readonly gap: string;
    }
  | {
      readonly kind: "environment";
      readonly name: string;
      readonly nodes: readonly LatexNode[];
    }
  | { readonly kind: "special"; readonly text: string }
  | { readonly kind: "math"; readonly isDisplay: boolean; readonly nodes: readonly LatexNode[] };

/** The depth of nested groups, far beyond any answer; Python's own limit is about twice that. */
const maxDepth = 100;

/** Tokens per character: in any answer each is read only a few times. */
const maxReadings = 20;

/** @throws SyntaxError for LaTeX that is nested too deeply, or read too often */
export function readLatex(latex: string): readonly LatexNode[] {
  return new Reader(latex).nodes({});
}

/** The ends of a list of nodes other than the end of the text. */
interface End {
  readonly brace?: "}" | "]";
  readonly environment?: string;
  readonly math?: string;
}

class Reader {
  readonly #latex: string;
  #at = 0;
  #depth = 0;
  #left: number;

  constructor(latex: string) {
    this.#latex = latex;
    this.#left = maxReadings * (latex.length + 10);
  }

  nodes(end: End): readonly LatexNode[] {
    this.#enter();
    const nodes: LatexNode[] = [];
    let text = "";
    const flush = (): void => {
      if (text !== "") nodes.push({ kind: "characters", text });
      text = "";
    };
    for (;;) {
      const read = this.#token(this.#at, end.brace === "]");
      if (typeof read === "string") {
        text += read;
        this.#at = this.#latex.length;
        break;
      }
      this.#at = read.end;
      text += read.space;
      if (read.token.kind === "character") {
        text += read.token.text;
        continue;
      }
      flush();
      if (isEnd(read.token, end)) break;
      const node = this.#node(read.token, end);
      if (node !== undefined) nodes.push(node);
    }
    flush();
    this.#depth -= 1;
    return nodes;
  }

  /** Returns undefined for a token in the wrong place. */
  #node(token: Exclude<Token, { kind: "character" }>, end: End): LatexNode | undefined {
    switch (token.kind) {
      case "open":
        return { kind: "group", nodes: this.nodes({ brace: token.text === "[" ? "]" : "}" }) };
      case "math": {
        if (token.text === "\\)" || token.text === "\\]") return undefined;
        const closing = { "\\(": "\\)", "\\[": "\\]" }[token.text] ?? token.text;
        const isDisplay = token.text === "\\[" || token.text === "$$";
        return { kind: "math", isDisplay, nodes: this.nodes({ math: closing }) };
      }
      case "begin":
        return this.#environment(token.name);
      case "command":
        return this.#command(token.name, token.gap);
      case "comment":
        return { kind: "special", text: token.gap };
      case "special":
        return token;
      default:
        // A closing brace or \end without its beginning.
        return void end;
    }
  }

  #environment(name: string): LatexNode {
    if (name === "verbatim") return this.#verbatim();
    const start = this.#at;
    if (this.#arguments(environmentArguments.get(name) ?? "") === undefined) this.#at = start;
    return { kind: "environment", name, nodes: this.nodes({ environment: name }) };
  }

  #verbatim(): LatexNode {
    const end = this.#latex.indexOf(String.raw`\end{verbatim}`, this.#at);
    if (end >= 0) this.#at = end;
    return {
      kind: "environment",
      name: "verbatim",
      nodes: this.nodes({ environment: "verbatim" }),
    };
  }

  #command(name: string, gap: string): LatexNode {
    const start = this.#at;
    const args =
      name === "verb" ? this.#verb() : this.#arguments(argumentsOf.get(name) ?? "", name === "\\");
    if (args === undefined) this.#at = start;
    return { kind: "command", name, args, gap };
  }

  /** Reads the text between two of the next character. */
  #verb(): readonly LatexNode[] | undefined {
    this.#skipSpaces();
    const mark = this.#latex[this.#at];
    // pylatexenc fails in this case, because it reads behind the end.
    if (mark === undefined) throw new SyntaxError("the text ends");
    const end = this.#latex.indexOf(mark, this.#at + 1);
    if (end < 0) return undefined;
    const text = this.#latex.slice(this.#at + 1, end);
    this.#at = end + 1;
    return [{ kind: "characters", text }];
  }

  /**
   * Returns undefined when the text ends before an argument.
   *
   * @param isTight whether an optional argument must follow at once
   */
  #arguments(wanted: string, isTight = false): readonly (LatexNode | null)[] | undefined {
    const args: (LatexNode | null)[] = [];
    for (const one of wanted) {
      const arg = one === "{" ? this.#expression() : this.#optional(one, isTight);
      if (arg === undefined) return undefined;
      args.push(arg);
    }
    return args;
  }

  #optional(kind: string, isTight: boolean): LatexNode | null | undefined {
    if (kind === "[" && isTight && isSpace(this.#latex[this.#at] ?? "")) return null;
    const read = this.#token(this.#at, kind === "[");
    // At the end of the text a star is impossible, and a bracket is not required.
    if (typeof read === "string") return kind === "*" ? undefined : null;
    const { token, end } = read;
    if (kind === "*" && token.kind === "character" && token.text === "*") {
      this.#at = end;
      return { kind: "characters", text: "*" };
    }
    if (kind !== "[" || token.kind !== "open" || token.text !== "[") return null;
    this.#at = end;
    return { kind: "group", nodes: this.nodes({ brace: "]" }) };
  }

  /** Returns the next group, character or command; undefined at the end of the text. */
  #expression(): LatexNode | undefined {
    const read = this.#token(this.#at, false, false);
    if (typeof read === "string") return undefined;
    const { token, end } = read;
    switch (token.kind) {
      case "comment":
        this.#at = end;
        return this.#expression();
      case "open":
        this.#at = end;
        return { kind: "group", nodes: this.nodes({ brace: "}" }) };
      case "close":
        // The enclosing group reads it.
        this.#at = end - 1;
        return { kind: "characters", text: "" };
      case "command":
        if (token.name === "end") {
          this.#at = end - (String.raw`\end` + token.gap).length;
          return { kind: "characters", text: "" };
        }
        this.#at = end;
        return { kind: "command", name: token.name, args: undefined, gap: token.gap };
      case "math":
        this.#at = end;
        return token.text.startsWith("\\")
          ? { kind: "command", name: token.text, args: undefined, gap: "" }
          : { kind: "characters", text: token.text };
      case "special":
        this.#at = end;
        return token;
      case "character":
        this.#at = end;
        return { kind: "characters", text: token.text };
      default:
        // Environments are commands here.
        throw new SyntaxError(`"${token.kind}" is no argument`);
    }
  }

  /** Returns the next token, or the final white space of the text. */
  #token(from: number, hasBrackets: boolean, hasEnvironments = true): Read | string {
    this.#left -= 1;
    if (this.#left < 0) throw new SyntaxError("read too often");
    return readToken(this.#latex, from, { hasBrackets, hasEnvironments });
  }

  #skipSpaces(): void {
    while (isSpace(this.#latex[this.#at] ?? "")) this.#at += 1;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SyntaxError("too deep");
  }
}

const environmentArguments: ReadonlyMap<string, string> = new Map([
  ["array", "[{"],
  ["tabular", "{"],
  ["tabular*", "{{"],
  ["tabularx", "{[{"],
  ["alignat", "{"],
  ["alignat*", "{"],
  ...["figure", "figure*", "table", "table*", "enumerate", "itemize", "description"].map(optional),
  ...["theorem", "proposition", "lemma", "corollary", "definition", "conjecture"].map(optional),
  ...["remark", "proof", "thm", "prop", "lem", "cor", "conj", "rem", "defn"].map(optional),
]);

function optional(name: string): [string, string] {
  return [name, "["];
}

function isEnd(token: Token, end: End): boolean {
  switch (token.kind) {
    case "close":
      return token.text === end.brace;
    case "end":
      return token.name === end.environment;
    case "math":
      return token.text === end.math;
    default:
      return false;
  }
}
