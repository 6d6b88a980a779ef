/**
 * The outcome of one sample: a reward, or the reason why there is none. Every sample has exactly
 * one outcome, and a failed score is never a zero. Plain data: outcomes travel between threads and
 * into logs.
 */

import type { DeathCause } from "@rayling/core";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { messageOf } from "@rayling/reward-manager-registry/values";

/**
 * - "broken": no answer, or an incomplete one. - "late": not in time. - "final": it would fail
 * again.
 */
export type TransportFailure = "broken" | "late" | "final";

/** Classes of failures: whose fault it is. */
export type FailureClass =
  /** The endpoint or the connection to it: 5xx, a broken connection, a malformed answer. */
  | "infrastructure"
  /** The endpoint had no room: 429, or 503 with a time to wait. */
  | "rate-limit"
  /** It did not answer in time. */
  | "timeout"
  /**
   * This sample can never be scored: it lacks something, the endpoint refuses it (4xx), or the
   * function cannot tell.
   */
  | "data"
  /** The score function threw, returned no score, or ended or blocked its thread. */
  | "user-code";

/** Tokens of a model's answers. */
export interface TokenUsage {
  /** Tokens of the prompts. */
  readonly inputTokens: number;
  /** Tokens of the answers. */
  readonly outputTokens: number;
  /** Tokens of both. */
  readonly totalTokens: number;
  /** Part of `inputTokens` that the endpoint read from its cache, where it says so. */
  readonly cachedInputTokens?: number;
  /** Part of `outputTokens` that was reasoning, where the endpoint says so. */
  readonly reasoningTokens?: number;
}

/** Kinds of failure of a sample. */
export type ScoreFailureCode =
  /** The score function (or a manager or tokenizer of the user's) threw or rejected. */
  | "SCORE_THREW"
  /** It returned something that is no score. */
  | "INVALID_SCORE"
  /** It says that it cannot tell: it returned null, or a score that is null. */
  | "CANNOT_TELL"
  /**
   * Its model, or a filter of its endpoint, refused to answer (an error with the code
   * REFUSED_ANSWER).
   */
  | "REFUSED"
  /** Its model used up its tokens before an answer (an error with the code TRUNCATED_ANSWER). */
  | "TRUNCATED"
  /** Its extra info cannot travel between threads, not even with texts in its place. */
  | "NOT_ENCODABLE"
  /** It did not finish within timeoutMs. */
  | "SCORE_TIMEOUT"
  /**
   * It failed, and its total time was over while its next attempt waited for the budget of retries.
   */
  | "RETRY_BUDGET"
  /**
   * It ended its thread or process: process.exit, out of memory, an uncaught exception, a signal.
   */
  | "EXECUTOR_DIED"
  /** All that may be spent is spent: it was not called. */
  | "SPEND_CAP"
  /** Nobody needs its score any more: `RewardRequest.giveUp`. */
  | "GIVEN_UP"
  /** The replayed log does not have it, and no function may be asked. */
  | "NOT_IN_LOG"
  | "INVALID_SAMPLE"
  | "MISSING_TOKENIZER"
  | "UNKNOWN_DATA_SOURCE"
  | "SANDBOX_UNAVAILABLE";

/** A failure before the one that ended a sample. */
export interface EarlierFailure {
  /** Class name of its error. */
  readonly name: string;
  /** The message of its error. */
  readonly message: string;
  /** `code` of its error, if it had one. */
  readonly errorCode?: string;
  /** The status of HTTP, where the error came from a client of it. */
  readonly status?: number;
  /**
   * How many requests of the score function had failed by then, this one included. Left out where
   * it is the failure of a whole attempt.
   */
  readonly requests?: number;
}

