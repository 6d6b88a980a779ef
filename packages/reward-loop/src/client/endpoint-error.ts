/**
 * A failed call of an endpoint. Its fields tell the loop whether the call is worth another attempt,
 * and what it cost.
 */

/**
 * - `HTTP_STATUS`: the answer's status says so; `status` has it.
 * - `MALFORMED_ANSWER`: the answer is no JSON, or lacks what matters.
 * - `ENDPOINT_ERROR`: an answer with the status of a success tells of an error.
 * - `TRUNCATED_ANSWER`: the model ran out of tokens before it said anything.
 * - `REFUSED_ANSWER`: the model, or a filter, refused to answer.
 * - Any other: the code of what broke (ECONNRESET, …).
 */
export type EndpointErrorCode =
  | "HTTP_STATUS"
  | "MALFORMED_ANSWER"
  | "ENDPOINT_ERROR"
  | "TRUNCATED_ANSWER"
  | "REFUSED_ANSWER"
  | (string & {});

export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly code: EndpointErrorCode;
  readonly url: string;
  /** The status of HTTP, or the code that the error in an answer names. */
  readonly status: number | undefined;
  /** Headers that say whether and when to retry. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first part of what it said. */
  readonly body: string;
  /** The usage in the answer, in the endpoint's names; it is paid for. */
  readonly usage: unknown;

  constructor(
    url: string,
    problem: string,
    details: {
      readonly code: EndpointErrorCode;
      readonly status?: number | undefined;
      readonly headers?: Iterable<readonly [name: string, value: string]>;
      readonly body?: string;
      readonly usage?: unknown;
      readonly cause?: unknown;
    },
  ) {
    const { code, status, headers, body = "", cause } = details;
    super(`${url} ${problem}${body === "" ? "" : `: ${body.slice(0, shown)}`}`, { cause });
    this.code = code;
    this.url = url;
    this.status = status;
    this.headers = Object.fromEntries(
      [...(headers ?? [])].filter(([name]) =>
        /^(retry-after|x-should-retry|(x-)?ratelimit-)/.test(name),
      ),
    );
    this.body = body.slice(0, kept);
    this.usage = details.usage;
  }
}

const shown = 200;
const kept = 2000;
