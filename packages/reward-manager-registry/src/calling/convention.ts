/**
 * The calling convention of a score function: one object, or verl's arguments by position, for one
 * sample or as lists of many. It is decided at load time from the declared parameters. A function
 * with unclear parameters is refused: its scores could silently be made of undefined values.
 */

import { RewardFunctionSignatureError } from "../errors.ts";
import {
  argumentNamed,
  isSpelt,
  listArguments,
  nearestOf,
  orderedArguments,
  rolesOf,
  saysNothing,
} from "./argument-names.ts";
import { describeParameters } from "./parameters.ts";
import type { Field, Parameter, Parameters, PassedOn } from "./parameters.ts";

export type Convention = {
  /**
   * Whether it takes many samples: verl's `batch` functions (`data_sources`, `solution_strs`, …).
   */
  readonly takesLists: boolean;
  /** Fields with a default of their own, which may be missing. */
  readonly optional: ReadonlySet<string>;
  /** Whether the object of all arguments may be copied. */
  readonly passedOn: PassedOn;
} & (
  | {
      readonly kind: "object";
      /**
       * Whether the parameter may not be such an object: a score whose function read nothing of it
       * is refused.
       */
      readonly isWatched: boolean;
    }
  | { readonly kind: "positional"; readonly slots: readonly Slot[] }
);

/**
 * The content of one position: an argument, a keyword of the user's, all of them as one object, or
 * nothing.
 */
export type Slot =
  | { readonly kind: "argument"; readonly name: string }
  | { readonly kind: "all" }
  | { readonly kind: "nothing" };

export interface Callable {
  /** The function's name, for errors. */
  readonly name: string;
  readonly length: number;
  /** Undefined when its source is not visible. */
  readonly parameters: Parameters | undefined;
  /** Names of its fixed arguments (`reward_kwargs`). */
  readonly keywords: readonly string[];
  /** Whether several functions have them, so that this one need not take all of them. */
  readonly areShared?: boolean | undefined;
}

/** Throws RewardFunctionSignatureError. */
export function conventionOf(callable: Callable): Convention {
  const { parameters, length, keywords } = callable;
  if (parameters === undefined) return unseen(callable);
  const { declared, isGenerator } = parameters;
  if (isGenerator) refuse(callable, "it is a generator, whose calls return no score");
  if (declared.some(({ kind }) => kind === "list")) {
    refuse(callable, "it destructures a list, and gets an object");
  }
  const named = declared.filter(({ kind }) => kind !== "rest");
  // A wrapper may have set `length` where its own parameters do not show it.
  if (named.length <= 1 && length >= 2) return inOrder(length, keywords);
  const [first, ...others] = named;
  if (first === undefined) return withoutParameters(callable, parameters);
  if (isObject(first, others)) {
    if (others.every(mayBeMissing)) return objectOf(callable, first, parameters);
    refuse(callable, "its first parameter is an object with all arguments, and it takes more");
  }
  return positional(callable, parameters);
}

/** Whether the first parameter contains all arguments. */
function isObject(first: Parameter, others: readonly Parameter[]): boolean {
  if (first.kind !== "name") return others.every((one) => argumentOf(one) === undefined);
  if (argumentNamed(first.name) !== undefined) return false;
  if (first.reads.some(({ name }) => argumentNamed(name) !== undefined)) return true;
  return others.every((one) => mayBeMissing(one) && argumentOf(one) === undefined);
}

/** Whether a call without the parameter is complete. */
export function mayBeMissing(parameter: Parameter): boolean {
  if (parameter.kind === "name") return parameter.hasDefault || isForAll(parameter.name);
  return parameter.kind === "fields" && parameter.fields.every(({ hasDefault }) => hasDefault);
}

function objectOf(
  callable: Callable,
  first: Parameter,
  { declared, usesArguments }: Parameters,
): Convention {
  const takesMore = usesArguments || declared.length > 1;
  const reads = readsOf(first);
  const known = reads.map(({ name }) => argumentNamed(name)).filter((name) => name !== undefined);
  const isKeyword = ({ name }: Field): boolean =>
    callable.keywords.some((one) => isSpelt(name, one));
  const isGiven = known.length > 0 || reads.some(isKeyword);
  if (first.kind === "fields" && reads.length > 0 && !first.hasRest && !isGiven) {
    const names = reads.map(({ name }) => name).join(", ");
    refuse(callable, `${names}: none of these is an argument`);
  }
  const isSure = first.kind !== "name" || known.length > 0 || !(first.isUsed || takesMore);
  const passedOn = usesArguments ? [] : passedOnBy(first);
  if (passedOn === undefined) refuseUntaken(callable, reads.map(nameOf));
  const takesLists = known.some(isListName);
  const optional = optionalIn(reads);
  return { kind: "object", takesLists, optional, passedOn, isWatched: !isSure };
}

