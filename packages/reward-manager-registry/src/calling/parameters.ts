/**
 * The declared parameters of a function, read from its source text: `length` says nothing of
 * defaults, rest parameters and those behind them. Functions without visible source (bound ones,
 * proxies, native code) have none.
 */

import type { AnyNode, Function as FunctionNode, Pattern } from "acorn";

/** A declared parameter. */
export type Parameter =
  | {
      readonly kind: "name";
      readonly name: string;
      readonly hasDefault: boolean;
      /**
       * Properties of it that the body reads: `input.solutionStr`, `const { bonus = 0 } = input`.
       */
      readonly reads: readonly Field[];
      /** Whether the body uses it at all. */
      readonly isUsed: boolean;
    }
  /** `{ solutionStr, bonus = 0 }` */
  | { readonly kind: "fields"; readonly fields: readonly Field[]; readonly hasRest: boolean }
  /** `[score]` */
  | { readonly kind: "list" }
  | { readonly kind: "rest" };

export interface Field {
  readonly name: string;
  readonly hasDefault: boolean;
}

export interface Parameters {
  readonly declared: readonly Parameter[];
  /** Whether it reads `arguments`, so that it may take more than it declares. */
  readonly usesArguments: boolean;
  readonly isGenerator: boolean;
}

/** Returns undefined when the source is not visible. */
export async function parametersOf(
  callable: (...args: never) => unknown,
): Promise<Parameters | undefined> {
  // Its own toString could return anything.
  const text = Function.prototype.toString.call(callable);
  const plain = plainParameters(text);
  if (plain !== undefined) return plain;
  const node = await parsed(text);
  if (node === undefined) return undefined;
  const isArrow = node.type === "ArrowFunctionExpression";
  return {
    declared: node.params.map((pattern) => parameterOf(pattern, node.body)),
    usesArguments: !isArrow && [...node.params, node.body].some(readsArguments),
    isGenerator: node.generator,
  };
}

const identifier = String.raw`[A-Za-z_$][\w$]*`;
const plainField = String.raw`${identifier}(?:\s*:\s*${identifier})?`;

/** The head of a function without parameters, or with one object of which it takes fields. */
const plainHead = new RegExp(
  String.raw`^(?:async\b\s*)?(?:function\b\s*)?(?:${identifier}\s*)?` +
    String.raw`\(\s*(?:\{\s*(?<fields>${plainField}(?:\s*,\s*${plainField})*)\s*,?\s*\}\s*,?\s*)?\)\s*(?:=>|\{)`,
);

/** Native code, which has a head of no parameters, and `arguments`. */
const notPlain = /\[native code\]|\barguments\b/;

/**
 * Reads what most functions are without the parser, which takes each thread 10 ms to load: nothing
 * but names, and no default, rest or comment among them. Undefined for all others.
 */
function plainParameters(text: string): Parameters | undefined {
  const head = plainHead.exec(text);
  if (head === null || notPlain.test(text)) return undefined;
  const names = head.groups?.["fields"]?.split(",").map((field) => field.split(":")[0]?.trim());
  const fields = names?.map((name = "") => ({ name, hasDefault: false }));
  return {
    declared: fields === undefined ? [] : [{ kind: "fields", fields, hasRest: false }],
    usesArguments: false,
    isGenerator: false,
  };
}

/** Returns a text for errors: `(dataSource, { bonus }, ...rest)`. */
export function describeParameters({ declared }: Parameters): string {
  const words = declared.map((one) => {
    if (one.kind === "rest") return "...";
    if (one.kind === "list") return "[…]";
    if (one.kind === "fields") return `{ ${one.fields.map(({ name }) => name).join(", ")} }`;
    return one.hasDefault ? `${one.name} = …` : one.name;
  });
  return `(${words.join(", ")})`;
}

/**
 * A method is parsed without its class, which declares its private fields and provides its `super`.
 */
const options = {
  ecmaVersion: "latest",
  checkPrivateFields: false,
  allowSuperOutsideMethod: true,
} as const;

/** A method's text is valid only inside an object or a class. */
const places = [
  (text: string) => `(${text})`,
  (text: string) => `({${text}})`,
  (text: string) => `(class extends Object {${text}})`,
  (text: string) => `(class extends Object {static ${text}})`,
] as const;

/** Returns undefined for native code, and for syntax that the parser does not know. */
async function parsed(text: string): Promise<FunctionNode | undefined> {
  const { parse } = await import("acorn");
  for (const place of places) {
    try {
      const [statement] = parse(place(text), options).body;
      const found = statement === undefined ? undefined : firstFunction(statement);
      if (found !== undefined) return found;
    } catch {
      // The text belongs to another place, or to none.
    }
  }
  return undefined;
}

