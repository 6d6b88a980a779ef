/**
 * Gives any user function, whatever its parameters, one calling convention.
 */

import { asWrapped } from "../scoring/compute-score.ts";
import type {
  ComputeScore,
  PassOn,
  ScoreCall,
  ScoreInput,
  ScoreOutput,
} from "../scoring/compute-score.ts";
import { passTo, resultOf } from "../scoring/score-sample.ts";
import { isThenable } from "../values/records.ts";
import { RewardFunctionSignatureError } from "../errors.ts";
import type { RewardResult } from "../scoring/reward-result.ts";
import type { ComputeScores } from "../scoring/scorer.ts";
import { failedOn, noClock, onClock } from "./call-clock.ts";
import type { CallClock } from "./call-clock.ts";
import { argumentNamed, orderedArguments, withOwnNames } from "./argument-names.ts";
import { conventionOf, isListName, mayBeMissing } from "./convention.ts";
import type { Convention, Slot } from "./convention.ts";
import { givenArguments } from "./given-arguments.ts";
import type { GivenArguments } from "./given-arguments.ts";
import { describeParameters, parametersOf } from "./parameters.ts";

export interface CallableOptions {
  /** The function's name, for errors. */
  readonly name: string;
  /** The `this` of a method. */
  readonly self?: unknown;
  /** Fixed arguments, which override those of the call (verl `reward_kwargs`). */
  readonly keywords?: Readonly<Record<string, unknown>> | undefined;
  /** Whether several functions have the keywords, and each takes its own of them. */
  readonly areKeywordsShared?: boolean | undefined;
  /** Returns the `signal` of a call that reads it. Default: there is none. */
  readonly signal?: (() => AbortSignal) | undefined;
  /**
   * Called for each call that reads its context (where and when it is made), before its score is
   * there.
   */
  readonly onContext?: (() => void) | undefined;
  /** Measures its calls. */
  readonly clock?: CallClock | undefined;
}

export type UserFunction = (...args: never[]) => unknown;

/** A function of one sample, or of many if it takes verl's lists. */
export type CalledFunction =
  | { readonly takesLists: false; readonly call: ComputeScore }
  | { readonly takesLists: true; readonly call: ComputeScores };

/** Wraps a function. Rejects with RewardFunctionSignatureError when its parameters are unclear. */
export async function calledFunction(
  callable: UserFunction,
  options: CallableOptions,
): Promise<CalledFunction> {
  const { convention, given } = await read(callable, options);
  const { call, begin } = caller(callable, options, convention, given);
  if (convention.takesLists) {
    return {
      takesLists: true,
      call: (inputs) => call(listsOf(inputs)) as ReturnType<ComputeScores>,
    };
  }
  const single: ComputeScore = (input) => call(input) as ReturnType<ComputeScore>;
  return { takesLists: false, call: asWrapped(single, { passOn: call as PassOn, begin }) };
}

/** Wraps a function of all answers to a prompt, which takes a list of objects, or verl's lists. */
export async function calledGroupFunction(
  callable: UserFunction,
  options: CallableOptions,
): Promise<ComputeScores> {
  const parameters = await parametersOf(callable);
  const [first, ...others] = parameters?.declared ?? [];
  const isOne = first !== undefined && first.kind !== "fields" && others.every(mayBeMissing);
  const isNamed = first?.kind === "name" && isListName(argumentNamed(first.name));
  if (parameters !== undefined && isOne && !isNamed) {
    return groupCaller(callable, options, givenIn(callable, options, undefined));
  }
  const called = await calledFunction(callable, options);
  if (called.takesLists) return called.call;
  throw new RewardFunctionSignatureError(
    options.name,
    parameters && describeParameters(parameters),
    "it is to score a group, and takes neither one list of objects nor verl's lists (data_sources, solution_strs, ground_truths, extra_infos)",
  );
}

async function read(
  callable: UserFunction,
  options: CallableOptions,
): Promise<{ readonly convention: Convention; readonly given: GivenArguments }> {
  const convention = conventionOf({
    name: options.name,
    length: callable.length,
    parameters: await parametersOf(callable),
    keywords: Object.keys(withOwnNames(options.keywords ?? {})),
    areShared: options.areKeywordsShared,
  });
  return { convention, given: givenIn(callable, options, convention) };
}

