/**
 * The HTTP server behind all endpoints of the packages. Owner of node:http.
 *
 * It passes a request to its handler only if the guard accepts it. It limits connections, requests
 * under way, the time in which a request must arrive, bodies, and the bytes of all bodies together.
 * It does not know its users.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { RaySystemError } from "../../shared/errors.ts";
import { bodyOf, dropRest, lingerMs } from "./body.ts";
import { Connections } from "./connections.ts";
import {
  announcesBody,
  bodyTooLarge,
  headersTooLarge,
  httpGuard,
  type HttpRules,
  pathOf,
  targetTooLong,
} from "./guard.ts";
import { type HttpLimits, limitsOf } from "./limits.ts";
import { answerOf, HttpRefusal, rawAnswerOf, safeHeaders } from "./refusal.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface HttpEndpointOptions extends Pick<
  HttpRules,
  "routes" | "token" | "tokenHint" | "basicUser" | "cookie" | "hostsOption"
> {
  /** The address to listen on. Default 127.0.0.1. */
  readonly host?: string;
  /** The port to listen on; 0 takes a free one. */
  readonly port: number;
  /** More names that the Host header may have. Default: none. */
  readonly allowedHosts?: readonly string[];
  /** The browsers that may connect. Default "none". */
  readonly browsers?: HttpRules["browsers"];
  /** Whether the process lives as long as the endpoint. Default false. */
  readonly holdsProcess?: boolean;
  readonly limits?: Partial<HttpLimits>;
  /**
   * Called for each refusal that the endpoint sends: of the guard, of the limits, and what the
   * handler rejects with. A client that goes before is none. Must not throw.
   */
  readonly onRefused?: (refused: RefusedRequest) => void;
}

/** A request that got a refusal. */
export interface RefusedRequest {
  /** Undefined where the head of the request could not be read, or did not arrive. */
  readonly method: string | undefined;
  /** As the client sent it: it may be any text. Undefined as the method is. */
  readonly path: string | undefined;
  readonly status: number;
  /** The code of the HttpRefusal. */
  readonly code: string;
}

/** A request that the guard has accepted. */
export interface HttpExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  /** Aborted when the answer is complete, or its client has gone. */
  readonly signal: AbortSignal;
  /**
   * Reads the whole body, which counts towards the limits until the exchange is over. Rejects with
   * HttpRefusal, or when the client has gone.
   */
  readonly body: () => Promise<Buffer>;
}

/**
 * Answers a request. A rejection becomes the answer: an HttpRefusal as it says, any other error a
 * 500 without details.
 */
export type HttpHandler = (exchange: HttpExchange) => Promise<void>;

/** A connection stays open after these answers if the whole request has arrived. */
const goesOn: ReadonlySet<number> = new Set([404, 405, 429, 500, 502, 503, 504, 508]);

/** By default Node looks for late requests only every 30 s. */
const lookEveryMs = 500;

export class HttpEndpoint {
  readonly #server: Server;
  readonly #handle: HttpHandler;
  readonly #limits: HttpLimits;
  readonly #holdsProcess: boolean;
  readonly #onRefused: HttpEndpointOptions["onRefused"];
  readonly #judge: (request: IncomingMessage) => HttpRefusal | undefined;
  readonly #connections: Connections = new Connections();
  /** Sockets that got a refusal without a response object. Their later bytes are not read. */
  readonly #ended: WeakSet<Socket> = new WeakSet();
  #underWay = 0;
  #bufferedBytes = 0;
  #closing: Promise<void> | undefined;

