/**
 * Sends JSON to an endpoint and reads its answer, with a deadline. Every failure is an
 * EndpointError.
 */

import { fieldOf } from "@rayling/reward-manager-registry/values";
import { noteRateLimits, noteUsage } from "./announced.ts";
import { EndpointError } from "./endpoint-error.ts";
import { withRouterToken } from "./router-tokens.ts";

export interface PostOptions {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /**
   * The limit for request and answer together. Default: no limit, as long as Node's fetch receives
   * something every five minutes.
   */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Resolves to the answer's JSON; its `usage` counts in a loop. Rejects with EndpointError, or with
 * the signal's reason.
 */
export async function postJson(
  url: string,
  body: unknown,
  options: PostOptions = {},
): Promise<unknown> {
  const answer = parsed(url, await postText(url, body, options));
  noteUsage(usageIn(answer));
  return answer;
}

/**
 * The answer's text, which may be empty. Rejects as postJson.
 *
 * @param body undefined: none
 */
export async function postText(
  url: string,
  body: unknown,
  { headers, timeoutMs, signal }: PostOptions = {},
): Promise<string> {
  const late = timeoutMs === undefined ? [] : [AbortSignal.timeout(timeoutMs)];
  const signals = signal === undefined ? late : [signal, ...late];
  let status: number | undefined;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...withRouterToken(url, headers) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signals.length === 0 ? {} : { signal: AbortSignal.any(signals) }),
      ...(timeoutMs === undefined ? {} : patient()),
    });
    ({ status } = response);
    const text = await textOf(url, response);
    if (!response.ok) {
      const usage = usageIn(parsedOrNot(text));
      noteUsage(usage);
      throw new EndpointError(url, `answered ${status}`, {
        code: "HTTP_STATUS",
        status,
        headers: response.headers,
        body: text,
        usage,
      });
    }
    noteRateLimits(response.headers);
    return text;
  } catch (error) {
    if (error instanceof EndpointError) throw error;
    signal?.throwIfAborted();
    if (late[0]?.aborted === true) {
      throw new EndpointError(url, `did not answer within ${timeoutMs} ms`, {
        code: "ETIMEDOUT",
        cause: error,
      });
    }
    throw broken(url, error);
  }
}

type Dispatcher = NonNullable<RequestInit["dispatcher"]>;

/** The global symbol under which undici keeps the dispatcher of a thread, a proxy for example. */
const place = Symbol.for("undici.globalDispatcher.1");

/**
 * Returns that dispatcher without the five minutes' timeout of Node's fetch: a judge may take
 * longer.
 */
function patient(): Pick<RequestInit, "dispatcher"> {
  // Node creates it at the first access to a name of fetch.
  const dispatcher = Headers && (globalThis as { readonly [place]?: Dispatcher })[place];
  if (dispatcher === undefined) return {};
  const dispatch: Dispatcher["dispatch"] = (options, handler) =>
    dispatcher.dispatch({ ...options, headersTimeout: 0, bodyTimeout: 0 }, handler);
  return { dispatcher: Object.create(dispatcher, { dispatch: { value: dispatch } }) as Dispatcher };
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

async function textOf(url: string, response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > mostBytes) {
      const problem = `answered ${response.status} with more than ${mostBytes / 2 ** 20} MiB`;
      const { status, headers } = response;
      const code = response.ok ? "MALFORMED_ANSWER" : "HTTP_STATUS";
      throw new EndpointError(url, problem, { code, status, headers });
    }
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks));
}

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

/** fetch says "fetch failed", and why in the cause. */
function broken(url: string, error: unknown): EndpointError {
  const cause = fieldOf(error, "cause") ?? error;
  const code = fieldOf(cause, "code");
  const message = fieldOf(cause, "message");
  return new EndpointError(url, `could not be asked: ${String(message ?? error)}`, {
    code: typeof code === "string" ? code : "UND_ERR_SOCKET",
    cause: error,
  });
}
