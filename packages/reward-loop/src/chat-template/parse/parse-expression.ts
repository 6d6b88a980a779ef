/**
 * Expressions, with jinja2's precedence: `~` binds more than `+`, a sign more than a filter,
 * comparisons are chains as in Python.
 */

import { syntaxError } from "../error.ts";
import type {
  BinaryOperator,
  CallArguments,
  CompareOperator,
  Expression,
  FilterExpression,
} from "./syntax.ts";
import { constants, noArguments } from "./notes.ts";
import type { Notes } from "./notes.ts";
import type { TokenStream } from "./token-stream.ts";

export class ExpressionParser {
  readonly #tokens: TokenStream;
  readonly #notes: Notes;

  constructor(tokens: TokenStream, notes: Notes) {
    this.#tokens = tokens;
    this.#notes = notes;
  }

  /**
   * Parses one expression, or several with commas between them as a tuple. @param isEnd whether a
   * word ends it
   */
  tuple({ hasCondition = true, isBracketed = false, endWord = "" } = {}): Expression {
    const { line } = this.#tokens;
    const items: Expression[] = [];
    let isTuple = false;
    while (!this.#isTupleEnd(endWord)) {
      items.push(hasCondition ? this.expression() : this.#or());
      if (!this.#tokens.skip("operator", ",")) break;
      isTuple = true;
    }
    const [first] = items;
    if (!isTuple && first !== undefined) return first;
    if (!isTuple && !isBracketed) this.#tokens.refuse("an expression");
    return { kind: "tuple", items, line };
  }

  #isTupleEnd(endWord: string): boolean {
    if (this.#tokens.is("close") || this.#tokens.is("operator", ")")) return true;
    return endWord !== "" && this.#tokens.is("name", endWord);
  }

  expression(): Expression {
    const { line } = this.#tokens;
    const { unknown } = this.#notes;
    const before = unknown.length;
    let value = this.#or();
    while (this.#tokens.skip("name", "if")) {
      const chosen = value;
      const test = this.#or();
      const otherwise = this.#tokens.skip("name", "else") ? this.expression() : undefined;
      value = { kind: "condition", test, value: chosen, otherwise, line };
      unknown.length = before;
    }
    return value;
  }

  #or(): Expression {
    return this.#logical("or", () => this.#logical("and", () => this.#not()));
  }

  #logical(kind: "and" | "or", parse: () => Expression): Expression {
    const { line } = this.#tokens;
    let left = parse();
    while (this.#tokens.skip("name", kind)) left = { kind, left, right: parse(), line };
    return left;
  }

  #not(): Expression {
    const { line } = this.#tokens;
    if (this.#tokens.skip("name", "not")) return { kind: "not", value: this.#not(), line };
    return this.#compare();
  }

  #compare(): Expression {
    const { line } = this.#tokens;
    const first = this.#sum();
    const rest: { operator: CompareOperator; value: Expression }[] = [];
    for (;;) {
      const operator = this.#compareOperator();
      if (operator === undefined) break;
      rest.push({ operator, value: this.#sum() });
    }
    return rest.length === 0 ? first : { kind: "compare", first, rest, line };
  }

  #compareOperator(): CompareOperator | undefined {
    const tokens = this.#tokens;
    const operator = tokens.take("operator", "==", "!=", "<", "<=", ">", ">=");
    if (operator !== undefined) return operator;
    if (tokens.skip("name", "in")) return "in";
    const next = tokens.peek();
    if (!tokens.is("name", "not") || next.kind !== "name" || next.text !== "in") return undefined;
    tokens.next();
    tokens.next();
    return "not in";
  }

  #sum(): Expression {
    return this.#binary(["+", "-"], () => this.#concat());
  }

  #concat(): Expression {
    const { line } = this.#tokens;
    const parts = [this.#product()];
    while (this.#tokens.skip("operator", "~")) parts.push(this.#product());
    return parts.length === 1 ? parts[0]! : { kind: "concat", parts, line };
  }

  #product(): Expression {
    return this.#binary(["*", "/", "//", "%"], () => this.#binary(["**"], () => this.#unary()));
  }

