/**
 * One driver's hosts and code on an agent's machine. The session lives as long as the link to that
 * driver.
 */
import type { Readable } from "node:stream";
import { expose, type Remote, wrap } from "comlink";
import {
  type Address,
  type CauseData,
  causeFromData,
  causeToData,
  channelEndpoint,
  type Credentials,
  type DeathCause,
  type Guard,
  HostProcess,
  type Link,
  type NetworkSettings,
  newToken,
  type PortRange,
  RaySystemError,
  readLines,
} from "@rayling/core/cluster";
import type { CodeCache } from "../code/code-cache.ts";
import { DriverCode } from "../code/driver-code.ts";
import type {
  AgentControl,
  DriverAnswers,
  HostOrder,
  NodeOffer,
  StartedHost,
} from "../contract.ts";
import { HostOutput } from "./host-output.ts";

/** The shared parts of an agent's sessions. */
export interface Machine {
  readonly guard: Guard;
  readonly host: string;
  /** Ports for hosts; undefined: any. */
  readonly ports: PortRange | undefined;
  readonly tell: (line: string) => void;
  readonly codeCache: CodeCache;
  readonly network: NetworkSettings;
  readonly spillDirectory: string;
  readonly maxHosts: number;
  readonly objectStoreMemory: number;
  readonly offer: NodeOffer;
  readonly hostCount: () => number;
  /** Starts a host. Default: as a process of this machine. */
  readonly startHost?: (...order: ConstructorParameters<typeof HostProcess>) => AgentHost;
  readonly isDraining: () => boolean;
  /** Ends other sessions of this driver here. */
  readonly endOthers: (session: DriverSession) => void;
}

/** A host as its agent sees it. */
export type AgentHost = Pick<
  HostProcess,
  "pid" | "exited" | "ready" | "renew" | "dying" | "hearsUntil" | "terminate"
> & {
  /** The stream of the host's messages to its agent. */
  readonly control: Readable;
};

/** One driver's hosts and code on this machine. */
export class DriverSession {
  readonly peerId: string;
  readonly link: Link;
  readonly #machine: Machine;
  readonly #driver: Remote<DriverAnswers>;
  readonly #hosts: Map<string, AgentHost> = new Map();
  readonly #code: DriverCode;
  readonly #output: HostOutput = new HostOutput((lines) => this.#driver.wrote(lines));
  #onHostGone: () => void = () => undefined;
  #hasTakenOver = false;

  constructor(peerId: string, link: Link, machine: Machine) {
    this.peerId = peerId;
    this.link = link;
    this.#machine = machine;
    this.#code = new DriverCode(machine.codeCache, machine.tell);
    const code = this.#code;
    const endpoint = channelEndpoint(link);
    this.#driver = wrap<DriverAnswers>(endpoint);
    const control: AgentControl = {
      describe: () => {
        if (!machine.isDraining()) return machine.offer;
        throw new RaySystemError(
          `node ${machine.offer.nodeName} is being drained and takes no more drivers`,
        );
      },
      takeOver: () => {
        this.#hasTakenOver = true;
        machine.endOthers(this);
      },
      ping: () => undefined,
      launch: (order) => this.#launch(order),
      terminate: (hostId) =>
        void this.#hosts.get(hostId)?.terminate({ kind: "killed", message: "its driver ended it" }),
      hasCode: (id) => code.hasCode(id),
      openCode: (id) => code.openCode(id),
      writeCode: (id, portion) => code.writeCode(id, portion),
      closeCode: (id) => code.closeCode(id),
      dropCode: (id) => code.dropCode(id),
    };
    expose(control, endpoint);
  }

  renew(credentials: Credentials): void {
    for (const host of this.#hosts.values()) host.renew(credentials);
  }

  get hostCount(): number {
    return this.#hosts.size;
  }

  /** Whether its driver uses this machine as a node through it, or runs something here. */
  get isNode(): boolean {
    return this.#hasTakenOver || this.#hosts.size > 0;
  }

  /**
   * Resolves when its driver orders no more hosts and has none here, when the driver is gone, or
   * when the time is over.
   */
  async drain(timeoutMs: number, late: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.link.closed.then(() => resolve());
    late.addEventListener("abort", () => resolve());
    const look = (): void => void (this.#hosts.size === 0 && resolve());
    this.#driver.draining(timeoutMs).then(
      () => {
        this.#onHostGone = look;
        look();
      },
      // The driver cannot be reached; its hosts still have the time.
      () => undefined,
    );
    await promise;
  }

  async end(cause: DeathCause): Promise<void> {
    // The link closes first: its driver must not start the ended hosts here again.
    this.link.close(cause);
    await Promise.all([...this.#hosts.values()].map((host) => host.terminate(cause)));
    await this.#code.end();
  }

  async #launch(wish: HostOrder): Promise<StartedHost> {
    const { identity, runtimeEnv, moduleUrl, code, ...order } = wish;
    const { guard, host, ports, maxHosts, hostCount, spillDirectory, objectStoreMemory, network } =
      this.#machine;
    if (hostCount() >= maxHosts) {
      throw new RaySystemError(
        `node ${this.#machine.offer.nodeName} runs ${maxHosts} hosts, which is its limit`,
      );
    }
    const { hostId } = identity;
    if (this.#hosts.has(hostId)) throw new RaySystemError(`host ${hostId} runs already`);
    const place = code === undefined ? undefined : this.#code.placeOf(code);
    const { startHost = (...parts) => new HostProcess(...parts) } = this.#machine;
    const child = startHost(
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
      {
        guard,
        onLine: (stream, owner, line) => {
          if (this.link.isOpen) this.#output.add(hostId, stream, owner, line);
        },
      },
    );
    this.#hosts.set(hostId, child);
    const { address, ended } = hearHost(child);
    child.hearsUntil(ended);
    const exited = child.exited.then((cause) => {
      this.#hosts.delete(hostId);
      this.#onHostGone();
      if (this.link.isOpen) {
        this.#output.hostEnded(hostId);
        void this.#driver.exited(hostId, causeToData(cause));
      }
      return Promise.reject(new RaySystemError(cause.message));
    });
    exited.catch(() => undefined);
    const started = { address: await Promise.race([address, exited]), pid: child.pid };
    child.ready();
    return started;
  }
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