/** Why a sample has no score, as plain data. */
export interface ScoreFailure {
  /** The kind of the failure: compare this, not the message. */
  readonly code: ScoreFailureCode;
  /** Class name of the error. */
  readonly name: string;
  /** The message of the error. */
  readonly message: string;
  /**
   * `code` of the user's own error, if it had one; MALFORMED_ANSWER for a client's SyntaxError
   * about an endpoint's answer.
   */
  readonly errorCode?: string;
  /**
   * The status of HTTP, where the user's error came from a client of it; for gRPC the one that
   * stands for its code.
   */
  readonly status?: number;
  /** Whether the endpoint wants the call again (`x-should-retry`), where it said so. */
  readonly shouldRetry?: boolean;
  /** How the way to an endpoint failed, where the user's error is of that. */
  readonly transport?: TransportFailure;
  /** How long the endpoint wants to be left alone, where it said so. */
  readonly retryAfterMs?: number;
  /** Where the user's error was thrown. */
  readonly stack?: string;
  /**
   * The last failure before, with SCORE_TIMEOUT, RETRY_BUDGET and SPEND_CAP, where one is known: of
   * a request that was being sent again, or of an earlier attempt. The message names it, too.
   */
  readonly cause?: EarlierFailure;
  /** Whether it kept its thread busy, which was ended for it, with SCORE_TIMEOUT. */
  readonly blocked?: boolean;
  /** How the executor ended, with EXECUTOR_DIED. */
  readonly deathKind?: DeathCause["kind"];
  /** The exit code of its process, with EXECUTOR_DIED. */
  readonly exitCode?: number;
  /** The signal that ended its process. */
  readonly signal?: string;
  /**
   * Further values that the function returned, with CANNOT_TELL, and where postProcessScores has
   * removed its score; `usage` alone with INVALID_SCORE; with all other codes the usage of its
   * error, if it has one (ai: NoObjectGeneratedError).
   */
  readonly rewardExtraInfo?: Readonly<Record<string, unknown>>;
  /** The name of the failed part, with several rewards or a cascade. */
  readonly component?: string;
}

/** Measurements of one attempt. */
export interface Attempted {
  /**
   * From the start of the score function on this sample to its end; waiting before it is not
   * counted.
   */
  readonly latencyMs: number;
  /** How often the score function was started on this sample. */
  readonly attempts: number;
  /**
   * The version of the reward function that gave it: RewardLoopManager.version at that time, unless
   * its module was changed without a reload and an executor has loaded it since.
   */
  readonly version?: string;
  /**
   * Its function has read where and when it was called: the same sample may have another score
   * elsewhere, or later.
   */
  readonly readsContext?: true;
  /**
   * The usage of the last attempt's answers, where a client reported it (`noteUsage`, and all of
   * `@rayling/reward-loop/client`).
   */
  readonly used?: TokenUsage;
}

/** Second calls of samples whose first one was slow. */
export interface Hedges {
  /** How many were begun. */
  readonly begun: number;
  /** How many of them gave the outcome. */
  readonly won: number;
}

interface Measured extends Attempted {
  /**
   * How long it waited for a slot, also where it stood ready for one, for its endpoint's limits and
   * between its tries.
   */
  readonly waitedMs: number;
  /** The usage of earlier tries, where they reported it. */
  readonly usageBefore?: TokenUsage;
  /** Its second calls, where there were any. */
  readonly hedges?: Hedges;
  /**
   * Its attempts are calls for its whole group, which another member stands for where calls are
   * counted.
   */
  readonly sharesCall?: true;
  /** Attempts with unknown usage, where spending has a cap: cut off, or silent about it. */
  readonly unknownUse?: number;
  /** Set where prices are known. */
  readonly cost?: number;
  /**
   * Its score was cached, requested by another equal sample, or of the log that the loop resumes:
   * no function was called.
   */
  readonly cached?: boolean;
  /**
   * The function that gave it, among several: a stage of a cascade, or the judge that took over
   * when a cap was reached.
   */
  readonly answeredBy?: string;
  /**
   * The outcomes that it was combined from, by name: several rewards, or the stages of a cascade
   * that were asked.
   */
  readonly components?: Readonly<Record<string, SampleOutcome>>;
}

/** A score, with its measurements. */
export type ValidOutcome = { readonly valid: true } & RewardResult & Measured;
/** A failure, with its measurements. */
export type InvalidOutcome = { readonly valid: false; readonly error: ScoreFailure } & Measured;
/** The result of scoring one sample. A failed sample never has a score. */
export type SampleOutcome = ValidOutcome | InvalidOutcome;

/** An outcome that is being made: its maker fills it in place. */
export type Writable<Fields> = { -readonly [Name in keyof Fields]: Fields[Name] };

