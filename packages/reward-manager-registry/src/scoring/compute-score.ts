/**
 * The user's score function: what it receives and what it may return.
 * verl passes keyword arguments; here they are the fields of one object, in camelCase.
 */

import type { TokenScore, TurnScores } from "./placed-score.ts";
import type { Tokenizer } from "./sample.ts";

/** What a score function receives. Fields of rewardKwargs stand beside these and win over them. */
export interface ScoreInput {
  readonly dataSource: string;
  readonly solutionStr: string;
  readonly groundTruth: unknown;
  /** A copy made for this call: yours to change. */
  readonly extraInfo: Record<string, unknown>;
  /** The conversation that was answered, where it is known: a copy. */
  readonly rawPrompt?: { readonly role: string; readonly content: unknown }[];
  /** Where and when it is scored (SampleContext), as far as that is known. A score that hangs on one of these is given for each sample anew, whatever is known from before. */
  readonly uid?: string;
  readonly group?: string;
  readonly step?: number;
  readonly lane?: string;
  /** host:port of the reward model's router; present only if there is a reward model. */
  readonly rewardRouterAddress?: string;
  /** That router demands it as `Authorization: Bearer <token>`. `chatComplete` and its like send it by themselves. */
  readonly rewardRouterToken?: string;
  /** Present only together with rewardRouterAddress. */
  readonly rewardModelTokenizer?: Tokenizer;
  /** Aborted when the loop has given this call up: past its deadline, or scored by another one. Present in a reward loop. */
  readonly signal?: AbortSignal;
  readonly [rewardKwarg: string]: unknown;
}

export type ScoreValue = number | boolean | bigint;

/** A list of [position, value] is a score, too: its sum, which stands at these tokens of the response. verl: a dict must contain `score`; every key becomes extra info. Give every sample the same keys. A score of null says that the function cannot tell. */
export interface ScoreRecord {
  readonly score: ScoreValue | readonly TokenScore[] | TurnScores | null;
  readonly [extra: string]: unknown;
}

/** The form of verl's async reward agent: score (or record), the query and the response that were judged. */
export type ScoreTuple = readonly [
  score: ScoreValue | readonly TokenScore[] | ScoreRecord | null,
  query: string | null | undefined,
  response: string | null | undefined,
];

/** null: the function cannot tell. That is no zero: the sample is invalid (CannotTellError), or the next function of a cascade is asked. */
export type ScoreOutput = ScoreValue | readonly TokenScore[] | ScoreRecord | ScoreTuple | null;

/** Synchronous or not: whatever has a `then` is awaited. */
export type ComputeScore = (input: ScoreInput) => ScoreOutput | PromiseLike<ScoreOutput>;

/** The function with fixed arguments, which override those of the call (verl `custom_reward_function.reward_kwargs`). */
export function withRewardKwargs(
  computeScore: ComputeScore,
  rewardKwargs: Readonly<Record<string, unknown>> = {},
): ComputeScore {
  if (Object.keys(rewardKwargs).length === 0) return computeScore;
  return (input) => computeScore({ ...input, ...rewardKwargs });
}
