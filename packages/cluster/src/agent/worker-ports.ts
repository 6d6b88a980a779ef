/**
 * The ports that hosts of a machine may listen on, if a firewall opens only some: Ray's options,
 * with Ray's names.
 */
import { InvalidOptionError, type PortRange } from "@rayling/core/cluster";

export interface WorkerPortOptions {
  /**
   * The first port for hosts, together with `maxWorkerPort`. Default: any free port. Each host
   * takes one.
   */
  readonly minWorkerPort?: number;
  /** The last port for hosts. */
  readonly maxWorkerPort?: number;
}

/**
 * Returns undefined for any port.
 *
 * @throws InvalidOptionError for an invalid range
 */
export function workerPorts({
  minWorkerPort: first,
  maxWorkerPort: last,
}: WorkerPortOptions): PortRange | undefined {
  if (first === undefined && last === undefined) return undefined;
  for (const [option, port] of [
    ["minWorkerPort", first],
    ["maxWorkerPort", last],
  ] as const) {
    if (port !== undefined && Number.isInteger(port) && port >= 1 && port <= 65_535) continue;
    throw new InvalidOptionError(
      option,
      `option ${option} must be a port from 1 to 65535 where minWorkerPort or maxWorkerPort is given, not ${String(port)}`,
    );
  }
  const range = { first: first as number, last: last as number };
  if (range.first <= range.last) return range;
  throw new InvalidOptionError(
    "maxWorkerPort",
    `option maxWorkerPort must be at least minWorkerPort, ${range.first}, not ${range.last}`,
  );
}