  private constructor(options: HttpEndpointOptions, handle: HttpHandler) {
    const limits = limitsOf(options.limits);
    const { allowedHosts = [], browsers = "none", routes } = options;
    const { token, tokenHint, basicUser, cookie, hostsOption } = options;
    this.#handle = handle;
    this.#holdsProcess = options.holdsProcess ?? false;
    this.#onRefused = options.onRefused;
    this.#limits = limits;
    const whom = { allowedHosts, hostsOption, browsers, token, tokenHint, basicUser, cookie };
    this.#judge = httpGuard({ ...limits, ...whom, routes });
    const { headersTimeoutMs, requestTimeoutMs } = limits;
    this.#server = createServer({
      headersTimeout: Math.min(headersTimeoutMs, requestTimeoutMs),
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: headersTimeoutMs,
      connectionsCheckingInterval: lookEveryMs,
      // Node must let a little more pass, because the guard reports which of the two was too long.
      maxHeaderSize: 2 * (limits.maxTargetBytes + limits.maxHeaderBytes),
      insecureHTTPParser: false,
      requireHostHeader: false,
      noDelay: true,
    });
    this.#listenTo(this.#server);
    if (!this.#holdsProcess) this.#server.unref();
  }

  /** Resolves when it listens; rejects as `listen` does. */
  static async listen(options: HttpEndpointOptions, handle: HttpHandler): Promise<HttpEndpoint> {
    const endpoint = new HttpEndpoint(options, handle);
    const { port, host = "127.0.0.1" } = options;
    // In a worker of node:cluster the primary would listen for all of its workers.
    endpoint.#server.listen({ port, host, exclusive: true });
    await once(endpoint.#server, "listening");
    // Later errors concern single connections, such as too many open files.
    endpoint.#server.on("error", () => undefined);
    return endpoint;
  }

  get #place(): AddressInfo {
    const place = this.#server.address();
    if (typeof place === "object" && place !== null) return place;
    throw new RaySystemError("internal error: the endpoint does not listen on a port");
  }

  get port(): number {
    return this.#place.port;
  }

  /** Returns host:port; an IPv6 host is in brackets. */
  get address(): string {
    const { address, family, port } = this.#place;
    return `${family === "IPv6" ? `[${address}]` : address}:${port}`;
  }

  /** The bytes of bodies that are in memory now. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  get connectionCount(): number {
    return this.#connections.size;
  }

  /**
   * Accepts no more connections. Resolves when none is left. Idempotent.
   *
   * @param how "drain": requests that have arrived are answered; "now": all connections are cut
   */
  close(how: "drain" | "now"): Promise<void> {
    if (how === "now") this.#connections.cutAll();
    this.#closing ??= (async () => {
      const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
      this.#connections.cutIdle();
      this.#connections.endBehindAnswers();
      // Node no longer looks for late requests once the server is closing.
      const late = timers.setTimeout(
        () => this.#connections.cutUnsent(),
        this.#limits.requestTimeoutMs,
      );
      await closed;
      timers.clearTimeout(late);
    })();
    return this.#closing;
  }

  #listenTo(server: Server): void {
    // A few connections beyond the limit get an answer; Node drops the rest.
    server.maxConnections = this.#limits.maxConnections + 64;
    // Node drops headers beyond its default of 2,000, and the guard would not see them.
    server.maxHeadersCount = 0;
    server.on("connection", (socket: Socket) => this.#connected(socket));
    server.on("request", (request, response) => this.#requested(request, response, false));
    server.on("checkContinue", (request, response) => this.#requested(request, response, true));
    server.on("checkExpectation", (request, response) => {
      const problem = "only 100-continue can be expected here";
      this.#refuse(request, response, new HttpRefusal(417, "expectation_failed", problem));
    });
    server.on("connect", (request, socket: Socket) => {
      const problem = "this is no proxy to other servers";
      const refusal = new HttpRefusal(405, "method_not_allowed", problem, { allow: "GET" });
      this.#endWith(socket, refusal, request);
    });
    server.on("clientError", (error: ParseError, socket: Socket) => this.#failed(error, socket));
  }

  /** Answers a malformed or late request. */
  #failed(error: ParseError, socket: Socket): void {
    const connection = this.#connections.of(socket);
    // Data after the last request of a connection is ignored.
    const isLast = connection?.isEnding === true || error.code === "HPE_CLOSED_CONNECTION";
    if (isLast || this.#ended.has(socket)) return;
    const [first, ...others] = connection?.underWay ?? [];
    const hasGone = error.code === "ECONNRESET" || error.code === "HPE_INVALID_EOF_STATE";
    const isThere = connection !== undefined && socket.writable && !hasGone;
    // An answer that is under way cannot be replaced by another one.
    if (!isThere || others.length > 0) socket.destroy();
    else if (first === undefined) this.#endWith(socket, this.#malformed(error));
    else this.#refuse(...first, this.#malformed(error));
  }

  #connected(socket: Socket): void {
    const isFull = this.#connections.size >= this.#limits.maxConnections;
    if (!this.#holdsProcess) socket.unref();
    // Node takes its own listener away before "connect", and an error without one ends the process.
    socket.on("error", () => undefined);
    // Each pipelined request has one, and Node warns of a leak from eleven on.
    socket.setMaxListeners(socket.getMaxListeners() + this.#limits.maxPipelined);
    if (!isFull || this.#connections.cutOne()) return this.#connections.add(socket);
    this.#endWith(
      socket,
      busy("too_many_connections", "all connections of this endpoint are in use"),
    );
  }

  #requested(request: IncomingMessage, response: ServerResponse, isAsking: boolean): void {
    const { socket } = request;
    const connection = this.#connections.of(socket);
    if (this.#ended.has(socket) || connection?.isEnding === true) return;
    if (connection === undefined) return void socket.destroy();
    const refusal = this.#judge(request) ?? this.#overload(connection.underWay.size);
    if (refusal !== undefined) return this.#refuse(request, response, refusal, isAsking);
    connection.isKnown = true;
    connection.requests += 1;
    const isLast = connection.requests >= this.#limits.maxRequestsPerConnection;
    connection.underWay.set(request, response);
    this.#underWay += 1;
    const gone = new AbortController();
    let keptBytes = 0;
    let isOver = false;
    const over = (): void => {
      if (isOver) return;
      isOver = true;
      socket.off("close", over);
      response.off("close", over);
      connection.underWay.delete(request);
      this.#underWay -= 1;
      this.#bufferedBytes -= keptBytes;
      gone.abort();
      // A client may hold the connection for a next request.
      if (this.#closing !== undefined) timers.setImmediate(() => this.#connections.cutIdle());
    };
    // A pipelined response gets no close event while it waits for its turn.
    socket.once("close", over);
    response.once("close", over);
    for (const [name, value] of Object.entries(safeHeaders)) response.setHeader(name, value);
    if (isLast || this.#closing !== undefined) response.setHeader("connection", "close");
    if (isAsking) response.writeContinue();
    const keep = (bytes: number): HttpRefusal | undefined => {
      if (isOver) return undefined;
      if (this.#bufferedBytes + bytes > this.#limits.maxBufferedBytes) {
        return busy("too_many_bytes", "the bodies of all requests take too much memory");
      }
      keptBytes += bytes;
      this.#bufferedBytes += bytes;
      return undefined;
    };
    const body = (): Promise<Buffer> =>
      bodyOf(request, gone.signal, this.#limits.maxBodyBytes, keep);
    const exchange = { request, response, path: pathOf(request), signal: gone.signal, body };
    this.#handle(exchange).catch((error: unknown) => {
      const known = error instanceof HttpRefusal;
      const said = known ? error : new HttpRefusal(500, "internal_error", "the endpoint failed");
      this.#refuse(request, response, said);
    });
  }

  #overload(underWay: number): HttpRefusal | undefined {
    if (underWay >= this.#limits.maxPipelined) {
      const problem = "this connection has too many requests under way";
      return new HttpRefusal(429, "too_many_requests", problem, { "retry-after": "1" });
    }
    if (this.#underWay < this.#limits.maxRequests) return undefined;
    return busy("too_many_requests", "this endpoint has too many requests under way");
  }

  /** @param isAsking whether the client waits for a 100 before it sends the body */
  #refuse(
    request: IncomingMessage,
    response: ServerResponse,
    refusal: HttpRefusal,
    isAsking = false,
  ): void {
    if (response.destroyed || response.headersSent) return void response.destroy();
    const { headers, body } = answerOf(refusal);
    const hasRest = announcesBody(request) && !request.complete;
    const isEnd = hasRest || !goesOn.has(refusal.status) || this.#closing !== undefined;
    const connection = this.#connections.of(request.socket);
    if (isEnd && connection !== undefined) connection.isEnding = true;
    const { method } = request;
    this.#onRefused?.({
      method,
      path: pathOf(request),
      status: refusal.status,
      code: refusal.code,
    });
    response.writeHead(refusal.status, { ...headers, ...(isEnd ? { connection: "close" } : {}) });
    if (!hasRest || isAsking) return void response.end(body);
    response.write(body);
    dropRest(request, () => response.end());
  }

  /** Gives the client a moment to read the answer and end the connection. */
  #endWith(socket: Socket, refusal: HttpRefusal, request?: IncomingMessage): void {
    this.#ended.add(socket);
    const { status, code } = refusal;
    const path = request && pathOf(request);
    this.#onRefused?.({ method: request?.method, path, status, code });
    socket.end(rawAnswerOf(refusal));
    const late = timers.setTimeout(() => socket.destroy(), lingerMs).unref();
    socket.once("close", () => timers.clearTimeout(late));
  }

  #malformed(error: ParseError): HttpRefusal {
    const { maxTargetBytes, maxHeaderBytes, maxBodyBytes } = this.#limits;
    switch (error.code) {
      case "ERR_HTTP_REQUEST_TIMEOUT":
        return new HttpRefusal(408, "request_timeout", "the request did not arrive in time");
      case "HPE_HEADER_OVERFLOW":
        return error.rawPacket?.includes("\n") === false
          ? targetTooLong(maxTargetBytes)
          : headersTooLarge(maxHeaderBytes);
      case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
        return bodyTooLarge(maxBodyBytes);
      default:
        return new HttpRefusal(400, "malformed_request", "this is no HTTP request");
    }
  }
}

/** Node's parser adds the bytes that it could not read. */
interface ParseError extends NodeJS.ErrnoException {
  readonly rawPacket?: Buffer;
}

function busy(code: string, message: string): HttpRefusal {
  return new HttpRefusal(503, code, message, { "retry-after": "1" });
}
