/** The ports that hosts of a machine may listen on, where a firewall lets others through to some only: Ray's options, and Ray's names for them. */
import { InvalidOptionError, type PortRange } from "@rayling/core/cluster";

export interface WorkerPortOptions {
  /** The first port that hosts listen on, with `maxWorkerPort`. Default: any that is free. Each host takes one. */
  readonly minWorkerPort?: number;
  /** The last one. */
  readonly maxWorkerPort?: number;
}

/** Undefined: any port. @throws InvalidOptionError for what is no range */
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
