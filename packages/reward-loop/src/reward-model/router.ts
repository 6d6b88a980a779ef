/**
 * One address for several reward-model servers (verl's NaiveRouter): requests for inference that
 * have the token are passed on as they come.
 *
 * A request that a server does not take (no connection, no answer in time, 502, 503, 504, 508) goes
 * to another one; any other answer is passed on, with its status. Every 5xx is a failure of its
 * server. Connections to each server are bounded, failing servers are left out until their health
 * check succeeds again, and a request that its client gave up is given up at the server, too. An
 * invalid request is its client's failure, and no server's.
 */

import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { HttpEndpoint, HttpRefusal, newToken } from "@rayling/core/http";
import type { HttpExchange } from "@rayling/core/http";
import type * as undiciTypes from "undici";
import type { Agent, Dispatcher } from "undici";
import { codeOf, messageOf } from "@rayling/reward-manager-registry/values";
import { inferenceRoutes } from "./inference-paths.ts";
import { originOf } from "../client/address.ts";
import { withDefaults } from "../options/read.ts";
import { routerOptions } from "../options/defaults/reward-model.ts";
import { checkRouterOptions } from "./router-options.ts";
import type { RouterOptions, RouterSettings } from "../options/defaults/reward-model.ts";
import { timerMs } from "../time/clock.ts";
import { Upstreams } from "./upstreams.ts";
import type { UpstreamState } from "./upstreams.ts";

type Undici = typeof undiciTypes;

interface RouterParts {
  readonly token: string;
  readonly endpoint: HttpEndpoint;
  readonly undici: Undici;
}

/** Forwards requests to the servers of a reward model, and leaves out those that fail. */
export class RewardModelRouter implements AsyncDisposable {
  /**
   * Its name in the Via header (RFC 9110, 7.6.3) of forwarded requests, by which it recognises its
   * own.
   */
  readonly #name = `rayling-${randomUUID()}`;
  readonly #options: RouterSettings;
  readonly #upstreams: Upstreams;
  readonly #undici: Undici;
  readonly #agent: Agent;
  /**
   * As the requests, health checks go by no proxy that HTTP_PROXY names for the thread. They have
   * connections of their own: a server whose connections are all in use is well.
   */
  readonly #healthAgent: Agent;
  readonly #endpoint: HttpEndpoint;
  readonly #token: string;
  #health: NodeJS.Timeout | undefined;
  /** The reason why requests are refused; undefined: they are passed on. */
  #refusal: string | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    servers: readonly string[],
    options: RouterSettings,
    { token, endpoint, undici }: RouterParts,
  ) {
    const { strategy, failures, connections, connectTimeoutMs, timeoutMs } = options;
    this.#options = options;
    this.#token = token;
    this.#endpoint = endpoint;
    this.#upstreams = new Upstreams(servers, { strategy, failures });
    this.#undici = undici;
    this.#agent = new undici.Agent({
      connections,
      connect: { timeout: connectTimeoutMs },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
    });
    this.#healthAgent = new undici.Agent({ connect: { timeout: connectTimeoutMs } });
  }

  /**
   * Resolves when it listens; rejects with RewardLoopOptionError, or as `listen` does, if the port
   * is taken.
   *
   * @param servers http://host:port of each
   */
  static async start(
    servers: readonly string[],
    given: RouterOptions = {},
  ): Promise<RewardModelRouter> {
    checkRouterOptions("router", given);
    const options = withDefaults(routerOptions, given);
    const { token = newToken(), healthPath, allowedPaths, host, allowedHosts } = options;
    // Half of the time in which this package is loaded would be undici's, without any router.
    const undici = await import("undici");
    // Requests come when there is a router, which there is when it listens.
    const parts: { router?: RewardModelRouter } = {};
    const endpoint = await HttpEndpoint.listen(
      {
        ...(host === undefined ? {} : { host }),
        port: options.port,
        token,
        tokenHint: "score functions get it as rewardRouterToken",
        routes: inferenceRoutes(healthPath, allowedPaths),
        allowedHosts,
        hostsOption: "its option allowedHosts",
        holdsProcess: true,
        limits: options,
      },
      async (exchange) => {
        if (parts.router !== undefined) await parts.router.#serve(exchange);
      },
    );
    const router = new RewardModelRouter(servers.map(originOf), options, {
      token,
      endpoint,
      undici,
    });
    parts.router = router;
    router.#health = setInterval(() => void router.checkHealth(), options.healthEveryMs).unref();
    return router;
  }

  /** host:port; an IPv6 host in brackets. */
  get address(): string {
    return this.#endpoint.address;
  }

  /**
   * The token that requests must have as `Authorization: Bearer <token>`. It is no field, so that
   * it is not printed by chance.
   */
  get token(): string {
    return this.#token;
  }

  /** The state of each server. */
  get servers(): UpstreamState[] {
    return this.#upstreams.states;
  }

  /**
   * @param reason why requests are refused from now on (503, `model_not_awake`); undefined: they
   * are not
   */
  refuse(reason: string | undefined): void {
    this.#refusal = reason;
  }

  /** Asks every server how it is; those that are not well get no requests until they are. */
  async checkHealth(): Promise<void> {
    const { healthPath, healthTimeoutMs } = this.#options;
    await Promise.all(
      this.#upstreams.states.map(async ({ url }) => {
        try {
          const signal = AbortSignal.timeout(timerMs(healthTimeoutMs));
          const headers = this.#ownHeaders();
          const { statusCode, body } = await this.#undici.request(`${url}${healthPath}`, {
            signal,
            headers,
            dispatcher: this.#healthAgent,
          });
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
      await this.#endpoint.close("drain");
      await this.#agent.close();
      await this.#healthAgent.destroy();
    })();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(exchange: HttpExchange): Promise<void> {
    const { request, response, signal } = exchange;
    if (request.headers.via?.includes(this.#name) === true) {
      const loop = `the router ${this.address} is one of its own servers, or behind one of them`;
      throw new HttpRefusal(508, "loop_detected", loop);
    }
    if (this.#refusal !== undefined) {
      throw new HttpRefusal(503, "model_not_awake", this.#refusal);
    }
    const body = await exchange.body();
    const { attempts, deterministic, timeoutMs } = this.#options;
    const tried = new Set<string>();
    let refusal = new HttpRefusal(503, "no_server", "No available workers");
    while (tried.size < attempts && !signal.aborted) {
      const server = this.#upstreams.select(tried, deterministic ? body : undefined);
      if (server === undefined) break;
      tried.add(server);
      const sentMs = performance.now();
      const giveUp = (): void => this.#upstreams.givenUp(server, sentMs, performance.now());
      try {
        const isLast = tried.size === Math.min(attempts, this.#upstreams.states.length);
        const answer = await this.#ask(server, exchange, body);
        const hasFailed = answer.statusCode >= 500;
        if (again.has(answer.statusCode) && !isLast) {
          this.#upstreams.failed(server);
          await answer.body.dump();
          continue;
        }
        const end = await passOn(answer, response, timeoutMs);
        if (hasFailed || end === "cut") this.#upstreams.failed(server);
        if (end === "unread") giveUp();
        const tookMs = performance.now() - sentMs;
        if (end === "whole" && !hasFailed) this.#upstreams.succeeded(server, tookMs);
        return;
      } catch (error) {
        if (signal.aborted) {
          giveUp();
          return void response.destroy();
        }
        if (isOfRequest(error)) {
          throw new HttpRefusal(
            400,
            "malformed_request",
            `no server can be asked that: ${error.message}`,
          );
        }
        this.#upstreams.failed(server);
        refusal = refusalOf(server, error);
      } finally {
        this.#upstreams.release(server);
      }
    }
    throw refusal;
  }

  #ask(
    server: string,
    { request: { url = "/", method = "GET", headers }, signal }: HttpExchange,
    body: Buffer,
  ): Promise<Dispatcher.ResponseData> {
    // The target is forwarded unchanged, so that the server parses exactly the text that the guard
    // checked.
    return this.#agent.request({
      origin: server,
      path: url,
      method,
      headers: {
        ...endToEnd(headers),
        ...this.#ownHeaders(),
        via: [headers.via ?? [], `1.1 ${this.#name}`].flat().join(", "),
      },
      ...(body.length === 0 ? {} : { body }),
      signal,
    });
  }

  /** The key is the servers' own. */
  #ownHeaders(): Record<string, string> {
    const { apiKey } = this.#options;
    return apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }
}