  #binary(operators: readonly BinaryOperator[], parse: () => Expression): Expression {
    const { line } = this.#tokens;
    let left = parse();
    for (;;) {
      const operator = this.#tokens.take("operator", ...operators);
      if (operator === undefined) return left;
      left = { kind: "binary", operator, left, right: parse(), line };
    }
  }

  #unary(hasFilters = true): Expression {
    const { line } = this.#tokens;
    let value: Expression;
    if (this.#tokens.skip("operator", "-")) {
      value = { kind: "negative", value: this.#unary(false), line };
    } else if (this.#tokens.skip("operator", "+")) {
      value = { kind: "positive", value: this.#unary(false), line };
    } else {
      value = this.primary();
    }
    value = this.#postfix(value);
    return hasFilters ? this.#filters(value) : value;
  }

  primary(): Expression {
    const tokens = this.#tokens;
    const { kind, text, line } = tokens.current;
    if (kind === "name") {
      tokens.next();
      const value = constants.get(text);
      if (value !== undefined) return { kind: "constant", value, line };
      this.#notes.reads(text);
      return { kind: "name", name: text, line };
    }
    if (kind === "string") {
      let value = "";
      while (tokens.is("string")) value += tokens.next().text;
      return { kind: "constant", value, line };
    }
    if (kind === "int" || kind === "float") {
      const digits = tokens.next().text.replaceAll("_", "");
      return { kind: "constant", value: kind === "int" ? BigInt(digits) : Number(digits), line };
    }
    if (tokens.skip("operator", "(")) {
      const value = this.tuple({ isBracketed: true });
      tokens.expect("operator", ")");
      return value;
    }
    if (tokens.skip("operator", "[")) {
      return { kind: "list", items: this.#listed("]", () => this.expression()), line };
    }
    if (tokens.skip("operator", "{")) {
      const pairs = this.#listed("}", () => {
        const key = this.expression();
        tokens.expect("operator", ":");
        return [key, this.expression()] as const;
      });
      return { kind: "dict", pairs, line };
    }
    return tokens.refuse("an expression");
  }

  #listed<Item>(end: string, parse: () => Item): Item[] {
    const items: Item[] = [];
    while (!this.#tokens.skip("operator", end)) {
      if (items.length > 0) {
        this.#tokens.expect("operator", ",");
        if (this.#tokens.skip("operator", end)) break;
      }
      items.push(parse());
    }
    return items;
  }

  #postfix(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#tokens.is("operator", ".", "[")) value = this.#subscript(value);
      else if (this.#tokens.is("operator", "(")) value = this.#call(value);
      else return value;
    }
  }

  #call(callee: Expression): Expression {
    const { line } = this.#tokens;
    return { kind: "call", callee, given: this.#arguments(), line };
  }

  #subscript(object: Expression): Expression {
    const tokens = this.#tokens;
    const { line } = tokens;
    if (tokens.next().text === ".") {
      if (tokens.is("name")) return { kind: "attribute", object, name: tokens.next().text, line };
      const digits = tokens.expect("int").text.replaceAll("_", "");
      return { kind: "item", object, key: { kind: "constant", value: BigInt(digits), line }, line };
    }
    const start = tokens.is("operator", ":") ? undefined : this.expression();
    if (!tokens.skip("operator", ":")) {
      const keys = [start!];
      while (tokens.skip("operator", ",")) {
        if (!tokens.is("operator", "]")) keys.push(this.expression());
      }
      tokens.expect("operator", "]");
      const key = keys.length === 1 ? keys[0]! : ({ kind: "tuple", items: keys, line } as const);
      return { kind: "item", object, key, line };
    }
    const stop = tokens.is("operator", ":", "]") ? undefined : this.expression();
    const step =
      tokens.skip("operator", ":") && !tokens.is("operator", "]") ? this.expression() : undefined;
    tokens.expect("operator", "]");
    return { kind: "slice", object, bounds: { start, stop, step }, line };
  }

  #arguments(): CallArguments {
    const tokens = this.#tokens;
    const positional: Expression[] = [];
    const keyword: (readonly [string, Expression])[] = [];
    let spread: Expression | undefined;
    let keywordSpread: Expression | undefined;
    const ensure = (isRight: boolean): void => {
      if (!isRight) syntaxError("arguments stand in a wrong order", tokens.line);
    };
    tokens.expect("operator", "(");
    this.#listed(")", () => {
      const next = tokens.peek();
      if (tokens.skip("operator", "*")) {
        ensure(spread === undefined && keywordSpread === undefined);
        spread = this.expression();
      } else if (tokens.skip("operator", "**")) {
        ensure(keywordSpread === undefined);
        keywordSpread = this.expression();
      } else if (tokens.is("name") && next.kind === "operator" && next.text === "=") {
        ensure(keywordSpread === undefined);
        const name = tokens.next().text;
        tokens.next();
        keyword.push([name, this.expression()]);
      } else {
        ensure(spread === undefined && keywordSpread === undefined && keyword.length === 0);
        positional.push(this.expression());
      }
    });
    return { positional, keyword, spread, keywordSpread };
  }

  #filters(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.#tokens.skip("operator", "|")) value = this.#filter(value);
      else if (this.#tokens.is("name", "is")) value = this.#test(value);
      else if (this.#tokens.is("operator", "(")) value = this.#call(value);
      else return value;
    }
  }

  /** `| name(...) | ...` behind a block's tag; the first without its bar where `isInline`. */
  blockFilter(isInline: boolean): FilterExpression | undefined {
    let filter = isInline ? this.#filter(undefined) : undefined;
    while (this.#tokens.skip("operator", "|")) filter = this.#filter(filter);
    return filter;
  }

  #filter(value: Expression | undefined): FilterExpression {
    const { line } = this.#tokens;
    const name = this.#dotted();
    this.#notes.uses("filter", name, line);
    const given = this.#tokens.is("operator", "(") ? this.#arguments() : noArguments;
    return { kind: "filter", value, name, given, line };
  }

  #test(value: Expression): Expression {
    const tokens = this.#tokens;
    const { line } = tokens.next();
    const isNegated = tokens.skip("name", "not");
    const name = this.#dotted();
    this.#notes.uses("test", name, line);
    const test = { kind: "test", value, name, given: this.#testArguments(), line } as const;
    return isNegated ? { kind: "not", value: test, line } : test;
  }

  #testArguments(): CallArguments {
    const tokens = this.#tokens;
    if (tokens.is("operator", "(")) return this.#arguments();
    if (tokens.is("name", "is")) tokens.refuse("no second test");
    const isBare =
      (tokens.is("name") && !tokens.is("name", "else", "or", "and")) ||
      tokens.is("string") ||
      tokens.is("int") ||
      tokens.is("float") ||
      tokens.is("operator", "[", "{");
    if (!isBare) return noArguments;
    return { ...noArguments, positional: [this.#postfix(this.primary())] };
  }

  #dotted(): string {
    let name = this.#tokens.expect("name").text;
    while (this.#tokens.skip("operator", ".")) name += `.${this.#tokens.expect("name").text}`;
    return name;
  }
}
