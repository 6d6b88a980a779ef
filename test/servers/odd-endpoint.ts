/**
 * An endpoint that misbehaves as it is asked to, on a raw socket: the path of a request names its client and the behaviour (`/client/behaviour/v1/chat/completions`). It counts requests and the tokens that it
 * says were used, as who pays for them would.
 */

import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";

export interface OddEndpoint extends AsyncDisposable {
  readonly port: number;
  /** By client and behaviour. */
  readonly seen: Map<string, Seen>;
}

export interface Seen {
  requests: number;
  tokens: number;
}

/** What is sent back, and how it ends. */
type Behaviour = (socket: Socket) => void;

const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };

/** @param tls key and certificate; without them it speaks plainly */
export async function startOddEndpoint(tls?: {
  readonly key: string;
  readonly cert: string;
}): Promise<OddEndpoint> {
  const seen = new Map<string, Seen>();
  const sockets = new Set<Socket>();
  const onSocket = (socket: Socket): void => {
    sockets.add(socket);
    // A client that goes away, or does not trust this one, is none of its business.
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    serve(socket, seen);
  };
  const server: Server =
    tls === undefined ? createServer(onSocket) : createTlsServer({ ...tls }, onSocket);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** One request for each connection. */
function serve(socket: Socket, seen: Map<string, Seen>): void {
  let text = "";
  let isAnswered = false;
  socket.on("data", (part: Buffer) => {
    text += part.toString("latin1");
    // The beginning of TLS: no HTTP.
    if (text.startsWith("\x16")) {
      socket.end(raw(400, ""));
      return;
    }
    const end = text.indexOf("\r\n\r\n");
    const length = Number(/^content-length: *(\d+)/im.exec(text)?.[1] ?? 0);
    if (isAnswered || end === -1 || text.length < end + 4 + length) return;
    isAnswered = true;
    const [, client = "", name = ""] = (text.split(" ")[1] ?? "").split("/");
    const behaviour = behaviours[decodeURIComponent(name)] ?? answering(404, {});
    const key = `${client}/${decodeURIComponent(name)}`;
    const counted = seen.get(key) ?? { requests: 0, tokens: 0 };
    seen.set(key, counted);
    counted.requests += 1;
    behaviour(socket);
    if (paid.has(behaviour)) counted.tokens += usage.total_tokens;
  });
}

type Headers = Readonly<Record<string, string | readonly string[]>>;

function raw(status: number, body: Buffer | string, headers: Headers = {}): Buffer {
  const bytes = Buffer.from(body);
  const all: Headers = {
    "content-type": "application/json",
    "content-length": String(bytes.length),
    connection: "close",
    ...headers,
  };
  const lines = Object.entries(all).flatMap(([name, value]) =>
    [value].flat().map((one) => `${name}: ${one}`),
  );
  return Buffer.concat([
    Buffer.from(`HTTP/1.1 ${status} Odd\r\n${lines.join("\r\n")}\r\n\r\n`),
    bytes,
  ]);
}

function sending(bytes: Buffer | string, end: "end" | "cut" = "end"): Behaviour {
  return (socket) => {
    if (end === "end") socket.end(bytes);
    else socket.write(bytes, () => socket.destroy());
  };
}

/** Those that say what was used, all of it, to whoever can read it. */
const paid = new Set<Behaviour>();

function answering(status: number, body: unknown, headers?: Headers): Behaviour {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const behaviour = sending(raw(status, text, headers));
  if (text.includes('"usage"')) paid.add(behaviour);
  return behaviour;
}

function choosing(choice: object, more: object = {}): Behaviour {
  return answering(200, completion(choice, more));
}

function completion(choice: object, more: object = {}): object {
  const whole = { index: 0, finish_reason: "stop", ...choice };
  const head = { id: "odd", object: "chat.completion", created: 0, model: "judge" };
  return { ...head, choices: [whole], usage, ...more };
}

const said = (content: unknown, finish = "stop", more: object = {}): Behaviour =>
  choosing({ message: { role: "assistant", content, ...more }, finish_reason: finish });

const right = JSON.stringify(completion({ message: { role: "assistant", content: "1" } }));
const half = raw(200, right).subarray(0, -40);
const zipped = gzipSync(right);
const chunked = (body: string): string =>
  `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${body}`;
const busy = { error: { message: "busy" } };

export const behaviours: Readonly<Record<string, Behaviour>> = {
  right: answering(200, right),
  "right, as text": answering(200, right, { "content-type": "text/plain" }),
  "right, compressed": sending(raw(200, zipped, { "content-encoding": "gzip" })),
  "right, in chunks": sending(chunked(`${right.length.toString(16)}\r\n${right}\r\n0\r\n\r\n`)),
  "right, in parts": said([
    { type: "text", text: "1" },
    { type: "text", text: "0" },
  ]),
  // Statuses.
  "400": answering(400, busy),
  "401": answering(401, busy),
  "403": answering(403, busy),
  "404": answering(404, busy),
  "408": answering(408, busy),
  "409": answering(409, busy),
  "422": answering(422, busy),
  "425": answering(425, busy),
  "429": answering(429, busy),
  "500": answering(500, busy),
  "502, HTML": answering(502, "<html>bad gateway</html>", { "content-type": "text/html" }),
  "503": answering(503, busy),
  "504": answering(504, busy),
  "529": answering(529, busy),
  "204": sending("HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n"),
  "500 that used": answering(500, { ...busy, usage }),
  // What the headers say.
  "429, 20ms": answering(429, busy, { "retry-after": "20ms" }),
  "429, an hour": answering(429, busy, { "retry-after": "3600" }),
  "429, twice": answering(429, busy, { "retry-after": ["0", "3600"] }),
  "503, a date": answering(503, busy, { "retry-after": "Tue, 14 Nov 2023 22:13:30 GMT" }),
  "403, 0": answering(403, busy, { "retry-after": "0" }),
  "409, 0": answering(409, busy, { "retry-after": "0" }),
  "425, 0": answering(425, busy, { "retry-after": "0" }),
  "400, try again": answering(400, busy, { "x-should-retry": "true" }),
  "500, do not": answering(500, busy, { "x-should-retry": "false" }),
  // Answers that are of no use.
  "no JSON": answering(200, "Internal error"),
  "half of the JSON": answering(200, right.slice(0, -30)),
  "no body": answering(200, ""),
  null: answering(200, "null"),
  "{}": answering(200, {}),
  "no choices": answering(200, { ...completion({}), choices: [] }),
  "no content": said(null),
  "an empty text": said(""),
  blanks: said(" \n"),
  "a call of tools": said(null, "tool_calls", {
    tool_calls: [{ id: "1", type: "function", function: { name: "f", arguments: "{}" } }],
  }),
  "no tokens left": said(null, "length"),
  "no tokens left, empty": said("", "length"),
  filtered: said(null, "content_filter"),
  refused: said(null, "stop", { refusal: "I will not" }),
  "error 429 inside": answering(200, { error: { message: "busy", code: 429 }, usage }),
  "error inside": answering(200, { error: { message: "broke", type: "server_error" }, usage }),
  "error of a choice": choosing({
    message: { role: "assistant", content: "" },
    error: { code: 502, message: "broke" },
    finish_reason: "error",
  }),
  "streamed, unasked": answering(
    200,
    [{ choices: [{ delta: { content: "1" } }] }, { choices: [], usage }]
      .map((event) => `data: ${JSON.stringify(event)}\n\n`)
      .join(""),
    { "content-type": "text/event-stream" },
  ),
  "usage as text": answering(200, right.replaceAll(/"(\w+_tokens)":(\d+)/g, '"$1":"$2"')),
  "usage in Anthropic's words": choosing(
    { message: { role: "assistant", content: "1" } },
    { usage: { input_tokens: 7, output_tokens: 3 } },
  ),
  "usage as a total": choosing(
    { message: { role: "assistant", content: "1" } },
    { usage: { total_tokens: 10 } },
  ),
  // Breaks.
  "cut at once": (socket) => void socket.destroy(),
  "reset at once": (socket) => void socket.resetAndDestroy(),
  "cut in the head": sending("HTTP/1.1 200 OK\r\ncontent-ty", "cut"),
  "cut in the body": sending(half, "cut"),
  "ended in the body": sending(half),
  "cut between chunks": sending(chunked(`5\r\n{"cho\r\n`), "cut"),
  "a chunk of no size": sending(chunked(`5\r\n{"cho\r\nzz\r\n`)),
  "no HTTP": sending("SSH-2.0-OpenSSH_9.6\r\n"),
  "a head without end": sending(raw(200, right, { "x-long": "x".repeat(100_000) })),
  "a length that is none": sending(raw(200, right, { "content-length": "many" })),
  "not compressed": sending(raw(200, right, { "content-encoding": "gzip" })),
  "half of it compressed": sending(
    raw(200, zipped.subarray(0, -20), { "content-encoding": "gzip" }),
  ),
  "a redirect to itself": sending(raw(307, "", { location: "completions" })),
  "a redirect to nowhere": sending(raw(307, "")),
};
for (const name of ["right, compressed", "right, in chunks"] as const) {
  paid.add(behaviours[name] as Behaviour);
}
