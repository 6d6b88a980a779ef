/** The value of an expression of a template. */

import { binary, negative } from "../python/arithmetic.ts";
import { contains, equals, order } from "../python/compare.ts";
import { ChatTemplateError, fail } from "../error.ts";
import { applyFilter } from "./filters/index.ts";
import { unknown } from "./globals.ts";
import { attributeOf, itemOf, sliceOf } from "../python/members.ts";
import type { Scope } from "./scope.ts";
import type {
  CallArguments,
  CompareOperator,
  Expression,
  FilterExpression,
} from "../parse/syntax.ts";
import { applyTest } from "./tests.ts";
import { str } from "../python/text.ts";
import { Callable, Dict, isTrue, iterate, Tuple, typeName, Undefined } from "../python/values.ts";
import type { Arguments, Value } from "../python/values.ts";

/** Throws ChatTemplateError with the line. */
export function evaluate(node: Expression, scope: Scope): Value {
  try {
    return valueOf(node, scope);
  } catch (error) {
    throw located(error, node.line);
  }
}

/** An error with the innermost line that is known. */
export function located(error: unknown, line: number): unknown {
  if (error instanceof RangeError) {
    const reason = "it calls itself without an end";
    return new ChatTemplateError("CHAT_TEMPLATE_FAILED", reason, { line, cause: error });
  }
  if (!(error instanceof ChatTemplateError) || error.line !== undefined) return error;
  const { code, reason, feature } = error;
  return new ChatTemplateError(code, reason, { line, feature });
}

function valueOf(node: Expression, scope: Scope): Value {
  switch (node.kind) {
    case "constant":
      return node.value;
    case "name":
      return known(node.name, scope);
    case "list":
      return node.items.map((item) => evaluate(item, scope));
    case "tuple":
      return new Tuple(node.items.map((item) => evaluate(item, scope)));
    case "dict":
      return Dict.of(
        node.pairs.map(([key, value]) => [evaluate(key, scope), evaluate(value, scope)] as const),
      );
    case "attribute":
      return attributeOf(evaluate(node.object, scope), node.name);
    case "item":
      return itemOf(evaluate(node.object, scope), evaluate(node.key, scope));
    case "slice":
      return sliceValue(node, scope);
    case "call":
      return call(evaluate(node.callee, scope), argumentsOf(node.given, scope));
    case "filter":
      return filtered(node, undefined, scope);
    case "test":
      return applyTest(node.name, evaluate(node.value, scope), argumentsOf(node.given, scope));
    case "not":
      return !isTrue(evaluate(node.value, scope));
    case "negative":
      return negative(evaluate(node.value, scope), "-");
    case "positive":
      return negative(evaluate(node.value, scope), "+");
    case "binary":
      return binary(node.operator, evaluate(node.left, scope), evaluate(node.right, scope));
    case "and":
    case "or": {
      const left = evaluate(node.left, scope);
      return isTrue(left) === (node.kind === "or") ? left : evaluate(node.right, scope);
    }
    case "concat":
      return node.parts.map((part) => str(evaluate(part, scope))).join("");
    case "compare":
      return compared(node, scope);
    default: {
      if (isTrue(evaluate(node.test, scope))) return evaluate(node.value, scope);
      if (node.otherwise !== undefined) return evaluate(node.otherwise, scope);
      return new Undefined("the inline if-expression evaluated to false and has no else");
    }
  }
}

function known(name: string, scope: Scope): Value {
  const value = scope.get(name);
  return value === undefined ? unknown(name) : value;
}

function sliceValue(node: Expression & { kind: "slice" }, scope: Scope): Value {
  const { start, stop, step } = node.bounds;
  const bound = (part: Expression | undefined): Value =>
    part === undefined ? null : evaluate(part, scope);
  const object = evaluate(node.object, scope);
  return sliceOf(object, bound(start), bound(stop), bound(step));
}

/** `a < b < c`: each with the next, as far as they hold. */
function compared(node: Expression & { kind: "compare" }, scope: Scope): boolean {
  let left = evaluate(node.first, scope);
  for (const { operator, value } of node.rest) {
    const right = evaluate(value, scope);
    if (!holds(operator, left, right)) return false;
    left = right;
  }
  return true;
}

function holds(operator: CompareOperator, left: Value, right: Value): boolean {
  switch (operator) {
    case "==":
      return equals(left, right);
    case "!=":
      return !equals(left, right);
    case "in":
      return contains(right, left);
    case "not in":
      return !contains(right, left);
    case "<":
      return order(left, right, operator) < 0;
    case "<=":
      return order(left, right, operator) <= 0;
    case ">":
      return order(left, right, operator) > 0;
    default:
      return order(left, right, operator) >= 0;
  }
}

/** @param text of the block that it filters */
export function filtered(node: FilterExpression, text: string | undefined, scope: Scope): Value {
  const value =
    node.value === undefined
      ? (text ?? "")
      : node.value.kind === "filter"
        ? filtered(node.value, text, scope)
        : evaluate(node.value, scope);
  try {
    return applyFilter(node.name, value, argumentsOf(node.given, scope));
  } catch (error) {
    throw located(error, node.line);
  }
}

export function call(callee: Value, given: Arguments): Value {
  if (callee instanceof Undefined) return callee.fail();
  if (!(callee instanceof Callable)) return fail(`${typeName(callee)} object is not callable`);
  return callee.call(given);
}

export function argumentsOf(given: CallArguments, scope: Scope): Arguments {
  const positional = given.positional.map((one) => evaluate(one, scope));
  const keyword = new Map<string, Value>();
  const add = (name: string, value: Value): void => {
    if (keyword.has(name)) fail(`got multiple values for keyword argument '${name}'`);
    keyword.set(name, value);
  };
  if (given.spread !== undefined) positional.push(...iterate(evaluate(given.spread, scope)));
  for (const [name, value] of given.keyword) add(name, evaluate(value, scope));
  if (given.keywordSpread !== undefined) {
    const values = evaluate(given.keywordSpread, scope);
    if (!(values instanceof Dict))
      return fail(`argument after ** must be a mapping, not ${typeName(values)}`);
    for (const [name, value] of values.pairs()) {
      add(typeof name === "string" ? name : fail("keywords must be strings"), value);
    }
  }
  return { positional, keyword };
}
