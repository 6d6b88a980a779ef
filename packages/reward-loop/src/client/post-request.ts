/**
 * Sends a request again until it is answered (verl `_post_request`): after the server's
 * retry-after (at most two minutes), or else a pause of 1, 2, 4, … seconds, at most 30, up to 16
 * times in all. A retry-after of 0 is none, because a server that is down may say it each time. A
 * 4xx status is final; 408, 409 and 429 are not, which verl takes for final, too.
 */

import { pause } from "@rayling/reward-manager-registry/values";
import { httpDetailsOf } from "../faults/http-details.ts";
import { maxRetryAfterMs as standardMaxRetryAfterMs } from "../faults/retry-policy.ts";
import { postRequestOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { longestTimer } from "../time/clock.ts";
import { noteFailure } from "./announced.ts";
import { EndpointError } from "./endpoint-error.ts";
import { postJsonAfter } from "./post-json.ts";
import type { PostOptions } from "./post-json.ts";

export interface PostRequestOptions extends PostOptions {
  /** Tries in all. Default 16. */
  readonly maxRetries?: number | undefined;
  /** A server that wants to be left alone for longer is not asked again. Default 120,000. */
  readonly maxRetryAfterMs?: number | undefined;
  /** The length of a second, for tests. Default 1,000. */
  readonly secondMs?: number | undefined;
  /**
   * Checks the answer: if it throws an EndpointError, the request is sent again as if it had not
   * been answered.
   */
  readonly check?: ((answer: unknown) => void) | undefined;
}

/** Rejects with the last EndpointError, with the signal's reason, or with RewardLoopOptionError. */
export async function postRequest(
  url: string,
  body: unknown,
  given: PostRequestOptions = {},
): Promise<unknown> {
  checkOptions(postRequestOptions satisfies TableOf<PostRequestOptions>, given, "postRequest");
  const {
    maxRetries = 16,
    maxRetryAfterMs = standardMaxRetryAfterMs,
    secondMs = 1000,
    check,
    ...options
  } = given;
  let askedMs = 0;
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await postJsonAfter(askedMs, url, body, options);
      checked(answer, check);
      return answer;
    } catch (error) {
      const isLast = !(attempt + 1 < maxRetries);
      if (!(error instanceof EndpointError) || isFinal(error) || isLast) throw error;
      const { retryAfterMs = 0 } = httpDetailsOf(error);
      if (!(retryAfterMs <= Math.min(maxRetryAfterMs, longestTimer))) throw error;
      const pauseMs = Math.min(2 ** attempt, 30) * secondMs;
      askedMs = retryAfterMs;
      if (askedMs === 0) await pause(pauseMs, options.signal);
    }
  }
}

/** The answer came, and its request has failed all the same. */
function checked(answer: unknown, check: PostRequestOptions["check"]): void {
  try {
    check?.(answer);
  } catch (error) {
    throw error instanceof EndpointError ? noteFailure(error) : error;
  }
}

/** The rule of OpenAI's own client. */
function isFinal({ status, headers }: EndpointError): boolean {
  const said = headers["x-should-retry"];
  if (said === "true" || said === "false") return said === "false";
  const isOfRequest = status !== undefined && status >= 400 && status < 500;
  return isOfRequest && status !== 408 && status !== 409 && status !== 429;
}
