/**
 * The outcome of one sample: a reward, or the reason why there is none. Every sample has exactly
 * one outcome, and a failed score is never a zero. Plain data: outcomes travel between threads and
 * into logs.
 */

import type { DeathCause } from "@rayling/core";
import {
  CannotTellError,
  InvalidSampleError,
  InvalidScoreError,
  MissingTokenizerError,
  SandboxUnavailableError,
  UnknownDataSourceError,
} from "@rayling/reward-manager-registry";
import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import { partOf, textPartOf, withinError } from "./faults/error-tree.ts";
import { httpDetailsOf } from "./faults/http-details.ts";
import { isMalformedAnswer } from "./faults/malformed-answer.ts";
import { transportFailureOf } from "./faults/transport-failure.ts";
import type { TransportFailure } from "./faults/transport-failure.ts";
import { usageOf } from "./spend/usage.ts";
import type { TokenUsage } from "./spend/usage.ts";

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
  /** Its extra info cannot travel between threads. */
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
  /** The replayed log does not have it, and no function may be asked. */
  | "NOT_IN_LOG"
  | "INVALID_SAMPLE"
  | "MISSING_TOKENIZER"
  | "UNKNOWN_DATA_SOURCE"
  | "SANDBOX_UNAVAILABLE";

export interface ScoreFailure {
  readonly code: ScoreFailureCode;
  /** Class name of the error. */
  readonly name: string;
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
  /** Whether it kept its thread busy, which was ended for it, with SCORE_TIMEOUT. */
  readonly blocked?: boolean;
  /** How the executor ended, with EXECUTOR_DIED. */
  readonly deathKind?: DeathCause["kind"];
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

interface Measured extends Attempted {
  /**
   * How long it waited for a slot, also where it stood ready for one, for its endpoint's limits and
   * between its tries.
   */
  readonly waitedMs: number;
  /** The usage of earlier tries, where they reported it. */
  readonly usageBefore?: TokenUsage;
  /** Attempts with unknown usage, where spending has a cap: cut off, or silent about it. */
  readonly unknownUse?: number;
  /** Set where prices are known. */
  readonly cost?: number;
  /** Its score was cached, or requested by another equal sample: no function was called. */
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

export type ValidOutcome = { readonly valid: true } & RewardResult & Measured;
export type InvalidOutcome = { readonly valid: false; readonly error: ScoreFailure } & Measured;
export type SampleOutcome = ValidOutcome | InvalidOutcome;

/** The result of one attempt. */
export type AttemptOutcome =
  | ({ readonly valid: true } & RewardResult & Attempt)
  | ({ readonly valid: false; readonly error: ScoreFailure } & Attempt);

interface Attempt extends Attempted {
  /** How long a sample stood ready in the executor where it ran last. */
  readonly readyMs?: number;
}

/** An outcome of a stream, with its sample and the sample's place in the input, from 0. */
export interface ScoredSample<Sample extends RewardSample = RewardSample> {
  readonly index: number;
  readonly sample: Sample;
  readonly outcome: SampleOutcome;
  /**
   * The outcome that its function gave, where its group made something else of it:
   * postProcessScores, or the mean of the group for one without a score.
   */
  readonly given?: SampleOutcome;
}

/**
 * Turns a value that the pipeline threw into data. An error that is not the pipeline's own is the
 * user's.
 */
export function failureOf(thrown: unknown): ScoreFailure {
  if (!(thrown instanceof Error)) {
    // A Response, or what stands for one, may be thrown, too.
    const name = thrown instanceof Response ? "Response" : typeof thrown;
    return { code: "SCORE_THREW", name, message: wordsOf(thrown), ...foundIn(thrown) };
  }
  const error = { name: nameOf(thrown), message: textAt(thrown, "message") };
  if (thrown instanceof CannotTellError) {
    return { code: thrown.code, ...error, rewardExtraInfo: thrown.extraInfo };
  }
  if (thrown instanceof InvalidScoreError) {
    return { code: thrown.code, ...error, ...usedBy(thrown.extraInfo) };
  }
  if (isPipelineError(thrown)) return { code: thrown.code, ...error };
  const found = foundIn(thrown);
  const { errorCode = "" } = found;
  return {
    code: silences[errorCode] ?? "SCORE_THREW",
    ...error,
    ...found,
    ...stackOf(thrown),
  };
}

type Found = Pick<
  ScoreFailure,
  "errorCode" | "status" | "shouldRetry" | "retryAfterMs" | "transport" | "rewardExtraInfo"
>;

/** Collects facts about the endpoint from the user's error and the errors within it. */
function foundIn(thrown: unknown): Found {
  const within = withinError(thrown);
  const errorCode =
    within.map((one) => textPartOf(one, "code")).find((code) => code !== "") ??
    (isMalformedAnswer(within) ? "MALFORMED_ANSWER" : undefined);
  const transport = transportFailureOf(within);
  return {
    ...(errorCode === undefined ? {} : { errorCode }),
    ...httpDetailsOf(thrown),
    ...(transport === undefined ? {} : { transport }),
    ...usedBy(...within),
  };
}

/** Errors that say why a judge said nothing. */
const silences: Readonly<Partial<Record<string, ScoreFailureCode>>> = {
  REFUSED_ANSWER: "REFUSED",
  TRUNCATED_ANSWER: "TRUNCATED",
};

const namesOfTheLanguage: ReadonlySet<string> = new Set([
  "Error",
  "AggregateError",
  "EvalError",
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "URIError",
]);

/**
 * Returns the class's name where its errors have no name of their own, as with clients of endpoints
 * (openai: APIConnectionTimeoutError).
 */
function nameOf(thrown: Error): string {
  const own = textAt(thrown, "name");
  if (!namesOfTheLanguage.has(own)) return own;
  try {
    const { name } = thrown.constructor;
    return typeof name === "string" && name !== "" ? name : own;
  } catch {
    return own;
  }
}

function textAt(error: Error, key: "name" | "message"): string {
  try {
    return textOf(error[key]);
  } catch {
    return `a ${key} that cannot be read`;
  }
}

/** The engine makes it when it is read first, of a name and a message that may throw. */
function stackOf(thrown: Error): { readonly stack?: string } {
  try {
    const { stack } = thrown;
    return typeof stack === "string" ? { stack } : {};
  } catch {
    return {};
  }
}

/**
 * A judge that answered has its usage, even if the answer could not be used: on the error, on
 * errors within it, or in the answer that it keeps (ai: APICallError, InvalidResponseDataError).
 */
function usedBy(...within: readonly object[]): Pick<ScoreFailure, "rewardExtraInfo"> {
  for (const one of within) {
    const answers = [one, partOf(one, "data"), parsedOrNot(partOf(one, "responseBody"))];
    for (const usage of answers.map((answer) => partOf(answer, "usage"))) {
      const used = usage === undefined ? undefined : usageIn(usage);
      if (used !== undefined) return { rewardExtraInfo: { usage: used } };
    }
  }
  return {};
}

/** Getters of the user's may throw. */
function usageIn(usage: unknown): TokenUsage | undefined {
  try {
    return usageOf({ usage });
  } catch {
    return undefined;
  }
}

function parsedOrNot(body: unknown): unknown {
  if (typeof body !== "string" || !body.includes('"usage"')) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

/** Describes a thrown value that is no error. */
function wordsOf(thrown: unknown): string {
  const status = partOf(thrown, "status");
  const words = textPartOf(thrown, "message") || textPartOf(thrown, "statusText");
  if (words === "" && typeof status !== "number") return textOf(thrown);
  return [typeof status === "number" ? `status ${status}` : "", words].filter(Boolean).join(": ");
}

export function timeoutFailure(timeoutMs: number): ScoreFailure {
  const message = `the score function did not finish within ${timeoutMs} ms`;
  return { code: "SCORE_TIMEOUT", name: "ScoreTimeoutError", message };
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

export function totalTimeoutFailure(totalTimeoutMs: number): ScoreFailure {
  const message = `there was no score within ${totalTimeoutMs} ms, with all waiting and tries`;
  return { code: "SCORE_TIMEOUT", name: "ScoreTimeoutError", message };
}

/** The failure of a sample that waited for the budget, with its last error. */
export function retryBudgetFailure(totalTimeoutMs: number, failed: ScoreFailure): ScoreFailure {
  const { name, message, status, errorCode } = failed;
  return {
    code: "RETRY_BUDGET",
    name: "RetryBudgetError",
    message: `its next attempt waited for the budget of retries when its ${totalTimeoutMs} ms were over; it had failed: ${name}: ${message}`,
    ...(status === undefined ? {} : { status }),
    ...(errorCode === undefined ? {} : { errorCode }),
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

function isPipelineError(
  error: Error,
): error is
  | InvalidScoreError
  | InvalidSampleError
  | MissingTokenizerError
  | UnknownDataSourceError
  | SandboxUnavailableError {
  return (
    error instanceof InvalidScoreError ||
    error instanceof InvalidSampleError ||
    error instanceof MissingTokenizerError ||
    error instanceof UnknownDataSourceError ||
    error instanceof SandboxUnavailableError
  );
}

function textOf(value: unknown): string {
  try {
    return String(value);
  } catch {
    // A value whose conversion to text throws still needs words.
    return `a value of type ${typeof value}`;
  }
}
