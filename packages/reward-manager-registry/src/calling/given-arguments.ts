/**
 * The one object that a score function gets: its arguments under the names here, and under verl's
 * (`solution_str`). A missing argument is no `undefined` that could become a score: reading it
 * throws, and a score made in spite of that (a `catch` that returns 0) is refused, too.
 *
 * Existing arguments cost nothing: the trap for missing ones is at the end of the prototype chain.
 * The context of the call is on the prototype, too, so a copy of the arguments has only those of
 * the sample.
 */

import { RewardFunctionSignatureError, UnknownScoreArgumentError } from "../errors.ts";
import type { ScoreInput } from "../scoring/compute-score.ts";
import { allArguments, nearestArgument, optionalArguments, snakeOf } from "./argument-names.ts";

export interface GivenOptions {
  /** The function's name, for errors. */
  readonly functionName: string;
  /** Its fixed arguments, which override those of the call. */
  readonly keywords: Readonly<Record<string, unknown>>;
  /** Fields with a default of their own. */
  readonly optional: ReadonlySet<string>;
  /** Whether a score is refused when its function has read nothing. */
  readonly isWatched: boolean;
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
  const { signal } = options;
  const Given = givenClass(options);
  for (const name of allArguments) nameAlso(Given.prototype, name, snakeOf(name));
  for (const name of ofContext) {
    overridable(Given.prototype, name, function (this: unknown) {
      return Given.contextOf(this, name);
    });
  }
  if (signal !== undefined) overridable(Given.prototype, "signal", signal);
  Object.setPrototypeOf(
    Given.prototype,
    lookOut(options, (given, error) => Given.refuse(given, error)),
  );
  return {
    of: (input) => new Given(input) as unknown as ScoreInput,
    verify: (given) => Given.verify(given),
  };
}

/** The class of the objects that one score function gets. */
interface GivenClass {
  readonly prototype: object;
  new (input: Readonly<Record<string, unknown>>): object;
  contextOf(given: unknown, name: string): unknown;
  refuse(given: unknown, error: UnknownScoreArgumentError): void;
  verify(given: unknown): void;
}

function givenClass({ functionName, keywords, isWatched, onContext }: GivenOptions): GivenClass {
  return class Given {
    #unknown: UnknownScoreArgumentError | undefined;
    #isRead = false;
    #hasReadContext = false;

    readonly #input: Readonly<Record<string, unknown>>;

    constructor(input: Readonly<Record<string, unknown>>) {
      this.#input = input;
      if (isWatched) {
        for (const name in input) if (!ofContext.has(name)) this.#watch(name, input[name]);
        for (const name in keywords) this.#watch(name, keywords[name]);
        return;
      }
      const own = this as Record<string, unknown>;
      for (const name in input) if (!ofContext.has(name)) own[name] = input[name];
      Object.assign(this, keywords);
    }

    /** Returns a value of the call's context and records that it was read. */
    static contextOf(given: unknown, name: string): unknown {
      if (!Given.#isGiven(given)) return undefined;
      given.#isRead = true;
      given.#hasReadContext = true;
      return given.#input[name];
    }

    /** Records the first refusal, which stands for all. */
    static refuse(given: unknown, error: UnknownScoreArgumentError): void {
      if (Given.#isGiven(given)) given.#unknown ??= error;
    }

    static verify(given: unknown): void {
      if (!Given.#isGiven(given)) return;
      if (given.#unknown !== undefined) throw given.#unknown;
      if (given.#hasReadContext) onContext?.();
      if (!isWatched || given.#isRead) return;
      const problem =
        "it gets one object, and returned a score without reading it: it may take positional arguments, or wrap another function";
      throw new RewardFunctionSignatureError(functionName, undefined, problem);
    }

    static #isGiven(value: unknown): value is Given {
      return typeof value === "object" && value !== null && #unknown in value;
    }

    /** Defines an ordinary property, which can be copied and sent. */
    #watch(name: string, value: unknown): void {
      const get = (): unknown => {
        this.#isRead = true;
        return value;
      };
      const set = (other: unknown): void => define(this, name, other);
      Object.defineProperty(this, name, { get, set, enumerable: true, configurable: true });
    }
  };
}

const ofContext: ReadonlySet<string> = new Set(["uid", "group", "step", "lane"]);

/** Defines an alias; a write to it changes the other property. */
function nameAlso(prototype: object, name: string, other: string): void {
  if (name === other) return;
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
  refuse: (given: unknown, error: UnknownScoreArgumentError) => void,
): object {
  const mayLack = new Set<string | symbol>([...optional, ...probes, ...optionalArguments]);
  const prototype: object = Object.create(Object.prototype);
  return new Proxy(prototype, {
    get(target, key, given: unknown) {
      if (typeof key === "symbol" || key in target) return Reflect.get(target, key, given);
      if (mayLack.has(key)) return undefined;
      const names = Object.keys(keywords);
      const known = [...Object.keys(Object(given)), ...optionalArguments];
      const error = new UnknownScoreArgumentError(key, nearestArgument(key, names), known);
      refuse(given, error);
      throw error;
    },
  });
}