/** An outcome of a stream, with its sample and the sample's place in the input, from 0. */
export interface ScoredSample<Sample extends RewardSample = RewardSample> {
  /** The sample's place in the input, from 0. */
  readonly index: number;
  /** The sample as it was read. */
  readonly sample: Sample;
  /** The score, or why there is none. */
  readonly outcome: SampleOutcome;
  /**
   * The outcome that its function gave, where its group made something else of it:
   * postProcessScores, or the mean of the group for one without a score.
   */
  readonly given?: SampleOutcome;
}

/** @param before the last failed request of the function, where one is known */
export function timeoutFailure(timeoutMs: number, before?: EarlierFailure): ScoreFailure {
  const message = `the score function did not finish within ${timeoutMs} ms`;
  return after(before, { code: "SCORE_TIMEOUT", name: "ScoreTimeoutError", message });
}

/** The failure of a sample that blocked its thread. */
export function blockedFailure(timeoutMs: number): ScoreFailure {
  return { ...timeoutFailure(timeoutMs), blocked: true };
}

/** The failure of a sample whose result is no longer needed. */
export const givenUpFailure: ScoreFailure = {
  code: "SCORE_TIMEOUT",
  name: "AbortError",
  message: "it was given up",
};

/** The outcome of a row of a request that was given up: whatever it has cost is paid elsewhere. */
export const givenUpRow: InvalidOutcome = {
  valid: false,
  error: {
    code: "GIVEN_UP",
    name: "GivenUpError",
    message: "its score was given up: nobody needs it any more",
  },
  attempts: 0,
  latencyMs: 0,
  waitedMs: 0,
};

export function totalTimeoutFailure(totalTimeoutMs: number): ScoreFailure {
  const message = `there was no score within ${totalTimeoutMs} ms, with all waiting and tries`;
  return { code: "SCORE_TIMEOUT", name: "ScoreTimeoutError", message };
}

/**
 * Adds the last failure before to one that says only that there was no time or money left. Other
 * failures, and those that have a cause, are returned as they are.
 */
export function after(before: EarlierFailure | undefined, failure: ScoreFailure): ScoreFailure {
  if (before === undefined || failure.cause !== undefined) return failure;
  const { code, name, message } = failure;
  const isTimeout = code === "SCORE_TIMEOUT" && name === "ScoreTimeoutError";
  if (!isTimeout && code !== "SPEND_CAP") return failure;
  return { ...failure, message: `${message}; ${wordsOf(before)}`, cause: before };
}

/** Returns a failed attempt as the cause of a later failure. Undefined: it ran out of time. */
export function earlierOf(failure: ScoreFailure): EarlierFailure | undefined {
  const { code, name, message, errorCode, status, cause } = failure;
  if (code === "SCORE_TIMEOUT" || code === "SPEND_CAP") return cause;
  return {
    name,
    message,
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(status === undefined ? {} : { status }),
  };
}

function wordsOf({ name, message, requests }: EarlierFailure): string {
  const failed = `${name}: ${message}`;
  if (requests === undefined) return `before that it failed: ${failed}`;
  return requests === 1
    ? `before that one of its requests failed: ${failed}`
    : `before that ${requests} of its requests failed, the last with ${failed}`;
}

/** The failure of a sample that waited for the budget, with its last error. */
export function retryBudgetFailure(totalTimeoutMs: number, failed: ScoreFailure): ScoreFailure {
  const { name, message, status, errorCode } = failed;
  const cause = earlierOf(failed);
  return {
    code: "RETRY_BUDGET",
    name: "RetryBudgetError",
    message: `its next attempt waited for the budget of retries when its ${totalTimeoutMs} ms were over; it had failed: ${name}: ${message}`,
    ...(status === undefined ? {} : { status }),
    ...(errorCode === undefined ? {} : { errorCode }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** The failure of a sample that would be tried alone, with why no executor starts for it. */
export function untriedFailure(error: unknown): ScoreFailure {
  return {
    code: "EXECUTOR_DIED",
    name: "ExecutorDiedError",
    message: `its executor ended while it ran, and none starts in which it is tried alone: ${messageOf(error)}`,
  };
}

export function deathFailure(cause: DeathCause): ScoreFailure {
  return {
    code: "EXECUTOR_DIED",
    name: "ExecutorDiedError",
    message: `the score function ended its executor: ${cause.message}`,
    deathKind: cause.kind,
    ...(cause.exitCode === undefined ? {} : { exitCode: cause.exitCode }),
    ...(cause.signal === undefined ? {} : { signal: cause.signal }),
  };
}
