/**
 * Endpoints of a driver for others than its own code: the metrics and the live page, each when
 * `init` asks for it. They close with the session.
 */
import { checkedQuery } from "../rpc/state-query.ts";
import type { LocalDirectory } from "./directory.ts";
import {
  type Dashboard,
  type DashboardOptions,
  dashboardServer,
  type DashboardSession,
  setDashboardServed,
} from "./observe/dashboard.ts";
import type { HostLogs } from "./observe/host-logs.ts";
import type { Inspector } from "./observe/inspector.ts";
import { type MetricsServer, serveMetrics } from "./observe/metrics-server.ts";

export interface EndpointParts {
  readonly inspector: Inspector;
  readonly logs: HostLogs;
  readonly directory: LocalDirectory;
}

export class DriverEndpoints {
  readonly #parts: EndpointParts;
  #metrics: MetricsServer | undefined;
  #dashboard: Dashboard | undefined;

  constructor(parts: EndpointParts) {
    this.#parts = parts;
  }

  /**
   * Serves the metrics to clients with the token. Resolves with the port. Rejects with
   * RaySystemError when it cannot listen there.
   */
  async serveMetrics(port: number, token: string): Promise<number> {
    const { inspector } = this.#parts;
    this.#metrics = await serveMetrics(port, token, () => inspector.metricsText());
    return this.#metrics.port;
  }

  /**
   * Serves the live page and shows its link to the person. Resolves with the link. Rejects with
   * InvalidOptionError without a server, and with RaySystemError when it cannot listen there.
   */
  async serveDashboard(options: DashboardOptions): Promise<string> {
    const serve = await dashboardServer();
    this.#dashboard = await serve(sessionOf(this.#parts), options);
    setDashboardServed(true);
    // A line of its own is short enough for 80 columns: a terminal makes it a link.
    this.#parts.logs.tell("dashboard, for a browser on this machine:");
    this.#parts.logs.tell(this.#dashboard.url);
    return this.#dashboard.url;
  }

  async close(): Promise<void> {
    await this.#metrics?.close();
    if (this.#dashboard === undefined) return;
    setDashboardServed(false);
    await this.#dashboard.close();
  }
}

function sessionOf({ inspector, logs, directory }: EndpointParts): DashboardSession {
  return {
    status: () => inspector.status(),
    list: (what, options) => inspector.state(checkedQuery(what, "list", options)),
    summarize: (what, options) => inspector.summarize(what, options),
    memory: (options) => inspector.memory(options),
    logs: (from) => logs.lines?.from(from),
    killActor: async (actorId) => {
      await killActor(directory, actorId, "the dashboard");
    },
  };
}

/**
 * Kills an actor for good. Resolves, when it is dead, with whether there was one of that id.
 *
 * @param from what asked for it, for its cause of death
 */
export async function killActor(
  directory: LocalDirectory,
  actorId: string,
  from: string,
): Promise<boolean> {
  const actor = directory.actors().find(({ spec }) => spec.info.actorId === actorId);
  await actor?.kill({ kind: "killed", message: `it was killed from ${from}` }, true);
  return actor !== undefined;
}
