/**
 * Sends JSON to an endpoint and reads its answer, with a deadline. Every failure of the endpoint is
 * an EndpointError.
 */

import {
  fieldOf,
  messageOf,
  noteRateLimits,
  turnOf,
} from "@rayling/reward-manager-registry/values";
import { postOptions } from "../options/defaults/asking.ts";
import type { TableOf } from "../options/defaults/calls.ts";
import { checkOptions } from "../options/read.ts";
import { requestEnds } from "./request-ends.ts";
import { noteFailure, noteUsage } from "./announced.ts";
import { EndpointError } from "./endpoint-error.ts";
import { jsonText } from "./json-text.ts";
import { withRouterToken } from "./router-tokens.ts";
import { bytesOf, send } from "./send.ts";
import type { Answer } from "./send.ts";

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The limit for request and answer together. Default: no limit, as long as Node's fetch receives
   * something every five minutes; Infinity: as long as a timer can, 24 days.
   */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves to the answer's JSON; its `usage` counts in a loop. Rejects with EndpointError, with
 * the signal's reason, with RangeError for a `timeoutMs` that is no number, or with
 * RewardLoopOptionError.
 */
export async function postJson(
  url: string,
  body: unknown,
  options: PostOptions = {},
): Promise<unknown> {
  checkOptions(postOptions satisfies TableOf<PostOptions>, options, "postJson");
  return await postJsonAfter(0, url, body, options);
}

/**
 * As postJson, without the check of options.
 *
 * @param pauseMs what the server has asked for when it refused the request before; 0: nothing
 */
export async function postJsonAfter(
  pauseMs: number,
  url: string,
  body: unknown,
  options: PostOptions,
): Promise<unknown> {
  try {
    const answer = parsed(url, await postText(url, body, options, pauseMs));
    noteUsage(usageIn(answer));
    return answer;
  } catch (error) {
    throw error instanceof EndpointError ? noteFailure(error) : error;
  }
}

/**
 * The answer's text, which may be empty. Rejects as postJson, which checks the options.
 *
 * @param body undefined: none
 */
export async function postText(
  url: string,
  body: unknown,
  { headers, timeoutMs, signal }: PostOptions = {},
  pauseMs = 0,
): Promise<string> {
  const isNumber = typeof timeoutMs === "number" && !Number.isNaN(timeoutMs);
  if (timeoutMs !== undefined && !isNumber)
    throw new RangeError(`The timeoutMs of ${url} is not a number.`);
  const turn = turnOf(url, signal, pauseMs);
  if (turn !== undefined) await turn;
  const ends = requestEnds(signal, timeoutMs);
  let status: number | undefined;
  try {
    const answer = await send({
      url,
      headers: {
        "content-type": "application/json",
        ...inLowerCase(withRouterToken(url, headers)),
      },
      body: jsonText(body),
      signal: ends.signal,
      isPatient: timeoutMs !== undefined,
    });
    ({ status } = answer);
    const text = await textOf(url, answer);
    if (!isOk(status)) {
      const usage = usageIn(parsedOrNot(text));
      noteUsage(usage);
      throw new EndpointError(url, `answered ${status}`, {
        code: "HTTP_STATUS",
        status,
        headers: answer.headers,
        body: text,
        usage,
      });
    }
    noteRateLimits(answer.headers);
    return text;
  } catch (error) {
    if (error instanceof EndpointError) throw error;
    signal?.throwIfAborted();
    if (ends.isLate()) {
      throw new EndpointError(url, `did not answer within ${timeoutMs} ms`, {
        code: "ETIMEDOUT",
        cause: error,
      });
    }
    throw broken(url, error);
  } finally {
    ends.release();
  }
}

function isOk(status: number): boolean {
  return status >= 200 && status < 300;
}

function inLowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function parsed(url: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const usage = usageInEvents(text);
    noteUsage(usage);
    throw new EndpointError(url, "answered something that is no JSON", {
      code: "MALFORMED_ANSWER",
      body: text,
      usage,
      cause,
    });
  }
}

/** The most bytes of an unpacked answer: a small one may unpack to more than there is memory. */
const mostBytes = 64 * 2 ** 20;

async function textOf(url: string, { status, headers, body }: Answer): Promise<string> {
  const bytes = await bytesOf(body, mostBytes);
  if (bytes !== undefined) return decoder.decode(bytes);
  throw new EndpointError(url, `answered ${status} with more than ${mostBytes / 2 ** 20} MiB`, {
    code: isOk(status) ? "MALFORMED_ANSWER" : "HTTP_STATUS",
    status,
    headers,
  });
}

const decoder = new TextDecoder();

/** Returns the usage that a stream of events or JSON lines ends with: nobody asked for a stream. */
function usageInEvents(text: string): unknown {
  const said = text.split("\n").map((line) => usageIn(parsedOrNot(line.replace(/^data:/, ""))));
  return said.findLast((usage) => usage !== undefined && usage !== null);
}

/** An error's body need not be JSON. */
function parsedOrNot(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns the usage that an endpoint reports. */
function usageIn(answer: unknown): unknown {
  return fieldOf(answer, "usage");
}

/** fetch says "fetch failed" or "terminated", and why in the cause. */
function broken(url: string, error: unknown): EndpointError {
  const cause = (error instanceof TypeError ? error.cause : undefined) ?? error;
  const code = fieldOf(cause, "code");
  return new EndpointError(url, `could not be asked: ${messageOf(cause)}`, {
    code: typeof code === "string" ? code : "UND_ERR_SOCKET",
    cause: error,
  });
}
