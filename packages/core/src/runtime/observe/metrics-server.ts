/**
 * Serves the metrics at /metrics on the loopback address, for Prometheus, to clients with the
 * token. HTTP loads on first use.
 */
import { RaySystemError } from "../../shared/errors.ts";
import { HttpRefusal } from "../../transport/http/refusal.ts";
import { cutUnread } from "../../transport/http/unread.ts";
import type { HttpEndpoint } from "../../transport/http/endpoint.ts";
import { asError } from "../../shared/errors/thrown.ts";

export interface MetricsServer {
  readonly port: number;
  close(): Promise<void>;
}

const maxConnections = 64;

/** A client that reads nothing of its answer for this long, in ms, has gone. */
const unreadMs = 10_000;

/**
 * Rejects with RaySystemError when it cannot listen there.
 *
 * @param port 0: a free one
 */
export async function serveMetrics(
  port: number,
  token: string,
  text: () => Promise<string>,
): Promise<MetricsServer> {
  const { HttpEndpoint: Endpoint } = await import("../../transport/http/endpoint.ts");
  let endpoint: HttpEndpoint;
  try {
    endpoint = await Endpoint.listen(
      {
        port,
        token,
        tokenHint: "it is metricsToken of the session",
        routes: [{ path: "/metrics", methods: ["GET"] }],
        limits: { maxConnections },
      },
      async ({ response }) => {
        const body = await text().catch((error: unknown) => {
          throw new HttpRefusal(500, "metrics_failed", String(error));
        });
        cutUnread(response, unreadMs);
        response.setHeader("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
        response.end(body);
      },
    );
  } catch (error) {
    throw new RaySystemError(
      `init: the metrics cannot be served on port ${port}: ${asError(error).message}`,
      { cause: error },
    );
  }
  return { port: endpoint.port, close: () => endpoint.close("now") };
}