/** Returns the outermost function; a computed name, which comes first, may contain others. */
function firstFunction(node: AnyNode): FunctionNode | undefined {
  switch (node.type) {
    case "ExpressionStatement":
      return firstFunction(node.expression);
    case "ArrowFunctionExpression":
    case "FunctionExpression":
      return node;
    case "ObjectExpression":
      return node.properties[0] && firstFunction(node.properties[0]);
    case "ClassExpression":
      return node.body.body[0] && firstFunction(node.body.body[0]);
    case "Property":
      return firstFunction(node.value);
    case "MethodDefinition":
      return node.value;
    case "PropertyDefinition":
      return node.value ? firstFunction(node.value) : undefined;
    default:
      return undefined;
  }
}

function parameterOf(pattern: Pattern, body: AnyNode): Parameter {
  switch (pattern.type) {
    case "Identifier": {
      const { name } = pattern;
      const reads: Field[] = [];
      noteReads(body, name, reads);
      return { kind: "name", name, hasDefault: false, reads, isUsed: mentions(body, name) };
    }
    case "AssignmentPattern": {
      const inner = parameterOf(pattern.left, body);
      return inner.kind === "name" ? { ...inner, hasDefault: true } : inner;
    }
    case "ObjectPattern":
      return {
        kind: "fields",
        fields: pattern.properties.flatMap(fieldOf),
        hasRest: pattern.properties.some(({ type }) => type === "RestElement"),
      };
    case "RestElement":
      return { kind: "rest" };
    default:
      return { kind: "list" };
  }
}

/**
 * Finds `input.a`, `input["a"]`, `const { a = 0 } = input`, `input.a ?? 0`. A shadowing variable of
 * that name counts, too: the search is for names that identify the parameter.
 */
function noteReads(node: unknown, of: string, reads: Field[]): void {
  if (isNode(node)) reads.push(...readsIn(node, of));
  for (const inside of insideOf(node)) noteReads(inside, of, reads);
}

function readsIn(node: AnyNode, of: string): Field[] {
  if (node.type === "VariableDeclarator" && isNamed(node.init, of)) {
    return node.id.type === "ObjectPattern" ? node.id.properties.flatMap(fieldOf) : [];
  }
  const name = memberOf(node, of);
  if (name !== undefined) return [{ name, hasDefault: false }];
  const looked = lookedAt(node);
  const asked = looked === undefined ? undefined : memberOf(looked, of);
  return asked === undefined ? [] : [{ name: asked, hasDefault: true }];
}

/** Returns the operand that may be missing: on the left of `??`, behind `typeof`. */
function lookedAt(node: AnyNode): AnyNode | undefined {
  if (node.type === "LogicalExpression" && node.operator === "??") return node.left;
  return node.type === "UnaryExpression" && node.operator === "typeof" ? node.argument : undefined;
}

function memberOf(node: AnyNode, of: string): string | undefined {
  if (node.type !== "MemberExpression" || !isNamed(node.object, of)) return undefined;
  const { property, computed } = node;
  if (property.type === "Identifier" && !computed) return property.name;
  return property.type === "Literal" && computed ? String(property.value) : undefined;
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value;
}

function isNamed(node: AnyNode | null | undefined, name: string): boolean {
  return node?.type === "Identifier" && node.name === name;
}

function fieldOf(property: Extract<Pattern, { type: "ObjectPattern" }>["properties"][0]): Field[] {
  if (property.type === "RestElement" || property.computed) return [];
  const { key, value } = property;
  const name =
    key.type === "Identifier" ? key.name : key.type === "Literal" ? String(key.value) : undefined;
  return name === undefined ? [] : [{ name, hasDefault: value.type === "AssignmentPattern" }];
}

/** Inner functions have `arguments` of their own; arrows do not. */
function readsArguments(node: unknown): boolean {
  if (isNode(node) && /^Function(Expression|Declaration)$/.test(node.type)) return false;
  return isNode(node) && isNamed(node, "arguments") ? true : insideOf(node).some(readsArguments);
}

function mentions(node: unknown, name: string): boolean {
  return isNode(node) && isNamed(node, name)
    ? true
    : insideOf(node).some((one) => mentions(one, name));
}

function insideOf(node: unknown): readonly unknown[] {
  return typeof node === "object" && node !== null ? Object.values(node) : [];
}