/** Returns the properties that a parameter reads of the object of all arguments. */
function readsOf(parameter: Parameter): readonly Field[] {
  if (parameter.kind === "fields") return parameter.fields;
  return parameter.kind === "list" ? [] : parameter.reads;
}

function passedOnBy(parameter: Parameter): PassedOn {
  if (parameter.kind === "name") return parameter.passedOn;
  if (parameter.kind !== "fields") return [];
  return parameter.hasRest ? parameter.fields.map(nameOf) : undefined;
}

function optionalIn(reads: readonly Field[]): ReadonlySet<string> {
  return new Set(reads.filter(({ hasDefault }) => hasDefault).map(nameOf));
}

function nameOf({ name }: Field): string {
  return name;
}

/**
 * Refuses keywords that the function takes nowhere: a misspelt one would leave the default in its
 * place. Python raises a TypeError. verl's arguments may be fixed for a function that reads none of
 * them, as each call has them.
 *
 * @param taken all that it reads
 */
function refuseUntaken(callable: Callable, taken: readonly string[]): void {
  if (callable.areShared) return;
  for (const keyword of callable.keywords) {
    if (argumentNamed(keyword) !== undefined) continue;
    if (taken.some((name) => isSpelt(name, keyword))) continue;
    const free = taken.filter((name) => argumentNamed(name) === undefined);
    const nearest = nearestOf(keyword, free);
    const meant = nearest === undefined ? "" : ` (did you mean ${nearest}?)`;
    refuse(
      callable,
      `it takes nothing named ${keyword}, which is one of its reward_kwargs${meant}`,
    );
  }
}

function argumentOf(parameter: Parameter): string | undefined {
  return parameter.kind === "name" ? argumentNamed(parameter.name) : undefined;
}

