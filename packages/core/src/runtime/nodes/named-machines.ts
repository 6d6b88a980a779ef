/**
 * The machines that `init` names by their addresses: all of them are nodes from the start. One that
 * is lost is tried again, at growing intervals, until the session ends: what waits for it would
 * wait for ever. Nothing here holds the process.
 */
import { SessionEndedError } from "../../shared/errors.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { warn } from "../../shared/text/warning.ts";
import {
  type JoinedNode,
  type JoinRequest,
  type NodeConnector,
  nodeConnectors,
} from "./joined-node.ts";
import type { NodeSource } from "./node-source.ts";
import { pause } from "../../shared/machine/timers.ts";

/** The pause before the next attempt, in ms; it doubles up to the longest. */
const pauseMs = { first: 500, longest: 30_000 };

export interface AddressListOptions {
  readonly addresses: readonly string[];
  readonly request: JoinRequest;
}

interface Machine {
  readonly address: string;
  readonly connect: NodeConnector;
}

export class AddressList implements NodeSource {
  readonly #options: AddressListOptions;
  readonly #ended: AbortController = new AbortController();
  readonly #machines: WeakMap<JoinedNode, Machine> = new WeakMap();
  #onNode: (node: JoinedNode) => void = (node) => void node.close();

  constructor(options: AddressListOptions) {
    this.#options = options;
  }

  onNode(listener: (node: JoinedNode) => void): void {
    this.#onNode = listener;
  }

  /** Rejects with the reason of the first that is not reached, or refuses this session. */
  async open(): Promise<void> {
    const { addresses, request } = this.#options;
    if (addresses.length === 0) return;
    const connectorFor = nodeConnectors();
    const machines = await Promise.all(
      addresses.map(async (address) => ({ address, connect: await connectorFor(address) })),
    );
    const attempts = machines.map(({ connect, address }) => connect(address, request));
    // None is under way any more when the session begins, or does not.
    for (const [index, settled] of (await Promise.allSettled(attempts)).entries()) {
      const machine = machines[index];
      if (machine === undefined || settled.status === "rejected") continue;
      await this.#give(machine, settled.value);
    }
    if (this.#isEnded) throw new SessionEndedError("no node is joined: the session has ended");
    await Promise.all(attempts);
  }

  lost(node: JoinedNode): boolean {
    const machine = this.#machines.get(node);
    if (machine === undefined || this.#isEnded) return false;
    void this.#again(machine);
    return true;
  }

  close(): void {
    this.#ended.abort();
  }

  get #isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  async #give(machine: Machine, node: JoinedNode): Promise<void> {
    if (this.#isEnded) return node.close();
    this.#machines.set(node, machine);
    this.#onNode(node);
  }

  async #again(machine: Machine): Promise<void> {
    const { signal } = this.#ended;
    let reported = "";
    for (let waitMs = pauseMs.first; ; waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      // Random pauses spread the sessions that lost a machine together.
      await pause(waitMs * (0.5 + Math.random() / 2), { ref: false, signal });
      if (this.#isEnded) return;
      try {
        const node = await machine.connect(machine.address, this.#options.request);
        await this.#give(machine, node);
        if (!this.#isEnded) warn(`node ${node.nodeName} has joined the session`);
        return;
      } catch (error) {
        const { message } = asError(error);
        if (message !== reported && !this.#isEnded) warn(`${message}; it is tried again`);
        reported = message;
      }
    }
  }
}
