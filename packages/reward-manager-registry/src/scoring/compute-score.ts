/**
 * The user's score function: its arguments and its results. verl passes keyword arguments; here
 * they are the fields of one object, in camelCase.
 */

import type { TokenScore, TurnScores } from "./placed-score.ts";
import type { RewardResult } from "./reward-result.ts";
import type { RewardSample, Tokenizer } from "./sample.ts";

/** One of the reward models that a score function asks, by its name in `rewardModels`. */
export interface RewardModelAccess {
  /** The engine of its servers, as `vllm` or `sglang`. */
  readonly engine: string;
  /** Its servers know it by this name: the `model` of a request. */
  readonly model: string;
  /** host:port of its router. */
  readonly routerAddress: string;
  /** That router demands it as `Authorization: Bearer <token>`. */
  readonly routerToken?: string | undefined;
  /** Present where the loop knows the folder of it. */
  readonly tokenizer?: Tokenizer | undefined;
}

/** The reward models of a score function. */
export interface RewardModelArguments {
  /** host:port of the router of the default one, or of the only one that the function asks. */
  readonly rewardRouterAddress?: string | undefined;
  /** The token that the router requires as `Authorization: Bearer <token>`. */
  readonly rewardRouterToken?: string | undefined;
  /** The tokenizer of the model behind the router. */
  readonly rewardModelTokenizer?: Tokenizer | undefined;
  /** All that the function asks, by their names. */
  readonly rewardModels?: Readonly<Record<string, RewardModelAccess>> | undefined;
}

/** The arguments of a score function. Fields of rewardKwargs are beside these and override them. */
export interface ScoreInput {
  /** verl `data_source`: the data set of the prompt. */
  readonly dataSource: string;
  /** verl `solution_str`: the text of the response. */
  readonly solutionStr: string;
  /** verl `ground_truth`; a copy for this call. */
  readonly groundTruth: unknown;
  /** A copy for this call; the function may change it. */
  readonly extraInfo: Record<string, unknown>;
  /** The conversation that was answered, if known; a copy. */
  readonly rawPrompt?: { readonly role: string; readonly content: unknown }[];
  /**
   * The context of the call (SampleContext), if known. A score that depends on it is computed for
   * each sample anew, whatever cached scores exist.
   */
  readonly uid?: string;
  /** verl `uid`: the name that all answers to a prompt share, if known. */
  readonly group?: string;
  /** verl `global_steps`: the step of its generation, from 1, if known. */
  readonly step?: number;
  /** "training", "validation", or another given name, if known. */
  readonly lane?: string;
  /**
   * host:port of the router of the reward model: the default one, or the only one that this
   * function asks.
   */
  readonly rewardRouterAddress?: string;
  /**
   * The token that the router requires as `Authorization: Bearer <token>`. `chatComplete` and
   * similar helpers send it themselves.
   */
  readonly rewardRouterToken?: string;
  /** Present only together with rewardRouterAddress. */
  readonly rewardModelTokenizer?: Tokenizer;
  /** The reward models that this function asks, by their names; present only if it asks one. */
  readonly rewardModels?: Readonly<Record<string, RewardModelAccess>>;
  /**
   * Aborted when nobody waits for this call any more: its deadline has passed, another call has
   * scored the sample, or the function has ended while requests of it are under way. Present in a
   * reward loop.
   */
  readonly signal?: AbortSignal;
  readonly [rewardKwarg: string]: unknown;
}

/** A score as a number; true is 1, and false is 0. */
export type ScoreValue = number | boolean | bigint;

/**
 * A record with the score. A list of [position, value] is a score, too: its sum, placed at these
 * tokens of the response. As in verl, a dict must contain `score`, and every key becomes extra
 * info. Give every sample the same keys. A score of null means that the function cannot tell.
 */
export interface ScoreRecord {
  /** The score; null means that the function cannot tell. */
  readonly score: ScoreValue | readonly TokenScore[] | TurnScores | null;
  readonly [extra: string]: unknown;
}

/** The form of verl's async reward agent: score (or record), and the judged query and response. */
export type ScoreTuple = readonly [
  score: ScoreValue | readonly TokenScore[] | ScoreRecord | null,
  query: string | null | undefined,
  response: string | null | undefined,
];

/**
 * The result of a score function. null means that it cannot tell, which is no zero: the sample is
 * invalid (CannotTellError), or a cascade asks the next function.
 */
export type ScoreOutput = ScoreValue | readonly TokenScore[] | ScoreRecord | ScoreTuple | null;

/** A score function, synchronous or not: any result with a `then` is awaited. */
export type ComputeScore = (input: ScoreInput) => ScoreOutput | PromiseLike<ScoreOutput>;

/**
 * A second way to call a function that this package has wrapped: what is done with its output is
 * done in the very reaction in which the output is there. Many calls wait at once, and each promise
 * fewer is a tenth of what a call holds meanwhile.
 *
 * Returns what `next` makes of the output, or a promise of it. Throws as the function does.
 */
export type PassOn = <Subject, Result>(
  input: ScoreInput,
  next: (output: ScoreOutput, subject: Subject) => Result,
  subject: Subject,
) => Result | Promise<Result>;

/**
 * A call of a score function by who makes no promise for it, and hears of its end: of one of the
 * two, once, in a later reaction. One object for all that a call needs: many wait at once.
 */
export interface ScoreCall {
  /** The sample that is scored. */
  readonly sample: RewardSample;
  /** The arguments of the function, which keeps them here for the end of the call. */
  given: ScoreInput | undefined;
  /** The score is there. */
  settled(result: RewardResult): void;
  /** There is no score: the function, or the checks of its output, failed. */
  failed(error: unknown): void;
}

/** Further calls of a function that this package has wrapped. */
export interface WrappedScore {
  readonly passOn: PassOn;
  /** Calls it for that call. Throws what is thrown before it waits. */
  readonly begin: (input: ScoreInput, call: ScoreCall) => void;
}

/**
 * By the functions themselves, and not in a property of theirs: a manager may wrap the function in
 * one that has all of its properties (a memo, a proxy), and means that one to be called.
 */
const wrapped = new WeakMap<ComputeScore, WrappedScore>();

/** Returns the function, which can be called like this as well from now on. */
export function asWrapped(computeScore: ComputeScore, calls: WrappedScore): ComputeScore {
  wrapped.set(computeScore, calls);
  return computeScore;
}

/** Undefined for a function that is not wrapped. */
export function wrappedScoreOf(computeScore: ComputeScore): WrappedScore | undefined {
  return wrapped.get(computeScore);
}

/**
 * Returns the function with fixed arguments, which override those of the call (verl
 * `custom_reward_function.reward_kwargs`).
 */
export function withRewardKwargs(
  computeScore: ComputeScore,
  rewardKwargs: Readonly<Record<string, unknown>> = {},
): ComputeScore {
  if (Object.keys(rewardKwargs).length === 0) return computeScore;
  return (input) => computeScore({ ...input, ...rewardKwargs });
}
