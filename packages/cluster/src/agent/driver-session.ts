/**
 * One driver's hosts and code on an agent's machine (start-host.ts starts a host). The session
 * lives as long as the link to that driver.
 */
import { expose, type Remote, wrap } from "comlink";
import {
  asError,
  causeToData,
  channelEndpoint,
  type Credentials,
  type DeathCause,
  type Link,
  RaySystemError,
  removeFilesOf,
} from "@rayling/core/cluster";
import type { CodeCache } from "../code/code-cache.ts";
import { DriverCode } from "../code/driver-code.ts";
import type {
  AgentControl,
  CodeMissing,
  DriverAnswers,
  HostOrder,
  StartedHost,
} from "../contract.ts";
import { HostOutput } from "./host-output.ts";
import { type AgentHost, type HostMachine, startHost } from "./start-host.ts";

/** The shared parts of an agent's sessions. */
export interface Machine extends HostMachine {
  readonly tell: (line: string) => void;
  readonly codeCache: CodeCache;
  /** Ends other sessions of this driver here. */
  readonly endOthers: (session: DriverSession) => void;
}

/** One driver's hosts and code on this machine. */
export class DriverSession {
  readonly peerId: string;
  readonly link: Link;
  readonly #machine: Machine;
  readonly #driver: Remote<DriverAnswers>;
  readonly #hosts: Map<string, AgentHost> = new Map();
  readonly #code: DriverCode;
  readonly #output: HostOutput = new HostOutput((lines) => this.#driver.wrote(lines));
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
      describe: () => machine.offer,
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

  async end(cause: DeathCause): Promise<void> {
    // The link closes first: its driver must not start the ended hosts here again.
    this.link.close(cause);
    await Promise.all([...this.#hosts.values()].map((host) => host.terminate(cause)));
    await this.#code.end();
  }

  async #launch({ code, ...order }: HostOrder): Promise<StartedHost | CodeMissing> {
    const { hostId } = order.identity;
    if (this.#hosts.has(hostId)) throw new RaySystemError(`host ${hostId} runs already`);
    const place = code === undefined ? undefined : this.#code.placeOf(code);
    if (code !== undefined && place === undefined) return { missing: "code" };
    const { child, address } = startHost(order, place, this.#machine, (stream, owner, line) => {
      if (this.link.isOpen) this.#output.add(hostId, stream, owner, line);
    });
    this.#hosts.set(hostId, child);
    const exited = child.exited.then((cause) => {
      this.#hosts.delete(hostId);
      void this.#removeFilesOf(hostId);
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

  /** Removes the spilled values of a host that has ended: the agent may live for months. */
  async #removeFilesOf(hostId: string): Promise<void> {
    const { spillDirectory, tell } = this.#machine;
    await removeFilesOf(hostId, spillDirectory).catch((error: unknown) => {
      tell(`spilled values of ${hostId} stay: ${asError(error).message}`);
    });
  }
}
