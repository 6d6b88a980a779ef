/**
 * Serves the metrics on the loopback at /metrics, for Prometheus. Owner of node:http, which is loaded only when it is wanted.
 *
 * The loopback is no border: every page that is open in a browser of this machine can send requests there, and can have a name of its own point to it. So
 * whoever asks needs the token, whatever the method, and nothing is said to what a browser sends. It keeps no process alive, and is gone when its session is.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { RaySystemError } from "../shared/errors.ts";

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** A request has so long to be sent. */
const requestMs = 5000;
const maxConnections = 64;

/** @param port 0: a free one. Rejects with RaySystemError when it cannot listen there */
export async function serveMetrics(
  port: number,
  token: string,
  text: () => Promise<string>,
): Promise<MetricsServer> {
  const { createServer } = await import("node:http");
  const times = { headersTimeout: requestMs, requestTimeout: requestMs };
  const server = createServer(times, (request, response) => {
    // A scrape that is over must not hold the socket, and with it the process.
    response.setHeader("Connection", "close");
    if (isOfBrowser(request)) {
      response.writeHead(403).end("not for browsers\n");
      return;
    }
    if (!hasToken(request, token)) {
      response.writeHead(401, { "WWW-Authenticate": "Bearer" });
      response.end("the header Authorization: Bearer <metricsToken> is missing or wrong\n");
      return;
    }
    if (request.url?.split("?")[0] !== "/metrics" || request.method !== "GET") {
      response.writeHead(404).end("the metrics are at /metrics\n");
      return;
    }
    text().then(
      (body) => {
        response.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
        response.end(body);
      },
      (error: unknown) => response.writeHead(500).end(`${String(error)}\n`),
    );
  });
  server.maxConnections = maxConnections;
  server.unref();
  server.listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    throw new RaySystemError(
      `init: the metrics cannot be served on port ${port}: ${(error as Error).message}`,
      { cause: error },
    );
  }
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A page, or a name that somebody has made point here. */
function isOfBrowser({ headers }: IncomingMessage): boolean {
  const name = headers.host?.replace(/:\d+$/, "");
  const isOwnName = name === "127.0.0.1" || name === "localhost";
  return !isOwnName || headers.origin !== undefined || headers["sec-fetch-site"] !== undefined;
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const hash = (text: string): Buffer => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(headers.authorization ?? ""), hash(`Bearer ${token}`));
}
