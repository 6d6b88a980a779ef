/**
 * Classifies a failure by what the loop does about it: which side is at fault, and whether a retry
 * may succeed.
 *
 * Errors of user code are judged by the fields that clients of HTTP services set: `status` (or
 * `statusCode`, or `response.status`, or gRPC's code), the kind of transport failure (`transport`),
 * `code`, the name. An error with a status of success is about an answer that was malformed (ai:
 * APICallError "Invalid JSON response" has 200).
 */

import type { FailureClass, ScoreFailure } from "../outcome.ts";

/** Returns the class of a failure: whose fault it is. */
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
    case "GIVEN_UP":
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

/**
 * Whether the endpoint answered, with nothing that is of use: no JSON, no text, an error in an
 * answer with a status of success. It had room for the call.
 */
export function isUselessAnswer({ errorCode, name, status, transport }: ScoreFailure): boolean {
  if (transport !== undefined) return false;
  const isSuccess = status !== undefined && status >= 200 && status < 300;
  return isSuccess || useless.test(errorCode ?? "") || useless.test(name);
}

function classOfThrown(failure: ScoreFailure): FailureClass {
  const { status, retryAfterMs, errorCode, name, transport, shouldRetry } = failure;
  const byStatus = status === undefined ? undefined : classOfStatus(status, retryAfterMs);
  // The server knows better than its status (OpenAI's own client does so, too).
  if (byStatus !== undefined && shouldRetry === false) return "data";
  if (byStatus === "data" && shouldRetry === true) return "infrastructure";
  if (byStatus !== undefined) return byStatus;
  if (transport === "final") return "user-code";
  if (transport === "late") return "timeout";
  if (transport === "broken") return "infrastructure";
  if (errorCode !== undefined && late.test(errorCode)) return "timeout";
  if (errorCode !== undefined && broken.test(errorCode)) return "infrastructure";
  if (name.endsWith("AbortError") || name.endsWith("TimeoutError")) return "timeout";
  if (status !== undefined && status >= 200 && status < 300) return "infrastructure";
  return lost.test(name) || useless.test(name) ? "infrastructure" : "user-code";
}

/**
 * As OpenAI's own client: 408, 409 (a lock), 429 and 5xx are retried, and every status with a
 * `retry-after`. Undefined: the status is no failure.
 */
function classOfStatus(status: number, retryAfterMs: number | undefined): FailureClass | undefined {
  if (status === 429 || (status === 503 && retryAfterMs !== undefined)) return "rate-limit";
  if (status === 408 || status === 504 || status === 499) return "timeout";
  if (status === 409 || status >= 500) return "infrastructure";
  return status >= 400 ? "data" : undefined;
}

/** Names of clients' errors about a connection (openai). */
const lost = /ConnectionError$/;

/** Codes of this package, and names of clients' errors (ai), about an answer without use. */
const useless =
  /^(MALFORMED_ANSWER|ENDPOINT_ERROR|AI_(InvalidResponseData|EmptyResponseBody|NoContentGenerated)Error)$/;

/**
 * Error codes of timeouts in older logs, which lack the kind of transport failure, and codes of
 * this package.
 */
const late = /^(ETIMEDOUT|ESOCKETTIMEDOUT|UND_ERR_(HEADERS_|BODY_|CONNECT_)TIMEOUT)$/;
const broken =
  /^(MALFORMED_ANSWER|ENDPOINT_ERROR|SANDBOX_RESOURCE|SANDBOX_SERVICE|ECONNRESET|ECONNREFUSED|ECONNABORTED|EPIPE|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_[A-Z_]+)$/;
