/** Messages of a gateway (`python/src/rayling/on_ray/serving.py`), one JSON text in each line. */

/** Changes with the messages. */
export const protocolVersion = 1;

/** The longest request, in bytes of its line: `_LONGEST_LINE` of the gateway. */
export const longestRequest: number = 2 ** 26;

/** The longest answer or event, in bytes of its line: V8 has no text of more than 2^29. */
export const longestAnswer: number = 2 ** 28;

/** Begins the line in the job's log that says where the gateway listens. */
export const announcement = "RAYLING_GATEWAY ";

/** Where a gateway listens. */
export interface Announced {
  readonly protocol: number;
  /** The address of its machine in the cluster. */
  readonly host: string;
  /** The unix socket where it listens, for a driver on a machine of the cluster. */
  readonly path?: string;
  /** The port where it listens, if it has no unix socket. */
  readonly port?: number;
  /** The SHA-256 fingerprint of its certificate; without one only its own machine reaches it. */
  readonly fingerprint?: string;
}

/** A node of Ray. */
export interface RayNode {
  readonly id: string;
  readonly alive: boolean;
  readonly name: string;
  readonly hostname: string;
  readonly address: string;
  readonly resources: Readonly<Record<string, number>>;
  readonly available: Readonly<Record<string, number>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly deathReason: string;
}

/** News of the cluster. */
export type GatewayEvent =
  | { readonly event: "welcome"; readonly protocol: number; readonly ray: string }
  | { readonly event: "nodes"; readonly nodes: readonly RayNode[] }
  | { readonly event: "node-gone"; readonly node: string; readonly reason: string }
  | { readonly event: "group-placed"; readonly group: string; readonly nodes: readonly string[] }
  | { readonly event: "agent-gone"; readonly node: string; readonly reason: string };

/** The answer to a request. */
export interface GatewayAnswer {
  readonly id: number;
  readonly ok?: unknown;
  readonly error?: { readonly type: string; readonly message: string };
}

export type FromGateway = GatewayEvent | GatewayAnswer;
