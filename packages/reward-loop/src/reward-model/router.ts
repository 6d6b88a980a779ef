/**
 * One address for several reward-model servers (verl's NaiveRouter): any path, any method, bodies passed on as they come.
 *
 * A request that a server does not take (no connection, no answer in time, 502, 503, 504, 508) goes to another one; what a server says otherwise is passed on, status and all.
 * Connections to each server are bounded, servers that fail are left out until their health check is well again, and a request that its client gave up is given up there, too.
 */

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pipeline } from "node:stream/promises";
import { Agent, request as send } from "undici";
import type { Dispatcher } from "undici";
import { Upstreams } from "./upstreams.ts";
import type { RouterStrategy, UpstreamState } from "./upstreams.ts";

export interface RouterOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default: any that is free. */
  readonly port?: number;
  readonly strategy?: RouterStrategy;
  /** Servers that a request is tried on. Default 3. */
  readonly attempts?: number;
  /** How long a server may take until its answer begins, and between two parts of it; a client that takes none of it for twice as long has gone. Default 300,000. */
  readonly timeoutMs?: number;
  /** Default 10,000. */
  readonly connectTimeoutMs?: number;
  /** To each server. Default 256. */
  readonly connections?: number;
  /** Largest body of a request: it is kept to be sent again. Default 64 MiB. */
  readonly maxBodyBytes?: number;
  /** Default /health. */
  readonly healthPath?: string;
  /** How often servers are asked for it. Default 5,000. */
  readonly healthEveryMs?: number;
  /** Equal servers are told apart by the body, so that the same requests go to the same servers (verl `full_determinism`). */
  readonly deterministic?: boolean;
}

export class RewardModelRouter implements AsyncDisposable {
  /** In the Via header (RFC 9110, 7.6.3) of what it sends, so that it knows its own requests. */
  readonly #name = `rayling-${randomUUID()}`;
  readonly #options: RouterOptions;
  readonly #upstreams: Upstreams;
  readonly #agent: Agent;
  readonly #server: Server;
  #health: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  private constructor(servers: readonly string[], options: RouterOptions) {
    const { strategy, connections = 256, connectTimeoutMs = 10_000 } = options;
    const { timeoutMs = standardTimeoutMs } = options;
    this.#options = options;
    this.#upstreams = new Upstreams(servers, strategy === undefined ? {} : { strategy });
    this.#agent = new Agent({
      connections,
      connect: { timeout: connectTimeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  /**
   * Resolves when it listens; rejects as `listen` does, if the port is taken.
   *
   * @param servers http://host:port of each
   */
  static async start(
    servers: readonly string[],
    options: RouterOptions = {},
  ): Promise<RewardModelRouter> {
    const router = new RewardModelRouter(servers.map(originOf), options);
    const { host = "127.0.0.1", port = 0, healthEveryMs = 5000 } = options;
    await new Promise<void>((resolve, reject) => {
      router.#server.once("error", reject);
      router.#server.listen(port, host, resolve);
    });
    router.#health = setInterval(() => void router.checkHealth(), healthEveryMs).unref();
    return router;
  }

  /** host:port; an IPv6 host in brackets. */
  get address(): string {
    const { address, family, port } = this.#server.address() as AddressInfo;
    return `${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  get servers(): UpstreamState[] {
    return this.#upstreams.states;
  }

  /** Asks every server how it is; those that are not well get no requests until they are. */
  async checkHealth(): Promise<void> {
    const { healthPath = "/health" } = this.#options;
    await Promise.all(
      this.#upstreams.states.map(async ({ url }) => {
        try {
          const signal = AbortSignal.timeout(healthTimeoutMs);
          const { statusCode, body } = await send(`${url}${healthPath}`, { signal });
          await body.dump();
          // A server without a health check is there all the same.
          this.#upstreams.checked(url, statusCode < 500);
        } catch {
          this.#upstreams.checked(url, false);
        }
      }),
    );
  }

  /** Takes no more connections, finishes what is in flight, and ends. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearInterval(this.#health);
      const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
      this.#server.closeIdleConnections();
      await closed;
      await this.#agent.close();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.headers.via?.includes(this.#name) === true) {
      const loop = `the router ${this.address} is one of its own servers, or behind one of them`;
      return refuse(response, 508, loop);
    }
    const body = await this.#bodyOf(request);
    if (body === undefined) return refuse(response, 413, "the body is too large");
    const gone = new AbortController();
    response.once("close", () => {
      gone.abort();
      // Its client may hold the connection for the next request, which there is not.
      if (this.#closing !== undefined) setImmediate(() => this.#server.closeIdleConnections());
    });
    if (this.#closing !== undefined) response.setHeader("connection", "close");
    const { attempts = 3, deterministic = false } = this.#options;
    const tried = new Set<string>();
    let refusal = { status: 503, reason: "No available workers" };
    while (tried.size < attempts && !gone.signal.aborted) {
      const server = this.#upstreams.select(tried, deterministic ? body : undefined);
      if (server === undefined) break;
      tried.add(server);
      try {
        const isLast = tried.size === Math.min(attempts, this.#upstreams.states.length);
        const answer = await this.#ask(server, request, body, gone.signal);
        const isRefused = again.has(answer.statusCode);
        if (isRefused) this.#upstreams.failed(server);
        if (isRefused && !isLast) {
          await answer.body.dump();
          continue;
        }
        const { timeoutMs = standardTimeoutMs } = this.#options;
        const end = await passOn(answer, response, timeoutMs);
        if (end === "cut") this.#upstreams.failed(server);
        if (end === "whole" && !isRefused) this.#upstreams.succeeded(server);
        return;
      } catch (error) {
        if (gone.signal.aborted) return void response.destroy();
        this.#upstreams.failed(server);
        refusal = refusalOf(server, error);
      } finally {
        this.#upstreams.release(server);
      }
    }
    refuse(response, refusal.status, refusal.reason);
  }

  #ask(
    server: string,
    { url = "/", method = "GET", headers }: IncomingMessage,
    body: Buffer,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    return send(`${server}${url}`, {
      method,
      headers: {
        ...endToEnd(headers),
        via: [headers.via ?? [], `1.1 ${this.#name}`].flat().join(", "),
      },
      ...(body.length === 0 ? {} : { body }),
      dispatcher: this.#agent,
      signal,
    });
  }

  /** Undefined: more than is allowed. */
  async #bodyOf(request: IncomingMessage): Promise<Buffer | undefined> {
    const { maxBodyBytes = 64 * 2 ** 20 } = this.#options;
    const chunks: Buffer[] = [];
    let length = 0;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBodyBytes) return undefined;
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