/** Assigns positions by names, if they are names of arguments; else in verl's order. */
function positional(callable: Callable, parameters: Parameters): Convention {
  const { declared } = parameters;
  const names = declared.map(argumentOf);
  const known = names.filter((name) => name !== undefined);
  const takesLists = known.some(isListName);
  if (takesLists && known.some(isSingleName)) {
    refuse(callable, "it takes some arguments as lists and others as single values");
  }
  const order: readonly string[] = takesLists ? listArguments : orderedArguments;
  const isInOrder = names.every((name, at) => {
    const place = name === undefined ? -1 : order.indexOf(name);
    return place === -1 || place === at;
  });
  const slots = declared.map((parameter, at): Slot => {
    if (parameter.kind === "rest" && at < order.length) {
      refuse(callable, "its rest parameter does not say the order of the arguments");
    }
    const expected = isInOrder ? order[at] : undefined;
    if (parameter.kind === "fields") return slotOfFields(callable, parameter.fields, at, expected);
    const slot = namedSlot(callable, parameter, names[at]);
    if (slot !== undefined || parameter.kind !== "name") return slot ?? { kind: "all" };
    const inPlace = placed(callable, parameter, at, expected);
    if (inPlace !== undefined) return inPlace;
    // Names that a bundler has shortened do not change the order.
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
  return { kind: "positional", takesLists, slots, ...wholesOf(callable, parameters, slots) };
}

/** Returns what is read of the object of all arguments. Refuses keywords that nothing takes. */
function wholesOf(
  callable: Callable,
  { declared, usesArguments }: Parameters,
  slots: readonly Slot[],
): Pick<Convention, "optional" | "passedOn"> {
  const wholes = declared.filter((_, at) => slots[at]?.kind === "all");
  const isPassedOn = usesArguments || wholes.some((one) => passedOnBy(one) !== undefined);
  const reads = wholes.flatMap(readsOf);
  if (!isPassedOn) {
    const names = declared.flatMap((one) => (one.kind === "name" ? [one.name] : []));
    const inSlots = slots.flatMap((slot) => (slot.kind === "argument" ? [slot.name] : []));
    refuseUntaken(callable, [...reads.map(nameOf), ...inSlots, ...names]);
  }
  return { optional: optionalIn(reads), passedOn: isPassedOn ? [] : undefined };
}

/**
 * Returns what a destructured parameter gets: its argument in verl's order, where that may be an
 * object, or all of them. Which one is said by its fields: those of all are names of keywords or of
 * arguments. The call's context is among the latter only where there is no other meaning: an
 * `extra_info` may have a `step` as well.
 */
function slotOfFields(
  callable: Callable,
  fields: readonly Field[],
  at: number,
  expected: string | undefined,
): Slot {
  const { declared = [] } = callable.parameters ?? {};
  if (expected === undefined || declared.some((one) => argumentOf(one) === expected)) {
    return { kind: "all" };
  }
  const ofAll = fields.filter(({ name }) => isOfAll(callable, name));
  if (ofAll.length > 0 && ofAll.length === fields.length) return { kind: "all" };
  const [first] = ofAll;
  if (first === undefined && (expected === "extraInfo" || expected === "groundTruth")) {
    return { kind: "argument", name: expected };
  }
  const names = fields.map(nameOf).join(", ");
  const problem = first === undefined ? "which is none of its fields" : `and ${first.name} is not`;
  return refuse(
    callable,
    `its parameter ${at + 1}, { ${names} }, would be ${expected}, ${problem}`,
  );
}

/**
 * Returns the next argument in order, unless the name means another one, or another parameter has
 * that argument by name. A word that names no argument has a place in order only where no parameter
 * beside it names one.
 */
function placed(
  callable: Callable,
  { name, hasDefault }: Extract<Parameter, { kind: "name" }>,
  at: number,
  argument: string | undefined,
): Slot | undefined {
  const { declared = [] } = callable.parameters ?? {};
  const isTaken = declared.some((one) => argumentOf(one) === argument);
  if (argument === undefined || isTaken || name === "self") return undefined;
  const meant = rolesOf(name);
  const isOthersWord = meant.size === 0 && !saysNothing(name) && declared.some(hasRole);
  if (meant.has(orderedArguments[at] ?? "") || (meant.size === 0 && !isOthersWord)) {
    return { kind: "argument", name: argument };
  }
  if (isOthersWord && hasDefault) return undefined;
  const advice = meant.has("rawPrompt") ? ": a parameter rawPrompt gets the prompt's messages" : "";
  return refuse(callable, `its parameter ${at + 1}, ${name}, would be ${argument}${advice}`);
}

/** Whether it is a name of one of all arguments, and of nothing in an argument. */
function isOfAll({ keywords }: Callable, name: string): boolean {
  if (keywords.some((keyword) => isSpelt(name, keyword))) return true;
  const argument = argumentNamed(name);
  return argument !== undefined && !["step", "lane", "uid", "group"].includes(argument);
}

/** Whether its place and its name are about verl's four arguments. */
function hasRole(parameter: Parameter, at: number): boolean {
  const isAmongFour = at < orderedArguments.length && parameter.kind === "name";
  return isAmongFour && rolesOf(parameter.name).size > 0;
}

/** Returns the slot that a parameter's own name, or its kind, determines. */
function namedSlot(
  { keywords }: Callable,
  parameter: Parameter,
  argument: string | undefined,
): Slot | undefined {
  if (parameter.kind !== "name") return { kind: "all" };
  if (argument !== undefined) return { kind: "argument", name: argument };
  const keyword =
    keywords.find((one) => one === parameter.name) ??
    keywords.find((one) => isSpelt(parameter.name, one));
  if (keyword !== undefined) return { kind: "argument", name: keyword };
  return isForAll(parameter.name) ? { kind: "all" } : undefined;
}

/** Whether it is Python's `**kwargs`. */
function isForAll(name: string): boolean {
  return /^_*(kwargs|reward_?kwargs|options|keywords)_*$/i.test(name);
}

/**
 * Handles a bound function or a proxy: only its length is known, and a default hides all parameters
 * behind it.
 */
function unseen(callable: Callable): Convention {
  if (callable.length >= 2) return inOrder(callable.length, callable.keywords);
  if (callable.length === 1) {
    return { ...takingAnything, isWatched: true };
  }
  return refuse(callable, "the number of its arguments is unknown");
}

/**
 * Handles a function of which only the number of parameters is known: behind verl's four come the
 * keywords, in order.
 */
function inOrder(length: number, keywords: readonly string[]): Convention {
  const inTheirOrder = [...orderedArguments, ...keywords];
  const slots = Array.from({ length }, (_, at): Slot => {
    const name = inTheirOrder[at];
    return name === undefined ? { kind: "nothing" } : { kind: "argument", name };
  });
  const passedOn = undefined;
  return { kind: "positional", takesLists: false, optional: new Set(), passedOn, slots };
}

function withoutParameters(
  callable: Callable,
  { declared, usesArguments }: Parameters,
): Convention {
  if (declared.length > 0) refuse(callable, "it takes any arguments, without an order of its own");
  if (usesArguments) refuse(callable, "it reads `arguments` and declares none");
  refuseUntaken(callable, []);
  return takingAnything;
}

/** An object of which nothing is known. */
const takingAnything = {
  kind: "object",
  takesLists: false,
  optional: new Set<string>(),
  passedOn: [],
  isWatched: false,
} as const;

export function isListName(name: string | undefined): boolean {
  return listArguments.some((one) => one === name);
}

function isSingleName(name: string): boolean {
  return orderedArguments.some((one) => one === name);
}

function refuse({ name, parameters }: Callable, problem: string): never {
  const declared = parameters === undefined ? undefined : describeParameters(parameters);
  throw new RewardFunctionSignatureError(name, declared, problem);
}
