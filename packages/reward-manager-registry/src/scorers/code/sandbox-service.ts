/**
 * One request of a program to a sandbox service that speaks SandboxFusion's `run_code`, sent again
 * where its failure may not recur, and the part of its answer that scorers use. Knows nothing of
 * tests.
 *
 * Each request is announced, so that a loop paces it. An answer is checked field by field: one that
 * says nothing about the program is the service's failure.
 */

import { SandboxServiceError } from "../../errors.ts";
import { describeValue } from "../../value-description.ts";
import { noteRateLimits, pause, turnOf } from "../../values/announced.ts";
import { codeOf } from "../../values/caught.ts";
import { fieldOf, isRecord } from "../../values/records.ts";
import { retryAfterIn } from "../../values/rate-limit-headers.ts";

/** The used part of the service's answer. */
export interface RunCodeAnswer {
  readonly status: unknown;
  readonly message: string;
  readonly compiled: CommandResult | undefined;
  readonly run: CommandResult | undefined;
}

export interface CommandResult {
  /** Finished, Error or TimeLimitExceeded. */
  readonly status: unknown;
  readonly seconds: number | null;
  readonly returnCode: number | null;
  readonly stdout: string | null;
  readonly stderr: string | null;
}

export interface ServiceUse {
  readonly url: string;
  /** The time for request and answer together. */
  readonly timeoutMs: number;
  /** The pause before the second request; before the third it is twice as long. */
  readonly retryDelayMs: number;
  readonly signal: AbortSignal | undefined;
}

/** Requests for one run of a program (verl, for a gateway that gave up). */
const tries = 3;

/** A longer pause ends the sample: others can use its place until then. */
const longestPauseMs = 10_000;

/** A timer of Node that is to wait longer fires at once. */
const longestTimer = 2 ** 31 - 1;

/**
 * Resolves to what `read` makes of the answer, whose failure is the service's. Rejects with
 * SandboxServiceError, with fetch's errors, and with the signal's reason.
 */
export async function askService<Result>(
  body: string,
  use: ServiceUse,
  read: (answer: RunCodeAnswer) => Result,
): Promise<Result> {
  const { url, retryDelayMs, signal } = use;
  let askedMs = 0;
  for (let attempt = 1; ; attempt++) {
    try {
      const turn = turnOf(url, signal, askedMs);
      if (turn !== undefined) await turn;
      return read(answerIn(await post(body, use)));
    } catch (error) {
      signal?.throwIfAborted();
      askedMs = retryAfterOf(error);
      if (attempt === tries || !mayEndWell(error) || askedMs > longestPauseMs) throw error;
    }
    if (askedMs === 0) await pause(Math.min(attempt * retryDelayMs, longestTimer), signal);
  }
}

/** Returns the text of a good answer. */
async function post(body: string, { url, timeoutMs, signal }: ServiceUse): Promise<string> {
  const late = AbortSignal.timeout(Math.min(Math.ceil(timeoutMs), longestTimer));
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body,
    signal: signal === undefined ? late : AbortSignal.any([signal, late]),
  });
  const { status, headers } = answer;
  const text = await answer.text();
  if (!answer.ok) {
    throw new SandboxServiceError(`it answered ${status}`, { status, headers, body: text });
  }
  noteRateLimits(headers);
  return text;
}

/** Whether a request that failed so may succeed later. */
function mayEndWell(error: unknown): boolean {
  if (error instanceof SandboxServiceError) {
    const { status } = error;
    return status === undefined || status >= 500 || [408, 409, 429].includes(status);
  }
  // fetch says "fetch failed" or "terminated", and why in the cause.
  return error instanceof TypeError && broken.test(codeOf(error.cause) ?? "");
}

/** Codes of connections (errno), of names, of HTTP's parser and of undici's sockets. */
const broken =
  /^(ECONN\w+|EPIPE|ENOTFOUND|EAI_\w+|EHOST\w+|ENET\w+|ETIMEDOUT|HPE_\w+|UND_ERR_(SOCKET|CONNECT_TIMEOUT))$/;

/** Returns how long the service wants no request; 0: it does not say. */
function retryAfterOf(error: unknown): number {
  if (!(error instanceof SandboxServiceError)) return 0;
  return retryAfterIn((name) => error.headers?.get(name) ?? undefined, Date.now()) ?? 0;
}

function answerIn(text: string): RunCodeAnswer {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new SandboxServiceError("its answer is no JSON", { cause, body: text });
  }
  if (!isRecord(value)) throw new SandboxServiceError("its answer is no object", { body: text });
  const { status, message } = value;
  return {
    status,
    message: typeof message === "string" ? message : "",
    compiled: resultIn(value, "compile_result"),
    run: resultIn(value, "run_result"),
  };
}

function resultIn(answer: unknown, name: string): CommandResult | undefined {
  const result = fieldOf(answer, name) ?? undefined;
  if (result === undefined) return undefined;
  if (!isRecord(result)) throw malformed(name, "an object or null", result);
  const { execution_time: seconds, return_code: returnCode } = result;
  return {
    status: result["status"],
    seconds: typeof seconds === "number" ? seconds : null,
    returnCode: numberOrNull(`${name}.return_code`, returnCode),
    stdout: textOrNull(`${name}.stdout`, result["stdout"]),
    stderr: textOrNull(`${name}.stderr`, result["stderr"]),
  };
}

/** A field that is left out is null by the service's protocol. */
function textOrNull(name: string, value: unknown = null): string | null {
  if (typeof value === "string" || value === null) return value;
  throw malformed(name, "a text or null", value);
}

function numberOrNull(name: string, value: unknown = null): number | null {
  if (typeof value === "number" || value === null) return value;
  throw malformed(name, "a number or null", value);
}

function malformed(name: string, expected: string, value: unknown): SandboxServiceError {
  return new SandboxServiceError(
    `${name} of its answer must be ${expected}; it is ${describeValue(value)}`,
  );
}
