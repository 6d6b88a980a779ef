/**
 * Serves the page over HTTP: the one endpoint with its guard, a link with a token, and a cookie
 * behind the first request.
 *
 * Cookies belong to a host name and not to a port. So the page lives below a path that nobody can
 * guess and its cookie is for that path: no other server of this machine is sent it.
 */
import type { Dashboard, DashboardOptions, DashboardSession } from "@rayling/core/dashboard";
import { dashboardPanels, RaySystemError } from "@rayling/core/dashboard";
import type { HttpEndpointOptions, HttpExchange } from "@rayling/core/http";
import { cutUnread, HttpEndpoint, HttpRefusal, newToken } from "@rayling/core/http";
import { getRequestListener } from "@hono/node-server";
import { LogShelf } from "../samples/log-shelf.ts";
import { sampleViews } from "../samples/sample-views.ts";
import { RunShelf } from "../training/run-shelf.ts";
import { trainingViews } from "../training/training-views.ts";
import { sessionViews } from "../views/session-views.ts";
import { createApp, standardUnreadMs } from "./app.ts";
import type { App, AppEnv, AppParts } from "./app.ts";

/** 8265 is Ray's. */
const firstPort = 8266;

/** Sessions of one machine that find a port of their own before any free one is taken. */
const triedPorts = 100;

const maxConnections = 32;
const headersTimeoutMs = 2000;
const maxBodyBytes = 16 * 1024;

/**
 * Serves the live page of a session. Rejects with RaySystemError when it cannot listen.
 */
export async function serveSession(
  session: DashboardSession,
  options: DashboardOptions = {},
): Promise<Dashboard> {
  const shelf = new LogShelf([], () =>
    dashboardPanels().flatMap(({ rewardLog }) => (rewardLog === undefined ? [] : [rewardLog])),
  );
  const runs = new RunShelf(() =>
    dashboardPanels().flatMap(({ runFolder }) => (runFolder === undefined ? [] : [runFolder])),
  );
  const views = { ...sessionViews(session), ...sampleViews(shelf), ...trainingViews(runs) };
  const parts = { views, kill: (actorId: string) => session.killActor(actorId) };
  return closingShelf(shelf, await serve(parts, options, false));
}

/**
 * Serves a page of reward logs, without a session; the process lives until it is closed. Rejects
 * with RaySystemError when it cannot listen, and as the reader of a log when one is no reward log
 * (JsonlError, RewardLogError).
 */
export async function serveRewardLogs(
  paths: readonly string[],
  options: DashboardOptions = {},
): Promise<Dashboard> {
  const shelf = new LogShelf(paths);
  try {
    for (const { log } of shelf.known) await shelf.open(log);
    return closingShelf(shelf, await serve({ views: sampleViews(shelf) }, options, true));
  } catch (error) {
    await shelf.close();
    throw error;
  }
}

function closingShelf(shelf: LogShelf, served: Dashboard): Dashboard {
  return {
    url: served.url,
    close: async () => {
      await served.close();
      await shelf.close();
    },
  };
}

/** @param holdsProcess whether the process lives as long as the page is served */
async function serve(
  parts: AppParts,
  { host = "127.0.0.1", port }: DashboardOptions,
  holdsProcess: boolean,
): Promise<Dashboard> {
  const [token, key] = [newToken(), newToken()];
  const cookie = `rayling-${key}`;
  const app = createApp(parts);
  const handle = listenerOf(app.fetch, `/${key}`);
  const common: Omit<HttpEndpointOptions, "port"> = {
    host,
    token,
    cookie,
    tokenHint: "open the link with the token that was shown when the page was started",
    browsers: "own-page",
    holdsProcess,
    routes: [
      { path: "/", methods: ["GET"] },
      { path: `/${key}/`, methods: ["GET"] },
      ...app.routes.map(({ method, path }) => ({ path: `/${key}${path}`, methods: [method] })),
    ],
    limits: { maxConnections, headersTimeoutMs, maxBodyBytes, maxBufferedBytes: 4 * maxBodyBytes },
  };
  const endpoint = await listen(port, (onPort) =>
    HttpEndpoint.listen({ ...common, port: onPort }, async (exchange) => {
      if (exchange.path !== "/") return await handle(exchange);
      enter(exchange, `${cookie}=${token}; Path=/${key}/; HttpOnly; SameSite=Strict`, `/${key}/`);
    }),
  );
  const url = `http://${endpoint.address}/?token=${token}`;
  return { url, close: () => endpoint.close("now") };
}

/** Answers the link with the cookie, so that no address in the browser has the token. */
function enter({ request, response }: HttpExchange, cookie: string, location: string): void {
  if (request.url?.startsWith("/?token=") !== true) {
    throw new HttpRefusal(404, "path_not_allowed", "the page is behind the link with the token");
  }
  response.writeHead(303, { "set-cookie": cookie, location, "referrer-policy": "no-referrer" });
  response.end();
}

/** Tries one port after the other, unless one was asked for. */
async function listen(
  asked: number | undefined,
  open: (port: number) => Promise<HttpEndpoint>,
): Promise<HttpEndpoint> {
  const ports =
    asked === undefined
      ? [...Array.from({ length: triedPorts }, (_, index) => firstPort + index), 0]
      : [asked];
  for (const port of ports) {
    try {
      return await open(port);
    } catch (error) {
      const isTaken = error instanceof Error && "code" in error && error.code === "EADDRINUSE";
      if (isTaken && port !== ports.at(-1)) continue;
      const reason = error instanceof Error ? error.message : String(error);
      throw new RaySystemError(`the dashboard cannot be served on port ${port}: ${reason}`, {
        cause: error,
      });
    }
  }
  throw new RaySystemError("the dashboard found no port");
}

/** @param prefix the path below which the app has its own paths */
function listenerOf(
  fetch: App["fetch"],
  prefix: string,
): (exchange: HttpExchange) => Promise<void> {
  const bindings = new WeakMap<object, AppEnv["Bindings"]>();
  const listener = getRequestListener(
    (request, { incoming }) => fetch(request, bindings.get(incoming)),
    // Other code of the process keeps the Request and Response that it knows.
    { overrideGlobalObjects: false },
  );
  return async (exchange) => {
    const { request, response, signal } = exchange;
    const body = request.method === "POST" ? await exchange.body() : new Uint8Array();
    bindings.set(request, { body, signal, cut: () => void response.destroy() });
    request.url = request.url?.slice(prefix.length) ?? "/";
    cutUnread(response, standardUnreadMs);
    await listener(request, response);
  };
}
