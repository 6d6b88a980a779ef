/** What a call of an endpoint came to when it came to no answer. Has the fields by which the loop decides whether it is worth another try. */

export class EndpointError extends Error {
  override readonly name = "EndpointError";
  /** MALFORMED_ANSWER, HTTP_STATUS, or the code of what broke (ECONNRESET, …). */
  readonly code: string;
  readonly url: string;
  readonly status: number | undefined;
  /** Those that say when to come back. */
  readonly headers: Readonly<Record<string, string>>;
  /** The first part of what it said. */
  readonly body: string;

  constructor(
    url: string,
    problem: string,
    details: {
      readonly code: string;
      readonly status?: number;
      readonly headers?: Headers;
      readonly body?: string;
      readonly cause?: unknown;
    },
  ) {
    const { code, status, headers, body = "", cause } = details;
    super(`${url} ${problem}${body === "" ? "" : `: ${body.slice(0, shown)}`}`, { cause });
    this.code = code;
    this.url = url;
    this.status = status;
    this.headers = Object.fromEntries(
      [...(headers ?? [])].filter(([name]) => /^(retry-after|(x-)?ratelimit-)/.test(name)),
    );
    this.body = body.slice(0, kept);
  }
}

const shown = 200;
const kept = 2000;