/** @param convention undefined for a function of a group, which gets a list of the objects */
function givenIn(
  callable: UserFunction,
  { name, keywords = {}, signal, onContext }: CallableOptions,
  convention: Convention | undefined,
): GivenArguments {
  return givenArguments({
    functionName: name,
    keywords: withOwnNames(keywords),
    optional: convention?.optional ?? new Set(),
    isWatched: convention?.kind === "object" && convention.isWatched,
    passedOn: convention === undefined ? [] : convention.passedOn,
    text: Function.prototype.toString.call(callable),
    signal,
    onContext,
  });
}

function groupCaller(
  callable: UserFunction,
  { self, clock = noClock }: CallableOptions,
  given: GivenArguments,
): ComputeScores {
  const failed = failedOn(clock);
  return (inputs) => {
    const group = inputs.map((input) => given.of(input));
    const work = (): unknown => Reflect.apply(callable, self, [group]);
    const ended = (result: unknown): unknown => {
      clock.leave();
      for (const one of group) given.verify(one);
      return result;
    };
    return onClock(clock, work, ended, failed) as ReturnType<ComputeScores>;
  };
}

function caller(
  callable: UserFunction,
  { self, clock = noClock }: CallableOptions,
  convention: Convention,
  given: GivenArguments,
): Caller {
  const failed = failedOn(clock);
  const work = (all: ScoreInput): unknown => {
    const values =
      convention.kind === "object" ? [all] : convention.slots.map((slot) => valueOf(slot, all));
    return Reflect.apply(callable, self, values);
  };
  return {
    call: (input, next, subject) => {
      const all = given.of(input);
      // The only closure that waits with a call.
      const ended = (output: unknown): unknown => {
        clock.leave();
        given.verify(all);
        return next === undefined ? output : next(output, subject);
      };
      return onClock(clock, () => work(all), ended, failed);
    },
    begin: beginner(work, clock, given),
  };
}

/** Two functions bound to the call are all that waits with it: closures would need a context. */
function beginner(
  work: (all: ScoreInput) => unknown,
  clock: CallClock,
  given: GivenArguments,
): Caller["begin"] {
  function resultIn(call: ScoreCall, output: unknown): RewardResult {
    clock.leave();
    if (call.given !== undefined) given.verify(call.given);
    return resultOf(output as ScoreOutput, call.sample);
  }
  function settled(this: ScoreCall, output: unknown): void {
    let result: RewardResult;
    try {
      result = resultIn(this, output);
    } catch (error) {
      return this.failed(error);
    }
    this.settled(result);
  }
  function failed(this: ScoreCall, error: unknown): void {
    clock.leave();
    this.failed(error);
  }
  return (input, call) => {
    const all = given.of(input);
    call.given = all;
    clock.enter();
    let output: unknown;
    let isWaiting: boolean;
    try {
      output = work(all);
      isWaiting = isThenable(output);
    } catch (error) {
      clock.leave();
      throw error;
    }
    if (!isWaiting) return passTo(call, Promise.resolve(resultIn(call, output)));
    clock.onThenable?.();
    // A thenable of another library may return nothing from its `then`.
    void Promise.resolve(output).then(settled.bind(call), failed.bind(call));
  };
}

interface Caller {
  readonly call: Call;
  /** Throws as the function does before it waits. */
  readonly begin: (input: Readonly<Record<string, unknown>>, call: ScoreCall) => void;
}

type Call = (
  input: Readonly<Record<string, unknown>>,
  next?: (output: unknown, subject: unknown) => unknown,
  subject?: unknown,
) => unknown;

function valueOf(slot: Slot, all: ScoreInput): unknown {
  if (slot.kind === "nothing") return undefined;
  return slot.kind === "all" ? all : all[slot.name];
}

/** Returns verl's lists, and values that all samples share as they are. */
function listsOf(inputs: readonly ScoreInput[]): Record<string, unknown> {
  const own = new Set<string>([...orderedArguments, "uid"]);
  const common = Object.entries(inputs[0] ?? {}).filter(([name]) => !own.has(name));
  return {
    ...Object.fromEntries(common),
    dataSources: inputs.map(({ dataSource }) => dataSource),
    solutionStrs: inputs.map(({ solutionStr }) => solutionStr),
    groundTruths: inputs.map(({ groundTruth }) => groundTruth),
    extraInfos: inputs.map(({ extraInfo }) => extraInfo),
  };
}
