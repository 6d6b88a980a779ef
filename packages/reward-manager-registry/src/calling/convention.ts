/**
 * How a score function wants to be called: with one object, or with verl's arguments one behind the other, of one sample or as lists of many. Decided when it is loaded, by what it declares.
 * A function that would be given something else than it asks for is refused: its scores would be made of undefined values, and nobody would notice.
 */

import { RewardFunctionSignatureError } from "../errors.ts";
import { argumentNamed, listArguments, orderedArguments, rolesOf } from "./argument-names.ts";
import { describeParameters } from "./parameters.ts";
import type { Parameter, Parameters } from "./parameters.ts";

export type Convention = {
  /** Of many samples: verl's `batch` functions (`data_sources`, `solution_strs`, …). */
  readonly takesLists: boolean;
} & (
  | {
      readonly kind: "object";
      /** Fields with a default of their own: they may be missing. */
      readonly optional: ReadonlySet<string>;
      /** It may mean something else than an object: a score for which it has read nothing of that is none. */
      readonly isWatched: boolean;
    }
  | { readonly kind: "positional"; readonly slots: readonly Slot[] }
);

/** What stands at one place: an argument, a keyword of the user's, all of them as one object, or nothing. */
export type Slot =
  | { readonly kind: "argument"; readonly name: string }
  | { readonly kind: "all" }
  | { readonly kind: "nothing" };

export interface Callable {
  /** For errors: whose function it is. */
  readonly name: string;
  readonly length: number;
  /** Undefined where its source cannot be seen. */
  readonly parameters: Parameters | undefined;
  /** Names of its fixed arguments (`reward_kwargs`). */
  readonly keywords: readonly string[];
}

/** Throws RewardFunctionSignatureError. */
export function conventionOf(callable: Callable): Convention {
  const { parameters, length, keywords } = callable;
  if (parameters === undefined) return unseen(callable);
  const { declared, usesArguments, isGenerator } = parameters;
  if (isGenerator) refuse(callable, "it is a generator, whose calls return no score");
  if (declared.some(({ kind }) => kind === "list")) {
    refuse(callable, "it takes a list apart, and is given none");
  }
  const named = declared.filter(({ kind }) => kind !== "rest");
  // Somebody may have said how many it takes where its own parameters do not.
  if (named.length <= 1 && length >= 2) return inOrder(length, keywords);
  const [first, ...others] = named;
  if (first === undefined) return withoutParameters(callable, parameters);
  if (isObject(first, others)) {
    if (others.every(mayBeMissing)) {
      return objectOf(callable, first, usesArguments || declared.length > 1);
    }
    refuse(callable, "its first parameter is an object with all arguments, and it takes more");
  }
  return positional(callable, declared);
}

/** Whether all arguments are in the first parameter. */
function isObject(first: Parameter, others: readonly Parameter[]): boolean {
  if (first.kind !== "name") return others.every((one) => argumentOf(one) === undefined);
  if (argumentNamed(first.name) !== undefined) return false;
  if (first.reads.some(({ name }) => argumentNamed(name) !== undefined)) return true;
  return others.every((one) => mayBeMissing(one) && argumentOf(one) === undefined);
}

/** Whether a call without it is a whole one. */
export function mayBeMissing(parameter: Parameter): boolean {
  if (parameter.kind === "name") return parameter.hasDefault || isForAll(parameter.name);
  return parameter.kind === "fields" && parameter.fields.every(({ hasDefault }) => hasDefault);
}

/** @param takesMore than the one, or may */
function objectOf(callable: Callable, first: Parameter, takesMore: boolean): Convention {
  const reads = first.kind === "fields" ? first.fields : first.kind === "name" ? first.reads : [];
  const known = reads.map(({ name }) => argumentNamed(name)).filter((name) => name !== undefined);
  const isGiven = known.length > 0 || reads.some(({ name }) => callable.keywords.includes(name));
  if (first.kind === "fields" && reads.length > 0 && !first.hasRest && !isGiven) {
    const names = reads.map(({ name }) => name).join(", ");
    refuse(callable, `${names}: nothing of that is an argument`);
  }
  const isSure = first.kind !== "name" || known.length > 0 || !(first.isUsed || takesMore);
  const optional = new Set(reads.filter(({ hasDefault }) => hasDefault).map(({ name }) => name));
  return { kind: "object", takesLists: known.some(isListName), optional, isWatched: !isSure };
}

function argumentOf(parameter: Parameter): string | undefined {
  return parameter.kind === "name" ? argumentNamed(parameter.name) : undefined;
}

