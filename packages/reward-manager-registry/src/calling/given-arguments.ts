/**
 * The one object that a score function gets: its arguments under our names, and under verl's (`solution_str`) for whoever asks. What is not there is no `undefined` that a score could be made of:
 * reading it throws, and what is made of it in spite of that (a `catch` that returns 0) is no score either.
 *
 * What is there costs nothing: the look-out stands behind all others, on the prototype. So does what says where and when it is called: a copy of the arguments has only those of the sample.
 */

import { RewardFunctionSignatureError, UnknownScoreArgumentError } from "../errors.ts";
import type { ScoreInput } from "../scoring/compute-score.ts";
import { allArguments, nearestArgument, optionalArguments, snakeOf } from "./argument-names.ts";

export interface GivenOptions {
  /** For errors. */
  readonly functionName: string;
  /** Its fixed arguments: they override those of the call. */
  readonly keywords: Readonly<Record<string, unknown>>;
  /** Fields with a default of their own. */
  readonly optional: ReadonlySet<string>;
  /** A score for which it has read nothing is none. */
  readonly isWatched: boolean;
  /** Of the call that asks: it is made when somebody does. */
  readonly signal: (() => AbortSignal) | undefined;
  /** Told, before its score is there, of a call that has read where and when it is made: another one of the same sample may have another score. */
  readonly onContext: (() => void) | undefined;
}

export interface GivenArguments {
  of(input: Readonly<Record<string, unknown>>): ScoreInput;
  /** Throws UnknownScoreArgumentError where something was read of them that is not there, RewardFunctionSignatureError where nothing was read that had to be. */
  verify(given: ScoreInput): void;
}

export function givenArguments(options: GivenOptions): GivenArguments {
  const { functionName, keywords, isWatched, signal, onContext } = options;

  class Given {
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

    /** Where and when it is called: it is told who asks. */
    static contextOf(given: unknown, name: string): unknown {
      if (!isGiven(given)) return undefined;
      given.#isRead = true;
      given.#hasReadContext = true;
      return given.#input[name];
    }

    /** The first one stands for all. */
    static refuse(given: unknown, error: UnknownScoreArgumentError): void {
      if (isGiven(given)) given.#unknown ??= error;
    }

    static verify(given: unknown): void {
      if (!isGiven(given)) return;
      if (given.#unknown !== undefined) throw given.#unknown;
      if (given.#hasReadContext) onContext?.();
      if (!isWatched || given.#isRead) return;
      const problem =
        "it gets one object, and gave a score without reading anything of it: it may want arguments one behind the other, or be another function's wrapper";
      throw new RewardFunctionSignatureError(functionName, undefined, problem);
    }

    static isGiven(value: object): value is Given {
      return #unknown in value;
    }

    /** A property as any other, for whoever copies or sends it. */
    #watch(name: string, value: unknown): void {
      const get = (): unknown => {
        this.#isRead = true;
        return value;
      };
      const set = (other: unknown): void => define(this, name, other);
      Object.defineProperty(this, name, { get, set, enumerable: true, configurable: true });
    }
  }
  const isGiven = (value: unknown): value is Given =>
    typeof value === "object" && value !== null && Given.isGiven(value);

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

const ofContext: ReadonlySet<string> = new Set(["uid", "group", "step", "lane"]);

/** Whoever writes it writes the other one. */
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

/** Made, or looked up, when somebody asks; whoever writes it has it as a property of their own. */
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

/** Asked for by whoever wants to know what kind of thing it is: a promise, what JSON takes it for, an element of a page. */
const probes: ReadonlySet<string> = new Set([
  "then",
  "toJSON",
  "nodeType",
  "$$typeof",
  "asymmetricMatch",
]);

/** Behind all that is there. */
function lookOut(
  { optional, keywords }: GivenOptions,
  refuse: (given: unknown, error: UnknownScoreArgumentError) => void,
): object {
  const mayLack = new Set<string | symbol>([...optional, ...probes, ...optionalArguments]);
  return new Proxy(Object.create(Object.prototype) as object, {
    get(target, key, given: unknown) {
      if (typeof key === "symbol" || key in target)
        return Reflect.get(target, key, given) as unknown;
      if (mayLack.has(key)) return undefined;
      const names = Object.keys(keywords);
      const known = [...Object.keys(given as object), ...optionalArguments];
      const error = new UnknownScoreArgumentError(key, nearestArgument(key, names), known);
      refuse(given, error);
      throw error;
    },
  });
}
