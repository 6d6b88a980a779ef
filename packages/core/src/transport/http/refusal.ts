/**
 * The answer of an HTTP endpoint to a request that it refuses: a status, and a JSON body in the
 * form of the OpenAI API, which clients of model servers read
 * (`{"error": {"message", "type", "param", "code"}}`). The message is for people, and `code` for
 * programs.
 */

/** A refusal that a handler throws or the guard returns; the endpoint turns it into an answer. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;
  readonly code: string;
  /** Additional headers of the answer. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: string,
    message: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
    this.status = status;
    this.code = code;
    this.headers = headers;
  }
}

/**
 * Headers of every answer: no other site may embed it, no script in it runs, and no cache keeps it.
 */
export const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** Returns the headers and the body of the answer. */
export function answerOf(refusal: HttpRefusal): {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
} {
  const { status, code, message } = refusal;
  const body = `${JSON.stringify({ error: { message, type: typeOf(status), param: null, code } })}\n`;
  const headers = {
    ...safeHeaders,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
    ...refusal.headers,
  };
  return { headers, body };
}

/** Returns the whole answer as bytes on the wire, for a connection that has no response object. */
export function rawAnswerOf(refusal: HttpRefusal): string {
  const { headers, body } = answerOf(refusal);
  const lines = Object.entries({ ...headers, connection: "close" }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const reason = reasons[refusal.status] ?? "Refused";
  return [`HTTP/1.1 ${refusal.status} ${reason}`, ...lines, "", body].join("\r\n");
}

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  414: "URI Too Long",
  431: "Request Header Fields Too Large",
  503: "Service Unavailable",
};

const types: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
};

function typeOf(status: number): string {
  return types[status] ?? (status >= 500 ? "server_error" : "invalid_request_error");
}
