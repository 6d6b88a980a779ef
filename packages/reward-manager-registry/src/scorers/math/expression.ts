/**
 * Whether two expressions are the same for all values of their letters: evaluated at points of the complex plane, instead of transformed as sympy does it.
 *
 * Numbers, letters, `pi`, `sqrt`, + - * / ^ ! and parentheses, with Python's precedence: "1/2x" is half of x (mathjs and its like read it as 1/(2x), which is why
 * none of them is used here). "2x", "xy" and "x(y + 1)" are products. What is anything else is equal to nothing.
 *
 * Sums and products of any length are worked out in a loop: only what stands in parentheses, signs and exponents goes deeper, and that not far.
 */

interface Complex {
  readonly re: number;
  readonly im: number;
}

type Values = ReadonlyMap<string, Complex>;
type Expression = (values: Values) => Complex;

/** Deeper than any answer. */
const maxDepth = 200;

/** As far as rounding goes, of the larger one. */
const tolerance = { numbers: 4e-15, letters: 1e-10 };

/** In all quadrants, so that sqrt(x^2) is not x; none of them special. */
const points: readonly Complex[] = [
  { re: 0.7548, im: 0.5698 },
  { re: -1.3247, im: 0.4655 },
  { re: -0.8191, im: -1.2207 },
  { re: 1.1673, im: -0.6823 },
  { re: -1.618, im: 0.0 },
  { re: 1.4655, im: 0.0 },
];

export function areEqualExpressions(left: string, right: string): boolean {
  const letters = new Set<string>();
  const first = parse(left, letters);
  const second = parse(right, letters);
  if (first === undefined || second === undefined) return false;
  if (letters.size === 0) return isClose(first(noValues), second(noValues), tolerance.numbers);
  const names = [...letters];
  return points.every((_, index) => {
    const values = new Map(
      names.map((name, offset) => [name, points[(index + 2 * offset) % points.length] as Complex]),
    );
    return isClose(first(values), second(values), tolerance.letters);
  });
}

/** Arithmetic as Python's `eval` does it, without letters, products without a sign, or powers written with "^"; undefined for what is none, and for what has no value. */
export function evaluateArithmetic(text: string): number | undefined {
  if (!/^[-+*/().\d\se]*$/.test(text) || /[\d.)]\s*\(|\)\s*[\d.]|[\d.]\s+[\d.]/.test(text)) {
    return undefined;
  }
  const letters = new Set<string>();
  const expression = parse(text, letters);
  if (expression === undefined || letters.size > 0) return undefined;
  const { re, im } = expression(noValues);
  return im === 0 && Number.isFinite(re) ? re : undefined;
}

const noValues: Values = new Map();

function isClose(left: Complex, right: Complex, relative: number): boolean {
  const distance = Math.hypot(left.re - right.re, left.im - right.im);
  const size = Math.max(Math.hypot(left.re, left.im), Math.hypot(right.re, right.im));
  // Also when one is no number: that is not equal to anything.
  return distance <= relative * Math.max(size, Number.MIN_VALUE) && Number.isFinite(size);
}

