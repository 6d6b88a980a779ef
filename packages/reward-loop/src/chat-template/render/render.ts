/** Statements of a template, one after the other, into its text. */

import { fail } from "../error.ts";
import { argumentsOf, call, evaluate, filtered, located } from "./evaluate.ts";
import { checkedName, unknown } from "./globals.ts";
import { Loop } from "./loop.ts";
import { Scope } from "./scope.ts";
import type { ForStatement, MacroBody, Statement, Target } from "../parse/syntax.ts";
import { str } from "../python/text.ts";
import {
  Callable,
  Dict,
  isTrue,
  Iter,
  iterate,
  Namespace,
  orUndefined,
  sizeOf,
  Tuple,
  Undefined,
} from "../python/values.ts";
import type { Arguments, Value } from "../python/values.ts";

/** `{% break %}` and `{% continue %}` on their way to their loop. */
type Jump = "break" | "continue" | undefined;

export function render(statements: readonly Statement[], scope: Scope): string {
  const out: string[] = [];
  run(statements, scope, out);
  return out.join("");
}

function run(statements: readonly Statement[], scope: Scope, out: string[]): Jump {
  for (const statement of statements) {
    const jump = runOne(statement, scope, out);
    if (jump !== undefined) return jump;
  }
  return undefined;
}

function runOne(statement: Statement, scope: Scope, out: string[]): Jump {
  switch (statement.kind) {
    case "if": {
      const isMet = isTrue(evaluate(statement.test, scope));
      return run(isMet ? statement.body : statement.otherwise, scope, out);
    }
    case "with":
      return runWith(statement, scope, out);
    case "set-block":
    case "filter-block":
      return runCaptured(statement, scope, out);
    case "for":
      return loopOver(statement, evaluate(statement.iterable, scope), { scope, depth0: 0 }, out);
    case "break":
    case "continue":
      return statement.kind;
    default:
      runPlain(statement, scope, out);
      return undefined;
  }
}

type Jumping = "if" | "with" | "set-block" | "filter-block" | "for" | "break" | "continue";

/** Runs a statement that no jump leaves. */
function runPlain(
  statement: Exclude<Statement, { readonly kind: Jumping }>,
  scope: Scope,
  out: string[],
): void {
  switch (statement.kind) {
    case "text":
      out.push(statement.text);
      break;
    case "output":
      out.push(printed(statement, scope));
      break;
    case "set":
      assign(statement.target, evaluate(statement.value, scope), scope, statement.line);
      break;
    case "macro":
      scope.set(statement.macro.name, macroOf(statement.macro, scope));
      break;
    case "call-block":
      out.push(calledWithBody(statement, scope));
      break;
    case "generation":
      run(statement.body, new Scope(scope), out);
      break;
  }
}

function runWith(
  { values, body, line }: Statement & { kind: "with" },
  scope: Scope,
  out: string[],
): Jump {
  const inner = new Scope(scope);
  for (const [target, value] of values) assign(target, evaluate(value, scope), inner, line);
  return run(body, inner, out);
}

/** A jump loses what was captured, as in jinja2. */
function runCaptured(
  statement: Statement & { kind: "set-block" | "filter-block" },
  scope: Scope,
  out: string[],
): Jump {
  const captured: string[] = [];
  const jump = run(statement.body, new Scope(scope), captured);
  if (jump !== undefined) return jump;
  const { filter } = statement;
  const text = captured.join("");
  const value = filter === undefined ? text : filtered(filter, text, scope);
  if (statement.kind === "filter-block") out.push(str(value));
  else assign(statement.target, value, scope, statement.line);
  return undefined;
}

function calledWithBody(statement: Statement & { kind: "call-block" }, scope: Scope): string {
  const given = argumentsOf(statement.given, scope);
  const keyword = new Map(given.keyword).set("caller", macroOf(statement.caller, scope));
  const callee = evaluate(statement.callee, scope);
  return at(statement.line, () => str(call(callee, { ...given, keyword })));
}

function printed({ value, line }: Statement & { kind: "output" }, scope: Scope): string {
  return at(line, () => str(evaluate(value, scope)));
}

function at<Result>(line: number, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw located(error, line);
  }
}

