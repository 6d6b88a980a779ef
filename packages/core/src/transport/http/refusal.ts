/**
 * The answer of an HTTP endpoint to a request that it refuses: a status, and a JSON body in the form of the OpenAI API, which clients of model servers read
 * (`{"error": {"message", "type", "param", "code"}}`). The message is for people, `code` for programs.
 */

/** Thrown by a handler, or returned by the guard; the endpoint makes an answer of it. */
export class HttpRefusal extends Error {
  override readonly name = "HttpRefusal";
  readonly status: number;
  readonly code: string;
  /** More headers of the answer. */
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

/** On every answer of an endpoint: nothing of it is a page of another site, a script, or worth keeping. */
export const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "cache-control": "no-store",
};

/** The headers and the body of the answer. */
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

/** The whole answer as it stands on the wire, for a connection that has no response object. */
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
