/**
 * The one object that a score function gets: its arguments under the names here, and under verl's
 * (`solution_str`). A missing argument is no `undefined` that could become a score: reading it
 * throws, and a score made in spite of that (a `catch` that returns 0) is refused, too.
 *
 * Existing arguments cost nothing: the trap for missing ones is at the end of the prototype chain,
 * and second spellings are on the prototype. A copy has neither, so an object that may be copied
 * has both spellings itself. The context of the call is its own only where the function names it: a
 * copy reads all, and a score that has read the context is good for its own call alone.
 */

import { RewardFunctionSignatureError, UnknownScoreArgumentError } from "../errors.ts";
import type { ScoreInput } from "../scoring/compute-score.ts";
import { isRecord } from "../values/records.ts";
import {
  allArguments,
  argumentNamed,
  nearestArgument,
  optionalArguments,
  otherSpellingOf,
  snakeOf,
} from "./argument-names.ts";
import type { PassedOn } from "./parameters.ts";

export interface GivenOptions {
  /** The function's name, for errors. */
  readonly functionName: string;
  /** Its fixed arguments, which override those of the call. */
  readonly keywords: Readonly<Record<string, unknown>>;
  /** Fields with a default of their own. */
  readonly optional: ReadonlySet<string>;
  /** Whether a score is refused when its function has read nothing. */
  readonly isWatched: boolean;
  /** Whether copies may be made of the object, and the names that they leave out. */
  readonly passedOn: PassedOn;
  /** The source text of the function. */
  readonly text: string;
  /** Returns the signal of a call; made on first use. */
  readonly signal: (() => AbortSignal) | undefined;
  /**
   * Called, before the score is there, for each call that has read its context: another call with
   * an equal sample may have another score.
   */
  readonly onContext: (() => void) | undefined;
}

export interface GivenArguments {
  of(input: Readonly<Record<string, unknown>>): ScoreInput;
  /**
   * Throws UnknownScoreArgumentError when the function read a missing argument, and
   * RewardFunctionSignatureError when it read nothing and had to.
   */
  verify(given: ScoreInput): void;
}

export function givenArguments(options: GivenOptions): GivenArguments {
  const prototype: object = {};
  const spellings = spellingsOf(Object.keys(options.keywords));
  for (const [name, other] of spellings) nameAlso(prototype, name, other);
  for (const name of ofContext) {
    overridable(prototype, name, function (this: unknown) {
      return Given.contextOf(this, name);
    });
  }
  if (options.signal !== undefined) overridable(prototype, "signal", options.signal);
  Object.setPrototypeOf(prototype, lookOut(options, spellings));
  const copied = copiedOf(options, prototype, spellings);
  const kind: GivenKind = { ...options, prototype, watched: new Map(), copied };
  return {
    of: (input) => new Given(kind, input) as unknown as ScoreInput,
    verify: (given) => Given.verify(given, kind),
  };
}

/** Returns the names of arguments and keywords with their other spellings. */
function spellingsOf(keywords: readonly string[]): ReadonlyMap<string, string> {
  const spellings = new Map<string, string>();
  for (const name of allArguments) if (snakeOf(name) !== name) spellings.set(name, snakeOf(name));
  for (const name of keywords) {
    const other = otherSpellingOf(name);
    const isFree = other !== undefined && !keywords.includes(other) && !(other in Object.prototype);
    if (isFree && argumentNamed(other) === undefined) spellings.set(name, other);
  }
  return spellings;
}

/** Returns the properties that an object has for its copies, by the names of what they contain. */
function copiedOf(
  { passedOn, text }: GivenOptions,
  prototype: object,
  spellings: ReadonlyMap<string, string>,
): GivenKind["copied"] {
  if (passedOn === undefined) return undefined;
  const named = [...ofContext].filter((name) => isReadIn(text, name));
  const names = [...spellings, ...named.map((name) => [name, name] as const)];
  const copied = new Map<
    string,
    { readonly name: string; readonly property: PropertyDescriptor }
  >();
  for (const [from, name] of names) {
    const property = Object.getOwnPropertyDescriptor(prototype, name);
    // A rest that leaves out `solutionStr` is without its other spelling, too.
    if (property === undefined || passedOn.includes(from)) continue;
    copied.set(from, { name, property: { ...property, enumerable: true } });
  }
  return copied;
}

/**
 * Whether the text may read a field of that name: behind a point, as a key, or in a pattern. A
 * variable that is called `group` or `step` does not read one.
 */
