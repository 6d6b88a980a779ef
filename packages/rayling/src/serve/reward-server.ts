/**
 * The reward loop over HTTP: listens with the one guard of all endpoints, hands what passes to the
 * app, and ends in order.
 *
 * While it ends, what is under way is answered, requests for scores get 503 with a Retry-After, and
 * the port stays open until the last answer is out: clients and load balancers learn that it ends
 * by an answer, and not by a connection that is refused.
 */

import type { IncomingMessage } from "node:http";
import { cutUnread, HttpEndpoint, HttpRefusal } from "@rayling/core/http";
import type { HttpExchange } from "@rayling/core/http";
import { getRequestListener } from "@hono/node-server";
import { createApp } from "./app.ts";
import type { App, AppEnv, AppParts } from "./app.ts";
import type { ServeLimits } from "./limits.ts";
import { refusePacked } from "./request-body.ts";
import { routes, scoringPath } from "./routes.ts";

export interface RewardServerOptions extends Omit<AppParts, "notReady" | "maxSamples"> {
  readonly host: string;
  /** 0: a free one. */
  readonly port: number;
  /** Undefined: everybody who reaches the address may ask. */
  readonly token: string | undefined;
  readonly allowedHosts: readonly string[];
  readonly limits: ServeLimits;
}

/** With the token as its password: for trainers that take a URL and send no header of ours. */
export const basicUser = "rayling";

/** How long a whole request may take to arrive. */
const requestTimeoutMs = 60_000;

/** A client that takes nothing of an answer for so long has gone. */
const unreadMs = 60_000;

export class RewardServer {
  readonly #endpoint: HttpEndpoint;
  readonly #scores: RewardServerOptions["scores"];
  readonly #underWay: UnderWay;
  #isDraining = false;

  private constructor(
    endpoint: HttpEndpoint,
    scores: RewardServerOptions["scores"],
    underWay: UnderWay,
  ) {
    this.#endpoint = endpoint;
    this.#scores = scores;
    this.#underWay = underWay;
  }

  /** Resolves when it listens; rejects as `listen` does. */
  static async start(options: RewardServerOptions): Promise<RewardServer> {
    const { host, port, token, allowedHosts, limits, scores, notes } = options;
    const underWay: UnderWay = { scoring: new Set(), others: new Set() };
    const parts: { server?: RewardServer } = {};
    const isDraining = (): boolean => parts.server?.isDraining === true;
    const app = createApp({
      ...options,
      maxSamples: limits.maxSamples,
      notReady: async () => (isDraining() ? "it is ending" : scores.problem()),
    });
    const handle = listenerOf(app);
    const endpoint = await HttpEndpoint.listen(
      {
        host,
        port,
        token,
        tokenHint: "it is that of RAYLING_SERVE_TOKEN or --token-file where the server was started",
        basicUser,
        // A page cannot have a token, and on the loopback without one it is this server's own
        // alone.
        browsers: token === undefined ? "own-page" : "none",
        allowedHosts,
        hostsOption: "--allowed-host",
        routes: [
          // A load balancer may ask without wanting to read.
          ...routes.map(({ path, method }) => ({
            path,
            methods: method === "GET" ? ["GET", "HEAD"] : [method],
          })),
          { path: "/ng-rollout/*", methods: ["GET", "POST"] },
        ],
        holdsProcess: true,
        onRefused: (refused) => notes.addRefused(refused),
        limits: {
          maxConnections: limits.maxConnections,
          maxRequests: limits.maxRequests,
          maxRequestsPerConnection: 1_000_000,
          maxBodyBytes: limits.maxBodyBytes,
          maxBufferedBytes: 4 * limits.maxBodyBytes,
          headersTimeoutMs: limits.idleTimeoutMs,
          requestTimeoutMs,
        },
      },
      async (exchange) => {
        const { path, signal } = exchange;
        const isScoring = scoringPath(path) !== undefined;
        if (isScoring && isDraining()) throw ending;
        const alike = isScoring ? underWay.scoring : underWay.others;
        alike.add(exchange);
        signal.addEventListener("abort", () => alike.delete(exchange), { once: true });
        await handle(exchange);
      },
    );
    const server = new RewardServer(endpoint, scores, underWay);
    parts.server = server;
    return server;
  }

  /** http://host:port; an IPv6 host in brackets. */
  get url(): string {
    return `http://${this.#endpoint.address}`;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /**
   * Answers what is under way, and closes the port then. Idempotent.
   *
   * @param timeoutMs of both together
   * @returns how many requests were cut, or samples were given up, because they took longer
   */
  async drain(timeoutMs: number): Promise<number> {
    this.#isDraining = true;
    const { promise: late, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, timeoutMs);
    await Promise.race([this.#idle(), late]);
    const { scoring, others } = this.#underWay;
    let left = Math.max(scoring.size, this.#scores.underWay);
    // A request that does not arrive, or an answer that nobody reads, holds a connection longer.
    if (left === 0) {
      await Promise.race([this.#endpoint.close("drain"), late]);
      left = others.size + scoring.size;
    }
    clearTimeout(timer);
    await this.#endpoint.close("now");
    return left;
  }

  /** Also samples whose client has gone are scored to their end: they are recorded. */
  async #idle(): Promise<void> {
    const { scoring } = this.#underWay;
    while (scoring.size > 0 || this.#scores.underWay > 0) {
      await Promise.all([...scoring].map(({ signal }) => aborted(signal)));
      await this.#scores.idle();
    }
  }
}

/** Requests that are not answered yet, or whose answer has not left. */
interface UnderWay {
  readonly scoring: Set<HttpExchange>;
  readonly others: Set<HttpExchange>;
}

const ending = new HttpRefusal(503, "draining", "this server is ending: ask another one", {
  "retry-after": "5",
});

function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

function listenerOf(app: App): (exchange: HttpExchange) => Promise<void> {
  const bindings = new WeakMap<object, AppEnv["Bindings"]>();
  const listener = getRequestListener(
    (request, { incoming }) => app.fetch(request, bindings.get(incoming)),
    // Other code of the process keeps the Request and Response that it knows.
    { overrideGlobalObjects: false },
  );
  return async (exchange) => {
    const { request, response, signal } = exchange;
    const isPost = hasBody(request);
    if (isPost) refusePacked(request.headers["content-encoding"]);
    const body = isPost ? await exchange.body() : new Uint8Array();
    const cut = (): void => void response.destroy();
    bindings.set(request, { body, whole: aborted(signal), cut });
    cutUnread(response, unreadMs);
    await listener(request, response);
  };
}

function hasBody({ method }: IncomingMessage): boolean {
  return method === "POST";
}
