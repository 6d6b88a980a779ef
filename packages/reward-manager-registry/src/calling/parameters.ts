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
      /** Whether the function uses it at all. */
      readonly isUsed: boolean;
      readonly passedOn: PassedOn;
    }
  /** `{ solutionStr, bonus = 0 }` */
  | { readonly kind: "fields"; readonly fields: readonly Field[]; readonly hasRest: boolean }
  /** `[score]` */
  | { readonly kind: "list" }
  /** `...kwargs`: with the reads of its first element. */
  | { readonly kind: "rest"; readonly reads: readonly Field[] };

/**
 * Undefined where nothing but single properties of the object are read, by their names: nobody has
 * a copy of it, and nobody else sees it. Else the names that each copy of it leaves out, as that of
 * `{ solutionStr, ...rest }` leaves out `solutionStr`.
 */
export type PassedOn = readonly string[] | undefined;

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
    declared: node.params.map((pattern) => {
      const others = node.params.filter((one) => one !== pattern);
      return parameterOf(pattern, [...others, node.body]);
    }),
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

/** @param scope all of the function but the parameter */
function parameterOf(pattern: Pattern, scope: readonly AnyNode[]): Parameter {
  switch (pattern.type) {
    case "Identifier": {
      const { name } = pattern;
      const reads = readsOf(scope, (node) => isNamed(node, name));
      const copies: (readonly string[])[] = [];
      noteCopies(scope, name, copies);
      const passedOn = copies[0]?.filter((one) => copies.every((names) => names.includes(one)));
      return {
        kind: "name",
        name,
        hasDefault: false,
        reads,
        isUsed: mentions(scope, name),
        passedOn,
      };
    }
    case "AssignmentPattern": {
      const inner = parameterOf(pattern.left, scope);
      return inner.kind === "name" ? { ...inner, hasDefault: true } : inner;
    }
    case "ObjectPattern":
      return { kind: "fields", fields: fieldsIn(pattern), hasRest: hasRest(pattern) };
    case "RestElement": {
      const { argument } = pattern;
      if (argument.type !== "Identifier") return { kind: "rest", reads: firstFieldsIn(argument) };
      return { kind: "rest", reads: readsOf(scope, (node) => isFirstOf(node, argument.name)) };
    }
    default:
      return { kind: "list" };
  }
}

function hasRest(pattern: Extract<Pattern, { type: "ObjectPattern" }>): boolean {
  return pattern.properties.some(({ type }) => type === "RestElement");
}

/** Returns the fields that a pattern takes of an object. */
function fieldsIn(pattern: Pattern): Field[] {
  if (pattern.type === "AssignmentPattern") return fieldsIn(pattern.left);
  return pattern.type === "ObjectPattern" ? pattern.properties.flatMap(fieldOf) : [];
}

/** Returns the fields that a pattern takes of the first object of a list. */
function firstFieldsIn(pattern: Pattern): Field[] {
  const first = pattern.type === "ArrayPattern" ? pattern.elements[0] : undefined;
  return first === undefined || first === null ? [] : fieldsIn(first);
}

type Test = (node: AnyNode | null | undefined) => boolean;

/**
 * Finds `input.a`, `input["a"]`, `const { a = 0 } = input`, `input.a ?? 0`. A shadowing variable of
 * that name counts, too: the search is for names that identify the parameter.
 */
function readsOf(scope: readonly AnyNode[], isIt: Test): Field[] {
  const reads: Field[] = [];
  noteReads(scope, isIt, reads);
  return reads;
}

function noteReads(node: unknown, isIt: Test, reads: Field[]): void {
  if (isNode(node)) reads.push(...readsIn(node, isIt));
  for (const inside of insideOf(node)) noteReads(inside, isIt, reads);
}

function readsIn(node: AnyNode, isIt: Test): Field[] {
  if (node.type === "VariableDeclarator" && isIt(orElse(node.init))) return fieldsIn(node.id);
  const name = memberOf(node, isIt);
  if (name !== undefined) return [{ name, hasDefault: false }];
  const looked = lookedAt(node);
  const asked = looked === undefined ? undefined : memberOf(looked, isIt);
  return asked === undefined ? [] : [{ name: asked, hasDefault: true }];
}

/** Returns what stands in front of `?? {}`. */
function orElse(node: AnyNode | null | undefined): AnyNode | null | undefined {
  return node?.type === "LogicalExpression" ? node.left : node;
}

/** Adds, for each place that may copy the object or pass it on, the names that are left out. */
function noteCopies(node: unknown, name: string, copies: (readonly string[])[]): void {
  if (!isNode(node)) {
    for (const inside of insideOf(node)) noteCopies(inside, name, copies);
    return;
  }
  if (isNamed(node, name)) copies.push([]);
  for (const inside of besideReads(node, name, copies)) noteCopies(inside, name, copies);
}

/** Returns the parts of a node in which the object's name does not stand for a mere read. */
function besideReads(
  node: AnyNode,
  name: string,
  copies: (readonly string[])[],
): readonly unknown[] {
  const isIt: Test = (one) => isNamed(one, name);
  switch (node.type) {
    case "MemberExpression":
      if (memberOf(node, isIt) !== undefined) return [];
      return node.computed ? [node.object, node.property] : [node.object];
    case "Property":
      return node.computed ? [node.key, node.value] : [node.value];
    case "BinaryExpression":
      return node.operator === "in" && isIt(node.right) ? [node.left] : [node.left, node.right];
    case "VariableDeclarator":
      if (node.id.type !== "ObjectPattern" || !isIt(node.init)) return [node.id, node.init];
      if (hasRest(node.id)) copies.push(fieldsIn(node.id).map((one) => one.name));
      return [node.id];
    default:
      return insideOf(node);
  }
}

/** Returns the operand that may be missing: on the left of `??`, behind `typeof`. */
function lookedAt(node: AnyNode): AnyNode | undefined {
  if (node.type === "LogicalExpression" && node.operator === "??") {
    return node.left.type === "ChainExpression" ? node.left.expression : node.left;
  }
  return node.type === "UnaryExpression" && node.operator === "typeof" ? node.argument : undefined;
}

function memberOf(node: AnyNode, isIt: Test): string | undefined {
  if (node.type !== "MemberExpression" || !isIt(node.object)) return undefined;
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

function isFirstOf(node: AnyNode | null | undefined, list: string): boolean {
  if (node?.type !== "MemberExpression" || !isNamed(node.object, list)) return false;
  return node.property.type === "Literal" && node.property.value === 0;
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