function isReadIn(text: string, name: string): boolean {
  const asField = String.raw`(?:\.\s*|\[\s*["'\x60])${name}\b`;
  const inPattern = String.raw`[{,]\s*${name}\s*[,}:=]`;
  return new RegExp(`${asField}|${inPattern}`).test(text);
}

/** The arguments of one score function. */
interface GivenKind extends GivenOptions {
  readonly prototype: object;
  /**
   * Accessors by name, shared by all objects, so that these have one shape: a seventh of the time
   * (measured).
   */
  readonly watched: Map<string, PropertyDescriptor>;
  /** Properties beside the arguments, for copies; undefined where there are none. */
  readonly copied: Copied | undefined;
}

/** Properties by the names of the arguments that they contain. */
type Copied = ReadonlyMap<string, { readonly name: string; readonly property: PropertyDescriptor }>;

/** Each includes the one before. */
type Read = "nothing" | "arguments" | "context";

/** Its derived classes add their private fields to the object that they are given. */
// oxlint-disable-next-line typescript/no-extraneous-class -- it is what returns the object
class Returned {
  constructor(own: object) {
    return own;
  }
}

/**
 * Two private fields, and no private method: they lie outside of the object that they are added to,
 * in an array with room for three. As many wait as samples are asked at once.
 */
class Given extends Returned {
  /** The values that are read through accessors: of the context, and of all that is watched. */
  readonly #input: Readonly<Record<string, unknown>>;
  /** The most that the function has read; or the first refusal, which stands for all. */
  #read: Read | UnknownScoreArgumentError = "nothing";

  constructor(kind: GivenKind, input: Readonly<Record<string, unknown>>) {
    const { prototype, keywords, isWatched } = kind;
    super(isWatched ? { __proto__: prototype } : fieldsOf(kind, input));
    this.#input = isWatched ? input : contextIn(input);
    if (input["group"] !== undefined) Given.#watchGroup(this, input);
    if (isWatched) {
      for (const name in input) if (!ofContext.has(name)) Given.#watch(this, name, kind);
      for (const name in keywords) Given.#watch(this, name, kind);
    }
    if (kind.copied !== undefined) Given.#addCopied(this, input, kind.copied);
  }

  /** Returns a value of the call's context and records that it was read. */
  static contextOf(value: unknown, name: string): unknown {
    if (!Given.#isGiven(value)) return undefined;
    if (typeof value.#read === "string") value.#read = "context";
    return value.#input[name];
  }

  /** Records the first refusal. */
  static refuse(value: unknown, error: UnknownScoreArgumentError): void {
    if (Given.#isGiven(value) && typeof value.#read === "string") value.#read = error;
  }

  static verify(value: unknown, { functionName, isWatched, onContext }: GivenKind): void {
    if (!Given.#isGiven(value)) return;
    const read = value.#read;
    if (typeof read !== "string") throw read;
    if (read === "context") onContext?.();
    if (!isWatched || read !== "nothing") return;
    const problem =
      "it gets one object, and returned a score without reading it: it may take positional arguments, or wrap another function";
    throw new RewardFunctionSignatureError(functionName, undefined, problem);
  }

  static #isGiven(value: unknown): value is Given {
    return typeof value === "object" && value !== null && #read in value;
  }

  /** Defines what the object has for its copies. */
  static #addCopied(given: Given, input: Readonly<Record<string, unknown>>, copied: Copied): void {
    for (const [from, { name, property }] of copied) {
      const isThere = ofContext.has(from) ? input[from] !== undefined : Object.hasOwn(given, from);
      if (isThere) Object.defineProperty(given, name, property);
    }
  }

  /** The group's name is part of the context in `extraInfo.group_uid`, too. */
  static #watchGroup(given: Given, input: Readonly<Record<string, unknown>>): void {
    const { group, extraInfo, extraInfos } = input;
    for (const info of Array.isArray(extraInfos) ? extraInfos : [extraInfo]) {
      if (!isRecord(info) || info["group_uid"] !== group) continue;
      Object.defineProperty(info, "group_uid", {
        get: () => Given.contextOf(given, "group"),
        set(this: object, value: unknown) {
          define(this, "group_uid", value);
        },
        enumerable: true,
        configurable: true,
      });
    }
  }

  /** Defines an ordinary property, which can be copied and sent. */
  static #watch(given: Given, name: string, { watched, keywords }: GivenKind): void {
    let property = watched.get(name);
    if (property === undefined) {
      property = Given.#watchedProperty(name, keywords);
      watched.set(name, property);
    }
    Object.defineProperty(given, name, property);
  }