/** By names, where they are names of arguments; else in verl's order. */
function positional(callable: Callable, declared: readonly Parameter[]): Convention {
  const names = declared.map(argumentOf);
  const known = names.filter((name) => name !== undefined);
  const takesLists = known.some(isListName);
  if (takesLists && known.some(isSingleName)) {
    refuse(callable, "it takes lists of some arguments and single ones of others");
  }
  const order: readonly string[] = takesLists ? listArguments : orderedArguments;
  const isInOrder = names.every((name, at) => {
    const place = name === undefined ? -1 : order.indexOf(name);
    return place === -1 || place === at;
  });
  const slots = declared.map((parameter, at): Slot => {
    if (parameter.kind === "rest" && at < order.length) {
      refuse(callable, "its rest parameter would hold arguments in an order that it does not say");
    }
    const slot = namedSlot(callable, parameter, names[at]);
    if (slot !== undefined || parameter.kind !== "name") return slot ?? { kind: "all" };
    const inPlace = placed(callable, parameter.name, at, isInOrder ? order[at] : undefined);
    if (inPlace !== undefined) return inPlace;
    // Names that a bundler has shortened leave the order alone.
    const keyword = known.length === 0 ? callable.keywords[at - order.length] : undefined;
    if (keyword !== undefined) return { kind: "argument", name: keyword };
    if (parameter.hasDefault) return { kind: "nothing" };
    return refuse(
      callable,
      parameter.name === "self"
        ? "its parameter self is Python's: a method has `this` here"
        : `its parameter ${parameter.name} is no argument, none of its reward_kwargs, and has no default`,
    );
  });
  return { kind: "positional", takesLists, slots };
}

/** The argument whose turn it is, unless the name says that another one is meant, or one has that argument by its name. */
function placed(
  callable: Callable,
  name: string,
  at: number,
  argument: string | undefined,
): Slot | undefined {
  const isTaken = callable.parameters?.declared.some((one) => argumentOf(one) === argument);
  if (argument === undefined || isTaken === true || name === "self") return undefined;
  const meant = rolesOf(name);
  if (meant.size === 0 || meant.has(orderedArguments[at] as string)) {
    return { kind: "argument", name: argument };
  }
  return refuse(callable, `its parameter ${at + 1}, ${name}, would be ${argument}`);
}

/** What its own name, or its kind, says of a parameter. */
function namedSlot(
  { keywords }: Callable,
  parameter: Parameter,
  argument: string | undefined,
): Slot | undefined {
  if (parameter.kind !== "name") return { kind: "all" };
  if (argument !== undefined) return { kind: "argument", name: argument };
  if (keywords.includes(parameter.name)) return { kind: "argument", name: parameter.name };
  return isForAll(parameter.name) ? { kind: "all" } : undefined;
}

/** Python's `**kwargs`. */
function isForAll(name: string): boolean {
  return /^_*(kwargs|reward_?kwargs|options|keywords)_*$/i.test(name);
}

/** A bound function, a proxy of one: its length alone is known, and a default hides all behind it. */
function unseen(callable: Callable): Convention {
  if (callable.length >= 2) return inOrder(callable.length, callable.keywords);
  if (callable.length === 1) {
    return { kind: "object", takesLists: false, optional: new Set(), isWatched: true };
  }
  return refuse(callable, "how many arguments it takes cannot be seen");
}

/** Nothing is known but how many: behind verl's four stand the keywords, in their order. */
function inOrder(length: number, keywords: readonly string[]): Convention {
  const inTheirOrder = [...orderedArguments, ...keywords];
  const slots = Array.from({ length }, (_, at): Slot => {
    const name = inTheirOrder[at];
    return name === undefined ? { kind: "nothing" } : { kind: "argument", name };
  });
  return { kind: "positional", takesLists: false, slots };
}

function withoutParameters(
  callable: Callable,
  { declared, usesArguments }: Parameters,
): Convention {
  if (declared.length > 0)
    refuse(callable, "it takes whatever it is given, in no order of its own");
  if (usesArguments) refuse(callable, "it reads `arguments` and declares none");
  return { kind: "object", takesLists: false, optional: new Set(), isWatched: false };
}

export function isListName(name: string | undefined): boolean {
  return (listArguments as readonly (string | undefined)[]).includes(name);
}

function isSingleName(name: string): boolean {
  return (orderedArguments as readonly string[]).includes(name);
}

function refuse({ name, parameters }: Callable, problem: string): never {
  const declared = parameters === undefined ? undefined : describeParameters(parameters);
  throw new RewardFunctionSignatureError(name, declared, problem);
}