function assign(target: Target, value: Value, scope: Scope, line: number): void {
  at(line, () => {
    if (target.kind === "name") {
      scope.set(target.name, value);
    } else if (target.kind === "member") {
      const namespace = scope.get(target.namespace) ?? unknown(target.namespace);
      if (!(namespace instanceof Namespace))
        fail("cannot assign attribute on non-namespace object");
      namespace.values.set(checkedName(target.name), value);
    } else {
      const values = iterate(value);
      const { length } = target.targets;
      if (values.length !== length)
        fail(`expected ${length} values to unpack, got ${values.length}`);
      for (const [place, one] of target.targets.entries()) assign(one, values[place]!, scope, line);
    }
  });
}

/**
 * Its else runs unless a round came to the end of the body, as in jinja2: also behind a break in
 * the first round. Returns the jump of the else, which is the outer loop's.
 */
function loopOver(
  statement: ForStatement,
  items: Value,
  { scope, depth0 }: { readonly scope: Scope; readonly depth0: number },
  out: string[],
): Jump {
  const { target, test, body, otherwise, isRecursive, line } = statement;
  const source = at(line, () => (items instanceof Iter ? items : new Iter(iterate(items))));
  const recurse = (inner: Value, depth: number): string => {
    const text: string[] = [];
    loopOver(statement, inner, { scope, depth0: depth }, text);
    return text.join("");
  };
  const chosen = test === undefined ? source : new Iter(passing(statement, source, scope));
  const length = test === undefined ? sizeOf(items) : undefined;
  const loop = new Loop(chosen, length, depth0, isRecursive ? recurse : undefined);
  let isElse = true;
  const next = (): Value | undefined => at(line, () => loop.next());
  for (let item = next(); item !== undefined; item = next()) {
    const inner = new Scope(scope);
    inner.set("loop", loop.value);
    assign(target, item, inner, line);
    const jump = run(body, inner, out);
    if (jump === "break") break;
    if (jump === undefined) isElse = false;
  }
  return isElse ? run(otherwise, new Scope(scope), out) : undefined;
}

function* passing(
  { target, test, line }: ForStatement,
  source: Iter,
  scope: Scope,
): Generator<Value> {
  for (let item = source.next(); item !== undefined; item = source.next()) {
    const inner = new Scope(scope);
    assign(target, item, inner, line);
    if (test === undefined || isTrue(evaluate(test, inner))) yield item;
  }
}

/** @param scope where it stands: what it sees, wherever it is called */
function macroOf(macro: MacroBody, scope: Scope): Callable {
  const names = macro.parameters.map(({ name }) => name);
  const shown = macro.name === undefined ? "anonymous" : `'${macro.name}'`;
  return new Callable(
    shown,
    (given) => callMacro(macro, shown, given, new Scope(scope)),
    (name) => {
      if (name === "name") return macro.name ?? null;
      if (name === "arguments") return new Tuple(names);
      if (name === "caller") return macro.reads.has("caller");
      if (name === "catch_kwargs") return macro.reads.has("kwargs");
      return name === "catch_varargs" ? macro.reads.has("varargs") : undefined;
    },
    `<Macro ${shown}>`,
  );
}

function callMacro(
  macro: MacroBody,
  shown: string,
  { positional, keyword }: Arguments,
  scope: Scope,
): string {
  const { parameters, body, reads } = macro;
  const left = new Map(keyword);
  const isOpen = (name: string): boolean =>
    reads.has(name) && !parameters.some((parameter) => parameter.name === name);
  const pending: MacroBody["parameters"][number][] = [];
  for (const [place, parameter] of parameters.entries()) {
    const { name } = parameter;
    const isNamed = place >= positional.length && left.has(name);
    const value = isNamed ? left.get(name) : positional[place];
    if (isNamed) left.delete(name);
    if (value === undefined) pending.push(parameter);
    scope.set(name, orUndefined(value, `parameter '${name}' was not provided`));
  }
  if (isOpen("caller")) {
    scope.set("caller", left.get("caller") ?? new Undefined("No caller defined"));
    left.delete("caller");
  }
  if (isOpen("kwargs")) scope.set("kwargs", Dict.of(left));
  else if (left.size > 0) fail(`macro ${shown} takes no keyword argument '${[...left.keys()][0]}'`);
  if (isOpen("varargs")) scope.set("varargs", new Tuple(positional.slice(parameters.length)));
  else if (positional.length > parameters.length) {
    fail(`macro ${shown} takes not more than ${parameters.length} argument(s)`);
  }
  for (const { name, standard } of pending) {
    if (standard !== undefined) scope.set(name, evaluate(standard, scope));
  }
  return render(body, scope);
}