  static #watchedProperty(
    name: string,
    keywords: Readonly<Record<string, unknown>>,
  ): PropertyDescriptor {
    const isKeyword = Object.hasOwn(keywords, name);
    return {
      get(this: unknown) {
        const given = Given.#givenIn(this);
        if (given === undefined) return undefined;
        if (given.#read === "nothing") given.#read = "arguments";
        return isKeyword ? keywords[name] : given.#input[name];
      },
      set(this: object, value: unknown) {
        define(this, name, value);
      },
      enumerable: true,
      configurable: true,
    };
  }

  /** Returns the arguments that `value` is, or inherits from. */
  static #givenIn(value: unknown): Given | undefined {
    let one = value;
    while (one !== null && one !== undefined && !Given.#isGiven(one)) {
      one = Object.getPrototypeOf(one);
    }
    return one ?? undefined;
  }
}

/**
 * Returns the object with its fields. They are part of its literal, because an assignment asks the
 * trap at the end of the prototype chain: 0.6 us a call instead of 0.1 (measured).
 */
function fieldsOf(
  { prototype, keywords }: GivenKind,
  input: Readonly<Record<string, unknown>>,
): object {
  const { dataSource, solutionStr, groundTruth, extraInfo } = input;
  const ofSample = { dataSource, solutionStr, groundTruth, extraInfo };
  const own = hasAll(ofSample)
    ? { __proto__: prototype, ...ofSample, ...keywords }
    : { __proto__: prototype, ...keywords };
  for (const name in input) {
    if (!ofContext.has(name) && !Object.hasOwn(own, name)) define(own, name, input[name]);
  }
  return own;
}

/** One that is missing must not be there as undefined. */
function hasAll(fields: Readonly<Record<string, unknown>>): boolean {
  for (const name in fields) if (fields[name] === undefined) return false;
  return true;
}

const ofContext: ReadonlySet<string> = new Set(["uid", "group", "step", "lane"]);

/** The context of a call: what else it was given is let go of. */
function contextIn({ uid, group, step, lane }: Readonly<Record<string, unknown>>): Context {
  const hasLaneOnly = uid === undefined && group === undefined && step === undefined;
  return hasLaneOnly && lane === "training" ? inTraining : { uid, group, step, lane };
}

type Context = Readonly<Record<string, unknown>>;

/** Most calls outside of a trainer say nothing else. */
const inTraining: Context = { lane: "training" };

/** Defines an alias; a write to it changes the other property. */
function nameAlso(prototype: object, name: string, other: string): void {
  Object.defineProperty(prototype, other, {
    get(this: Record<string, unknown>) {
      return this[name];
    },
    set(this: Record<string, unknown>, value: unknown) {
      this[name] = value;
    },
    configurable: true,
  });
}

/** Defines a property that is computed on use; a write makes it an own property. */
function overridable(prototype: object, name: string, get: (this: unknown) => unknown): void {
  Object.defineProperty(prototype, name, {
    get,
    set(this: object, value: unknown) {
      define(this, name, value);
    },
    configurable: true,
  });
}

function define(target: object, name: string, value: unknown): void {
  const ordinary = { writable: true, enumerable: true, configurable: true };
  Object.defineProperty(target, name, { value, ...ordinary });
}

/** Properties that probes of an object's kind read: a promise, JSON, an element of a page. */
const probes: ReadonlySet<string> = new Set([
  "then",
  "toJSON",
  "nodeType",
  "$$typeof",
  "asymmetricMatch",
]);

/** Returns the trap at the end of the prototype chain. */
function lookOut(
  { optional, keywords }: GivenOptions,
  spellings: ReadonlyMap<string, string>,
): object {
  const mayLack = new Set<string | symbol>([...optional, ...probes, ...optionalArguments]);
  const others = new Set(spellings.values());
  const prototype: object = Object.create(Object.prototype);
  return new Proxy(prototype, {
    get(target, key, given: unknown) {
      if (typeof key === "symbol" || key in target) return Reflect.get(target, key, given);
      if (mayLack.has(key)) return undefined;
      const names = Object.keys(keywords);
      const own = Object.keys(Object(given)).filter((name) => !others.has(name));
      const known = [...new Set([...own, ...optionalArguments])];
      const error = new UnknownScoreArgumentError(key, nearestArgument(key, names), known);
      Given.refuse(given, error);
      throw error;
    },
  });
}
