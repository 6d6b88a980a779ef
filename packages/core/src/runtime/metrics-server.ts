/**
 * Serves the metrics on the loopback at /metrics, for Prometheus. Owner of node:http, which is loaded only when it is wanted.
 *
 * It keeps no process alive, and is gone when its session is.
 */
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { RaySystemError } from "../shared/errors.ts";

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

/** @param port 0: a free one. Rejects with RaySystemError when it cannot listen there */
export async function serveMetrics(
  port: number,
  text: () => Promise<string>,
): Promise<MetricsServer> {
  const { createServer } = await import("node:http");
  const server = createServer((request, response) => {
    // A scrape that is over must not hold the socket, and with it the process.
    response.setHeader("Connection", "close");
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