/**
 * "cut": the server ended it too early, or was silent for too long; "unread": the client has gone.
 */
async function passOn(
  { statusCode, headers, body }: Dispatcher.ResponseData,
  response: ServerResponse,
  timeoutMs: number,
): Promise<"whole" | "cut" | "unread"> {
  let isCut = false;
  // Twice: a server that says nothing more is found out first.
  response.setTimeout(2 * timeoutMs, () => response.destroy());
  // Runs before the pipeline gets the error and ends the other side; a response that the client
  // ended is destroyed by then.
  body.once("error", () => (isCut = !response.destroyed));
  try {
    response.writeHead(statusCode, endToEnd(headers));
  } catch (error) {
    // Invalid headers: the answer cannot be used.
    body.destroy();
    throw error;
  }
  try {
    await pipeline(body, response);
    return "whole";
  } catch {
    response.destroy();
    return isCut ? "cut" : "unread";
  }
}

/** Statuses after which another server is tried. */
const again: ReadonlySet<number> = new Set([502, 503, 504, 508]);

/**
 * Returns the headers without those of a single connection (RFC 9110, 7.6.1), including the ones
 * that Connection names, without headers that are computed anew for the next one, and without the
 * token.
 */
function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = new Set((headers.connection ?? "").toLowerCase().split(/[\s,]+/));
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => !ofConnection.has(name) && !named.has(name)),
  );
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
  "authorization",
]);

/** undici refuses to send it: no server has seen it. */
function isOfRequest(error: unknown): error is Error {
  const code = codeOf(error);
  return code === "UND_ERR_INVALID_ARG" || code === "UND_ERR_NOT_SUPPORTED";
}

function refusalOf(server: string, error: unknown): HttpRefusal {
  const code = codeOf(error) ?? "";
  const why = messageOf(error);
  return /TIMEOUT/.test(code)
    ? new HttpRefusal(504, "server_timeout", `${server} did not answer in time: ${why}`)
    : new HttpRefusal(502, "server_unreachable", `${server} could not be reached: ${why}`);
}
