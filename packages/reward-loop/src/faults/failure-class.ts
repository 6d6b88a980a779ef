/**
 * What kind of failure it was, as far as it decides what is done about it: who is at fault, and whether the same call may go better later.
 *
 * Errors of the user's are judged by what clients of HTTP services put on them: `status` (or `statusCode`, or `response.status`), `code` of Node and undici, the name. One that has a status of success
 * is about an answer that came and was of no use (ai: APICallError "Invalid JSON response" has 200).
 */

import type { ScoreFailure } from "../outcome.ts";

export type FailureClass =
  /** The endpoint or the way to it: 5xx, a connection that broke, an answer that is no JSON or otherwise of no use. */
  | "infrastructure"
  /** The endpoint had no room: 429, or 503 with a time to wait. */
  | "rate-limit"
  /** It did not answer in time. */
  | "timeout"
  /** This sample can never be scored: it lacks something, the endpoint refuses it (4xx), or the function cannot tell. */
  | "data"
  /** The score function threw, returned no score, or ended or blocked its thread. */
  | "user-code";

export function classOf(failure: ScoreFailure): FailureClass {
  switch (failure.code) {
    case "SCORE_TIMEOUT":
      return failure.blocked === true ? "user-code" : "timeout";
    case "RETRY_BUDGET":
      return "timeout";
    case "EXECUTOR_DIED":
    case "INVALID_SCORE":
      return "user-code";
    case "CANNOT_TELL":
    case "REFUSED":
    case "TRUNCATED":
    case "NOT_IN_LOG":
    case "SPEND_CAP":
    case "INVALID_SAMPLE":
    case "MISSING_TOKENIZER":
    case "NOT_ENCODABLE":
    case "SANDBOX_UNAVAILABLE":
    case "UNKNOWN_DATA_SOURCE":
      return "data";
    default:
      return classOfThrown(failure);
  }
}

function classOfThrown({ status, retryAfterMs, errorCode, name }: ScoreFailure): FailureClass {
  if (status === 429 || (status === 503 && retryAfterMs !== undefined)) return "rate-limit";
  if (status === 408 || status === 504) return "timeout";
  if (status !== undefined && status >= 500) return "infrastructure";
  if (status !== undefined && status >= 400) return "data";
  if (errorCode !== undefined && late.test(errorCode)) return "timeout";
  if (errorCode !== undefined && broken.test(errorCode)) return "infrastructure";
  if (name.endsWith("AbortError") || name.endsWith("TimeoutError")) return "timeout";
  if (status !== undefined && status >= 200 && status < 300) return "infrastructure";
  return name.endsWith("ConnectionError") ? "infrastructure" : "user-code";
}

const late = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS_|BODY_|CONNECT_)TIMEOUT)$/;
const broken =
  /^(MALFORMED_ANSWER|ENDPOINT_ERROR|SANDBOX_SERVICE|ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_[A-Z_]+)$/;
