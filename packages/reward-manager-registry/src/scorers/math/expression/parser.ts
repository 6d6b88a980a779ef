/**
 * Parses expressions with Python's precedence: "1/2*x" is half of x, powers associate to the right,
 * -x**2 is -(x**2). Sums and products of any length are lists: only parentheses, signs and
 * exponents nest, up to a limit.
 */

import { withImplied } from "./implied.ts";
import { isOperator, tokensOf } from "./tokens.ts";
import type { NumberToken, Token } from "./tokens.ts";

export type Expression =
  | NumberToken
  | { readonly kind: "symbol"; readonly name: string }
  | { readonly kind: "constant"; readonly name: string }
  | { readonly kind: "sum"; readonly first: Expression; readonly rest: readonly Step[] }
  | { readonly kind: "product"; readonly first: Expression; readonly rest: readonly Step[] }
  | { readonly kind: "negative"; readonly of: Expression }
  | { readonly kind: "power"; readonly base: Expression; readonly exponent: Expression }
  | { readonly kind: "call"; readonly name: string; readonly of: Expression }
  /** Whether both sides are equal: to Python a number, 1 or 0. */
  | {
      readonly kind: "comparison";
      readonly left: Expression;
      readonly right: Expression;
      readonly isEqual: boolean;
    };

/** Another term or factor, and whether it is subtracted or divided by. */
export interface Step {
  readonly isInverse: boolean;
  /** Whether the quotient is rounded down, as Python's `//` does. */
  readonly isFloored?: boolean;
  readonly of: Expression;
}

/** Deeper than any answer. */
const maxDepth = 200;

/** Parses an expression as sympy does; undefined if sympy cannot read it. */
export function parseExpression(text: string): Expression | undefined {
  const tokens = tokensOf(text.replaceAll("^", "**"));
  const all = tokens === undefined ? undefined : withImplied(tokens);
  return all === undefined ? undefined : parsed(all);
}

/** Parses an expression as Python does: nothing is implied. */
export function parseArithmetic(text: string): Expression | undefined {
  const tokens = tokensOf(text);
  return tokens === undefined ? undefined : parsed(tokens);
}

function parsed(tokens: readonly Token[]): Expression | undefined {
  try {
    return new Parser(tokens, 0).whole();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth: number;

  constructor(tokens: readonly Token[], depth: number) {
    // Python ignores line ends in parentheses, and the whole text stands in some.
    this.#tokens = tokens.filter((token) => token.kind !== "line");
    this.#depth = depth;
  }

  /** @throws SyntaxError */
  whole(): Expression {
    const expression = this.#comparison();
    if (this.#at < this.#tokens.length) throw new SyntaxError("something follows");
    return expression;
  }

  #comparison(): Expression {
    const left = this.#sum();
    const isEqual = this.#take("==");
    if (!isEqual && !this.#take("!=")) return left;
    return { kind: "comparison", left, right: this.#sum(), isEqual };
  }

  #sum(): Expression {
    const first = this.#product();
    const rest: Step[] = [];
    for (;;) {
      if (this.#take("+")) rest.push({ isInverse: false, of: this.#product() });
      else if (this.#take("-")) rest.push({ isInverse: true, of: this.#product() });
      else return rest.length === 0 ? first : { kind: "sum", first, rest };
    }
  }

  #product(): Expression {
    const first = this.#signed();
    const rest: Step[] = [];
    for (;;) {
      if (this.#take("*")) rest.push({ isInverse: false, of: this.#signed() });
      else if (this.#take("/")) rest.push({ isInverse: true, of: this.#signed() });
      else if (this.#take("//"))
        rest.push({ isInverse: true, isFloored: true, of: this.#signed() });
      else return rest.length === 0 ? first : { kind: "product", first, rest };
    }
  }

  #signed(): Expression {
    const isNegative = this.#take("-");
    if (!isNegative && !this.#take("+")) return this.#power();
    this.#enter();
    const of = this.#signed();
    this.#depth -= 1;
    return isNegative ? { kind: "negative", of } : of;
  }

  #power(): Expression {
    const base = this.#primary();
    if (!this.#take("**")) return base;
    this.#enter();
    const exponent = this.#signed();
    this.#depth -= 1;
    return { kind: "power", base, exponent };
  }

  #primary(): Expression {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    switch (token?.kind) {
      case "number":
      case "symbol":
      case "constant":
        return token;
      case "applied":
        this.#enter();
        this.#depth -= 1;
        return {
          kind: "call",
          name: token.name,
          of: new Parser(token.inside, this.#depth + 1).whole(),
        };
      case "function":
        if (!this.#take("(")) throw new SyntaxError("of what?");
        return { kind: "call", name: token.name, of: this.#group() };
      case "operator":
        if (token.text === "(") return this.#group();
        break;
      default:
    }
    throw new SyntaxError("a value is missing");
  }

  #group(): Expression {
    this.#enter();
    const inside = this.#comparison();
    if (!this.#take(")")) throw new SyntaxError("a parenthesis is not closed");
    this.#depth -= 1;
    return inside;
  }

  #take(operator: string): boolean {
    if (!isOperator(this.#tokens[this.#at], operator)) return false;
    this.#at += 1;
    return true;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SyntaxError("too deep");
  }
}