/** "cut": the server ended it too early, or said nothing more for too long; "unread": the client has gone. */
async function passOn(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  response: ServerResponse,
  timeoutMs: number,
): Promise<"whole" | "cut" | "unread"> {
  let isCut = false;
  // Twice: a server that says nothing more is found out first.
  response.setTimeout(2 * timeoutMs, () => response.destroy());
  // Before the pipeline hears of it and ends the other side; what the client ends is destroyed by then.
  body.once("error", () => (isCut = !response.destroyed));
  response.writeHead(statusCode, endToEnd(headers));
  try {
    await pipeline(body, response);
    return "whole";
  } catch {
    response.destroy();
    return isCut ? "cut" : "unread";
  }
}

const standardTimeoutMs = 300_000;
const healthTimeoutMs = 10_000;

/** Another server may take it. */
const again: ReadonlySet<number> = new Set([502, 503, 504, 508]);

/** A bare host:port stands for http. */
function originOf(server: string): string {
  return new URL(/^https?:\/\//.test(server) ? server : `http://${server}`).origin;
}

/** Without those that are about one connection (RFC 9110, 7.6.1), and what is worked out anew for the next one. */
function endToEnd<Headers extends IncomingMessage["headers"]>(headers: Headers): Headers {
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !ofConnection.has(name)),
  ) as Headers;
}

const ofConnection: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "host",
  "expect",
  "content-length",
]);

function refusalOf(server: string, error: unknown): { status: number; reason: string } {
  const { code = "", message } = error as { readonly code?: string; readonly message?: string };
  const isLate = /TIMEOUT/.test(code);
  return {
    status: isLate ? 504 : 502,
    reason: `${server} ${isLate ? "did not answer in time" : "could not be reached"}: ${message ?? code}`,
  };
}

function refuse(response: ServerResponse, status: number, error: string): void {
  if (response.destroyed) return;
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ error }));
}
