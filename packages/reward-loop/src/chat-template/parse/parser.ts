/**
 * Statements: a template's text to the tree that is evaluated. Which tags there are is said here.
 */

import { ChatTemplateError, syntaxError } from "../error.ts";
import { knows } from "./known-names.ts";
import { tokensOf } from "./lexer.ts";
import { ExpressionParser } from "./parse-expression.ts";
import type { Unknown } from "./notes.ts";
import type { ForStatement, MacroBody, Parameter, Statement, Target } from "./syntax.ts";
import { TokenStream } from "./token-stream.ts";

/** Throws CHAT_TEMPLATE_SYNTAX and CHAT_TEMPLATE_UNSUPPORTED. */
export function parseTemplate(template: string): readonly Statement[] {
  return new Parser(new TokenStream(tokensOf(template))).run();
}

class Parser {
  readonly #tokens: TokenStream;
  readonly #expressions: ExpressionParser;
  /** The names that each macro reads, of those that are being parsed. */
  readonly #reads: Set<string>[] = [];
  /**
   * Filters and tests that jinja2 does not have: in an if it looks for them only when they are
   * used.
   */
  readonly #unknown: Unknown[] = [];
  /** The number of enclosing loops, up to the next macro. */
  #loops = 0;

  constructor(tokens: TokenStream) {
    this.#tokens = tokens;
    this.#expressions = new ExpressionParser(tokens, {
      reads: (name) => {
        for (const reads of this.#reads) reads.add(name);
      },
      uses: (kind, name, line) => {
        if (!knows(kind, name)) this.#unknown.push({ kind, name, line });
      },
      unknown: this.#unknown,
    });
  }

  run(): readonly Statement[] {
    const body = this.#body([]);
    if (!this.#tokens.is("end")) this.#tokens.refuse("a tag that begins something");
    const [unknown] = this.#unknown;
    if (unknown === undefined) return body;
    return syntaxError(`no ${unknown.kind} named '${unknown.name}'`, unknown.line);
  }

  #conditional<Result>(parse: () => Result): Result {
    const before = this.#unknown.length;
    const result = parse();
    this.#unknown.length = before;
    return result;
  }

  /** Parses up to a tag that begins with one of these words; its opening is already read. */
  #body(ends: readonly string[]): Statement[] {
    const statements: Statement[] = [];
    for (;;) {
      const { kind, text, line } = this.#tokens.current;
      if (kind === "end")
        return ends.length === 0 ? statements : this.#tokens.refuse(ends.join(" or "));
      this.#tokens.next();
      if (kind === "text") {
        statements.push({ kind, text, line });
      } else if (text === "{{") {
        statements.push({ kind: "output", value: this.#expressions.tuple(), line });
        this.#tokens.expect("close");
      } else {
        if (this.#tokens.is("name", ...ends) && ends.length > 0) return statements;
        statements.push(this.#statement());
      }
    }
  }

  /** A body with its end. */
  #bodyOf(end: string): Statement[] {
    const body = this.#body([end]);
    this.#tokens.next();
    this.#tokens.expect("close");
    return body;
  }

  #statement(): Statement {
    const { text, line } = this.#tokens.expect("name");
    const parse = this.#tags.get(text);
    if (parse !== undefined) return parse(line);
    if (!foreignTags.has(text)) return syntaxError(`unknown tag '${text}'`, line);
    const reason = `the tag ${text} is not supported`;
    throw new ChatTemplateError("CHAT_TEMPLATE_UNSUPPORTED", reason, {
      line,
      feature: `the tag ${text}`,
    });
  }

  readonly #tags: ReadonlyMap<string, (line: number) => Statement> = new Map([
    ["if", (line) => this.#if(line)],
    ["for", (line) => this.#for(line)],
    ["set", (line) => this.#set(line)],
    ["with", (line) => this.#with(line)],
    ["macro", (line) => this.#macro(line)],
    ["call", (line) => this.#callBlock(line)],
    ["filter", (line) => this.#filterBlock(line)],
    ["generation", (line) => this.#generation(line)],
    ["break", (line) => this.#jump("break", line)],
    ["continue", (line) => this.#jump("continue", line)],
    ["print", (line) => this.#print(line)],
  ]);

  #print(line: number): Statement {
    const parts = [this.#expressions.expression()];
    while (this.#tokens.skip("operator", ",")) parts.push(this.#expressions.expression());
    this.#tokens.expect("close");
    return { kind: "output", value: { kind: "concat", parts, line }, line };
  }

  #if(line: number): Statement {
    const test = this.#expressions.tuple({ hasCondition: false });
    this.#tokens.expect("close");
    const body = this.#conditional(() => this.#body(["elif", "else", "endif"]));
    const next = this.#tokens.next();
    if (next.text === "elif") {
      const otherwise = this.#conditional(() => [this.#if(next.line)]);
      return { kind: "if", test, body, otherwise, line };
    }
    this.#tokens.expect("close");
    const otherwise = next.text === "else" ? this.#conditional(() => this.#bodyOf("endif")) : [];
    return { kind: "if", test, body, otherwise, line };
  }

  #for(line: number): ForStatement {
    const target = this.#target({ endWord: "in" });
    this.#tokens.expect("name", "in");
    const iterable = this.#expressions.tuple({ hasCondition: false, endWord: "recursive" });
    const test = this.#tokens.skip("name", "if") ? this.#expressions.expression() : undefined;
    const isRecursive = this.#tokens.skip("name", "recursive");
    this.#tokens.expect("close");
    const loops = this.#loops;
    this.#loops += 1;
    const body = this.#body(["else", "endfor"]);
    const hasElse = this.#tokens.next().text === "else";
    this.#tokens.expect("close");
    // A jump in there is the outer loop's. No jump leaves a recursive loop: it is a function.
    this.#loops = isRecursive ? 0 : loops;
    const otherwise = hasElse ? this.#bodyOf("endfor") : [];
    this.#loops = loops;
    return { kind: "for", target, iterable, test, isRecursive, body, otherwise, line };
  }

  #set(line: number): Statement {
    const target = this.#target({ isMemberAllowed: true });
    if (this.#tokens.skip("operator", "=")) {
      const value = this.#expressions.tuple();
      this.#tokens.expect("close");
      return { kind: "set", target, value, line };
    }
    const filter = this.#expressions.blockFilter(false);
    this.#tokens.expect("close");
    return { kind: "set-block", target, filter, body: this.#bodyOf("endset"), line };
  }

  #with(line: number): Statement {
    const values: (readonly [Target, ReturnType<ExpressionParser["expression"]>])[] = [];
    while (!this.#tokens.is("close")) {
      if (values.length > 0) this.#tokens.expect("operator", ",");
      const target = this.#target({ endWord: "=" });
      this.#tokens.expect("operator", "=");
      values.push([target, this.#expressions.expression()]);
    }
    this.#tokens.expect("close");
    return { kind: "with", values, body: this.#bodyOf("endwith"), line };
  }

  #macro(line: number): Statement {
    const name = this.#tokens.expect("name").text;
    const macro = this.#macroBody(() => this.#parameters(), "endmacro");
    return { kind: "macro", macro: { ...macro, name }, line };
  }

  #callBlock(line: number): Statement {
    const parameters = this.#tokens.is("operator", "(") ? this.#parameters() : [];
    const call = this.#expressions.expression();
    if (call.kind !== "call") return syntaxError("expected a call", line);
    const caller = this.#macroBody(() => parameters, "endcall");
    return { kind: "call-block", callee: call.callee, given: call.given, caller, line };
  }

  #macroBody(parameters: () => readonly Parameter[], end: string): MacroBody {
    const reads = new Set<string>();
    const loops = this.#loops;
    const given = parameters();
    this.#tokens.expect("close");
    this.#reads.push(reads);
    this.#loops = 0;
    const body = this.#bodyOf(end);
    this.#loops = loops;
    this.#reads.pop();
    return { name: undefined, parameters: given, body, reads };
  }

  #parameters(): readonly Parameter[] {
    const parameters: Parameter[] = [];
    this.#tokens.expect("operator", "(");
    while (!this.#tokens.skip("operator", ")")) {
      if (parameters.length > 0) this.#tokens.expect("operator", ",");
      const { text: name, line } = this.#tokens.expect("name");
      const isGiven = this.#tokens.skip("operator", "=");
      if (!isGiven && parameters.at(-1)?.standard !== undefined) {
        syntaxError("a parameter without a default stands behind one that has one", line);
      }
      const standard = isGiven ? this.#expressions.expression() : undefined;
      parameters.push({ name, standard });
    }
    return parameters;
  }

  #filterBlock(line: number): Statement {
    const filter = this.#expressions.blockFilter(true);
    this.#tokens.expect("close");
    if (filter === undefined) return this.#tokens.refuse("a filter");
    return { kind: "filter-block", filter, body: this.#bodyOf("endfilter"), line };
  }

  #generation(line: number): Statement {
    const { body } = this.#macroBody(() => [], "endgeneration");
    return { kind: "generation", body, line };
  }

  #jump(kind: "break" | "continue", line: number): Statement {
    if (this.#loops === 0) syntaxError(`${kind} stands outside of a loop`, line);
    this.#tokens.expect("close");
    return { kind, line };
  }

  #target({ endWord = "", isMemberAllowed = false } = {}): Target {
    const targets: Target[] = [];
    let isTuple = false;
    while (!this.#isTargetEnd(endWord)) {
      targets.push(this.#oneTarget(isMemberAllowed));
      if (!this.#tokens.skip("operator", ",")) break;
      isTuple = true;
    }
    const [first] = targets;
    if (first === undefined) return this.#tokens.refuse("a name to assign to");
    return isTuple ? { kind: "tuple", targets } : first;
  }

  #isTargetEnd(endWord: string): boolean {
    if (this.#tokens.is("close") || this.#tokens.is("operator", ")", "=", "|")) return true;
    return endWord !== "" && this.#tokens.is("name", endWord);
  }

  #oneTarget(isMemberAllowed: boolean): Target {
    if (this.#tokens.skip("operator", "(")) {
      const target = this.#target({ isMemberAllowed });
      this.#tokens.expect("operator", ")");
      return target;
    }
    const { text: name, line } = this.#tokens.expect("name");
    if (/^(?:true|false|none)$/i.test(name) || (name === "loop" && this.#loops > 0)) {
      syntaxError(`cannot assign to ${name}`, line);
    }
    if (!isMemberAllowed || !this.#tokens.skip("operator", ".")) return { kind: "name", name };
    return { kind: "member", namespace: name, name: this.#tokens.expect("name").text };
  }
}

/**
 * Tags of jinja2 itself, which chat templates have no use for: there are no other templates to
 * load, and nothing is HTML.
 */
const foreignTags: ReadonlySet<string> = new Set([
  "block",
  "extends",
  "include",
  "import",
  "from",
  "autoescape",
]);