/** Undefined for what is no such expression. */
function parse(text: string, letters: Set<string>): Expression | undefined {
  const tokens = tokensOf(text);
  if (tokens === undefined) return undefined;
  try {
    return new Parser(tokens, letters).whole();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

type Token =
  | { readonly kind: "number"; readonly value: number }
  | { readonly kind: "name"; readonly name: string }
  | { readonly kind: "operator"; readonly operator: string };

const tokenPattern =
  /\s*(?:((?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)|([\p{L}_][\p{L}\p{N}_]*)|(\*\*|[-+*/^!()]))\s*/uy;

function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.length) {
    const match = tokenPattern.exec(text);
    if (match === null) return undefined;
    const [, digits, name, operator] = match;
    if (digits !== undefined) tokens.push({ kind: "number", value: Number(digits) });
    else if (name !== undefined) tokens.push({ kind: "name", name });
    else tokens.push({ kind: "operator", operator: operator === "^" ? "**" : (operator ?? "") });
  }
  return tokens;
}

class Parser {
  readonly #tokens: readonly Token[];
  readonly #letters: Set<string>;
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[], letters: Set<string>) {
    this.#tokens = tokens;
    this.#letters = letters;
  }

  /** @throws SyntaxError */
  whole(): Expression {
    const expression = this.#sum();
    if (this.#at < this.#tokens.length) throw new SyntaxError("something follows");
    return expression;
  }

  #sum(): Expression {
    const first = this.#product();
    const steps: Step[] = [];
    for (;;) {
      if (this.#take("+")) steps.push([plus, this.#product()]);
      else if (this.#take("-")) steps.push([minus, this.#product()]);
      else return inTurn(first, steps);
    }
  }

  #product(): Expression {
    const first = this.#signed();
    const steps: Step[] = [];
    for (;;) {
      if (this.#take("*")) steps.push([times, this.#signed()]);
      else if (this.#take("/")) steps.push([over, this.#signed()]);
      else if (this.#isFactor()) steps.push([times, this.#power()]);
      else return inTurn(first, steps);
    }
  }

  #signed(): Expression {
    this.#enter();
    const sign = this.#take("-") ? -1 : this.#take("+") ? 1 : 0;
    const expression = sign === 0 ? this.#power() : this.#signed();
    this.#depth -= 1;
    return sign < 0 ? inTurn(zero, [[minus, expression]]) : expression;
  }

  /** To the right, and with a sign behind it: 2**-1. */
  #power(): Expression {
    const value = this.#primary();
    let factorials = 0;
    while (this.#take("!")) factorials += 1;
    const base = factorials === 0 ? value : factorialOf(value, factorials);
    return this.#take("**") ? powerOf(base, this.#signed()) : base;
  }

  #primary(): Expression {
    const token = this.#tokens[this.#at];
    this.#at += 1;
    if (token?.kind === "number") return constant(token.value);
    if (token?.kind === "name") return this.#named(token.name);
    if (token?.operator !== "(") throw new SyntaxError("a value is missing");
    return this.#group();
  }

  #group(): Expression {
    this.#enter();
    const inside = this.#sum();
    if (!this.#take(")")) throw new SyntaxError("a parenthesis is not closed");
    this.#depth -= 1;
    return inside;
  }

  #named(name: string): Expression {
    if (name === "pi") return constant(Math.PI);
    if (name === "sqrt") {
      if (!this.#take("(")) throw new SyntaxError("of what?");
      return powerOf(this.#group(), constant(0.5));
    }
    // Functions to sympy, and not to us.
    if (/^(re|im|ln|li|rf|ff)$/.test(name)) throw new SyntaxError(`${name} is no letter`);
    // A name with an index is one.
    const parts = name.includes("_") ? [name] : Array.from(name);
    const letters = parts.map((letter) => this.#letter(letter));
    return inTurn(
      one,
      letters.map((letter) => [times, letter]),
    );
  }

  #letter(letter: string): Expression {
    if (/^\p{N}$/u.test(letter)) throw new SyntaxError("a digit in a name");
    this.#letters.add(letter);
    return (values) => values.get(letter) ?? notANumber;
  }

  #isFactor(): boolean {
    const token = this.#tokens[this.#at];
    return token !== undefined && (token.kind !== "operator" || token.operator === "(");
  }

  #take(operator: string): boolean {
    const token = this.#tokens[this.#at];
    if (token?.kind !== "operator" || token.operator !== operator) return false;
    this.#at += 1;
    return true;
  }

  #enter(): void {
    this.#depth += 1;
    if (this.#depth > maxDepth) throw new SyntaxError("too deep");
  }
}

const notANumber: Complex = { re: Number.NaN, im: Number.NaN };
const zero: Expression = constant(0);
const one: Expression = constant(1);

function constant(value: number): Expression {
  const number = { re: value, im: 0 };
  return () => number;
}

/** An operation, and what it is done with. */
type Step = readonly [operation: (left: Complex, right: Complex) => Complex, right: Expression];

/** From left to right. */
function inTurn(first: Expression, steps: readonly Step[]): Expression {
  if (steps.length === 0) return first;
  return (values) =>
    steps.reduce((left, [operation, right]) => operation(left, right(values)), first(values));
}

function plus(a: Complex, b: Complex): Complex {
  return { re: a.re + b.re, im: a.im + b.im };
}

function minus(a: Complex, b: Complex): Complex {
  return { re: a.re - b.re, im: a.im - b.im };
}

function times(a: Complex, b: Complex): Complex {
  return { re: a.re * b.re - a.im * b.im, im: a.re * b.im + a.im * b.re };
}

function over(a: Complex, b: Complex): Complex {
  if (b.im === 0) return { re: a.re / b.re, im: a.im / b.re };
  const size = b.re * b.re + b.im * b.im;
  const { re, im } = times(a, { re: b.re, im: -b.im });
  return { re: re / size, im: im / size };
}

function powerOf(base: Expression, exponent: Expression): Expression {
  return (values) => power(base(values), exponent(values));
}

/** The principal value. */
function power(base: Complex, exponent: Complex): Complex {
  if (exponent.im === 0 && Number.isInteger(exponent.re) && Math.abs(exponent.re) <= 1024) {
    return wholePower(base, exponent.re);
  }
  if (base.im === 0 && exponent.im === 0 && base.re >= 0) {
    const isRoot = exponent.re === 0.5;
    return { re: isRoot ? Math.sqrt(base.re) : base.re ** exponent.re, im: 0 };
  }
  const size = Math.hypot(base.re, base.im);
  if (size === 0) return notANumber;
  const logarithm = { re: Math.log(size), im: Math.atan2(base.im, base.re) };
  const { re, im } = times(logarithm, exponent);
  const scale = Math.exp(re);
  return { re: scale * Math.cos(im), im: scale * Math.sin(im) };
}

function wholePower(base: Complex, exponent: number): Complex {
  let result: Complex = { re: 1, im: 0 };
  let square = base;
  for (let left = Math.abs(exponent); left > 0; left = Math.floor(left / 2)) {
    if (left % 2 === 1) result = times(result, square);
    square = times(square, square);
  }
  return exponent < 0 ? over({ re: 1, im: 0 }, result) : result;
}

/** @param count how often: "3!!" is the factorial of six */
function factorialOf(expression: Expression, count: number): Expression {
  return (values) => {
    let value = expression(values);
    for (let left = count; left > 0; left--) value = factorial(value);
    return value;
  };
}

function factorial({ re, im }: Complex): Complex {
  if (im !== 0 || !Number.isInteger(re) || re < 0 || re > 170) return notANumber;
  let product = 1;
  for (let factor = 2; factor <= re; factor++) product *= factor;
  return { re: product, im: 0 };
}
