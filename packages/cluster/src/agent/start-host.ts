/**
 * Starts one host on an agent's machine, as a driver ordered it, and hears what the host says to
 * its agent: its address, and at its end the cause.
 */
import type { Readable } from "node:stream";
import {
  type Address,
  type CauseData,
  causeFromData,
  type Guard,
  HostProcess,
  type NetworkSettings,
  newToken,
  type PortRange,
  RaySystemError,
  readLines,
} from "@rayling/core/cluster";
import type { DriverCode } from "../code/driver-code.ts";
import type { HostOrder, NodeOffer } from "../contract.ts";

/** The machine, as hosts need it. */
export interface HostMachine {
  readonly guard: Guard;
  readonly host: string;
  /** Ports for hosts; undefined: any. */
  readonly ports: PortRange | undefined;
  readonly network: NetworkSettings;
  readonly spillDirectory: string;
  readonly maxHosts: number;
  readonly objectStoreMemory: number;
  readonly offer: NodeOffer;
  readonly hostCount: () => number;
  /** Starts a host. Default: as a process of this machine. */
  readonly startHost?: (...order: ConstructorParameters<typeof HostProcess>) => AgentHost;
}

/** A host as its agent sees it. */
export type AgentHost = Pick<
  HostProcess,
  "pid" | "exited" | "ready" | "renew" | "dying" | "hearsUntil" | "terminate"
> & {
  /** The stream of the host's messages to its agent. */
  readonly control: Readable;
};

/**
 * Throws RaySystemError where the machine runs as many hosts as it may.
 *
 * @param place where the code of its driver is, if the driver has brought any
 * @param onLine called with each line of its output
 */
export function startHost(
  { identity, runtimeEnv, moduleUrl, ...order }: Omit<HostOrder, "code">,
  place: ReturnType<DriverCode["placeOf"]> | undefined,
  machine: HostMachine,
  onLine: ConstructorParameters<typeof HostProcess>[1]["onLine"],
): { readonly child: AgentHost; readonly address: Promise<Address> } {
  const { guard, host, ports, maxHosts, spillDirectory, objectStoreMemory, network } = machine;
  if (machine.hostCount() >= maxHosts) {
    throw new RaySystemError(
      `node ${machine.offer.nodeName} runs ${maxHosts} hosts, which is its limit`,
    );
  }
  const { startHost: start = (...parts) => new HostProcess(...parts) } = machine;
  const child = start(
    {
      settings: {
        ...identity,
        objectStoreMemory,
        ...order,
        network: { ...network, ...identity.network },
        listenAt: {
          place: { host, port: 0 },
          token: newToken(),
          isSecure: network.credentials !== undefined,
        },
        ...(ports === undefined ? {} : { ports }),
        spillDirectory,
        ...(place === undefined ? {} : { codeRoots: place.roots }),
      },
      runtimeEnv,
      moduleUrl,
      ...(place === undefined ? {} : { codeFolders: place.folders, cwd: place.cwd }),
    },
    { guard, onLine },
  );
  const { address, ended } = hearHost(child);
  child.hearsUntil(ended);
  return { child, address };
}

/**
 * Reads the messages of a host to its agent: first its address, and at its end the cause, if it
 * knows one. The user's code may write there, too.
 */
function hearHost(child: AgentHost): {
  readonly address: Promise<Address>;
  readonly ended: Promise<unknown>;
} {
  const { promise: address, resolve } = Promise.withResolvers<Address>();
  readLines(child.control, (line) => {
    const said = objectIn(line);
    const { dying } = said as { readonly dying?: CauseData };
    if ("place" in said) resolve(said as Address);
    else if (dying !== undefined && saysSo.has(dying.kind)) child.dying(causeFromData(dying));
  });
  return { address, ended: new Promise((done) => child.control.once("close", done)) };
}

/** Causes that a host knows better than its agent. */
const saysSo: ReadonlySet<unknown> = new Set(["uncaught-exception", "unreachable"]);

function objectIn(line: string): object {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}
