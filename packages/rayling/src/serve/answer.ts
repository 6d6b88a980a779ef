/**
 * The answer to one sample in the server's own wire form: a score, or the reason why there is none.
 * A sample that could not be scored has `score: null`, `valid: false` and an error. It never has a
 * number that no function gave.
 *
 * An answer is kept and sent as JSON text, made once by the rules of the reward log, so that what
 * is answered now and what is answered from the log are the same.
 */

import { JsonlError, jsonText } from "@rayling/data-proto";
import { carriable, failureClassOf } from "@rayling/reward-loop";
import type { FailureClass, SampleOutcome } from "@rayling/reward-loop";

/** Names are those of the wire. */
export interface Answer {
  readonly score: number | null;
  readonly valid: boolean;
  readonly error: AnswerError | null;
  /** The extras that the score function gave beside the score. */
  readonly extra: Readonly<Record<string, unknown>>;
  /** How often the score function was started on the sample. */
  readonly attempts: number;
  readonly latency_ms: number;
  /** The version of the reward functions. */
  readonly version?: string;
  /** Where prices are known. */
  readonly cost?: number;
  /** Which of several functions gave the score. */
  readonly answered_by?: string;
  /** Why `extra` is empty, where it was too long for the reward log. */
  readonly extra_dropped?: string;
}

export interface AnswerError {
  /** A ScoreFailureCode of the reward loop, such as SCORE_THREW or SCORE_TIMEOUT. */
  readonly code: string;
  readonly message: string;
  readonly class: FailureClass;
  /** How long the endpoint that the function asked wants to be left alone. */
  readonly retry_after_ms?: number;
}

/**
 * Returns an Answer as JSON. A value that JSON cannot carry is a text in its place, as in the
 * reward log.
 *
 * @param dropped why the reward log has no extra info of it
 */
export function answerTextOf(outcome: SampleOutcome, dropped?: string): string {
  const answer = answerOf(outcome);
  if (dropped !== undefined) return jsonText({ ...answer, extra: {}, extra_dropped: dropped });
  try {
    return jsonText(answer);
  } catch (error) {
    if (!(error instanceof JsonlError)) throw error;
    return jsonText(carriable(answer).value);
  }
}

function answerOf(outcome: SampleOutcome): Answer {
  const { attempts, latencyMs, version, cost, answeredBy } = outcome;
  const measured = {
    attempts,
    latency_ms: Math.round(latencyMs * 1000) / 1000,
    ...(version === undefined || version === "" ? {} : { version }),
    ...(cost === undefined ? {} : { cost }),
    ...(answeredBy === undefined ? {} : { answered_by: answeredBy }),
  };
  if (outcome.valid) {
    const { rewardScore: score, rewardExtraInfo: extra } = outcome;
    return { score, valid: true, error: null, extra, ...measured };
  }
  const { code, message, retryAfterMs, rewardExtraInfo: extra = {} } = outcome.error;
  const error: AnswerError = {
    code,
    message,
    class: failureClassOf(outcome.error),
    ...(retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs }),
  };
  return { score: null, valid: false, error, extra, ...measured };
}
