/**
 * The machines that `init` names by their addresses.
 *
 * Attempts go on until the session ends, at growing intervals. Nothing here holds the process. An
 * attempt that is under way when the session ends is over within seconds, and its connection is
 * closed.
 */
import { setTimeout as pause } from "node:timers/promises";
import { InvalidOptionError, RaySystemError, SessionEndedError } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import { type JoinedNode, type JoinRequest, nodeConnectors } from "./joined-node.ts";
import type { NodeConnector, NodeRefusal } from "./joined-node.ts";
import type { NodeSource } from "./node-source.ts";

/** The pause before the next attempt, in ms; it doubles up to the longest. */
const pauseMs = { first: 500, longest: 30_000 };

export interface AddressListOptions {
  readonly addresses: readonly string[];
  /** The number that must be reachable at the start. Default: all. */
  readonly minNodes: number | undefined;
  readonly request: JoinRequest;
}

/** @throws InvalidOptionError when it exceeds the number of addresses */
export function checkMinNodes(minNodes: number | undefined, addresses: readonly string[]): void {
  if (minNodes === undefined || minNodes <= addresses.length) return;
  throw new InvalidOptionError(
    "minNodes",
    `option minNodes is ${minNodes}, and nodes names ${addresses.length}`,
  );
}

interface Machine {
  readonly address: string;
  readonly connect: NodeConnector;
}

interface Missing {
  readonly machine: Machine;
  readonly refusal: NodeRefusal;
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

  /**
   * Rejects with the reason of the first that refuses this session, or that cannot be reached if
   * all are required; with RaySystemError when too few are reachable.
   */
  async open(): Promise<void> {
    const { addresses, request } = this.#options;
    if (addresses.length === 0) return;
    const connectorFor = nodeConnectors();
    const machines = await Promise.all(
      addresses.map(async (address) => ({ address, connect: await connectorFor(address) })),
    );
    const missing: Missing[] = [];
    const attempts = machines.map(({ address, connect }) => connect(address, request));
    await Promise.allSettled(attempts);
    for (const [index, machine] of machines.entries()) {
      try {
        const node = await attempts[index];
        if (node !== undefined) await this.#give(machine, node);
      } catch (error) {
        missing.push({ machine, refusal: error as NodeRefusal });
      }
    }
    if (this.#isEnded) throw new SessionEndedError("no node is joined: the session has ended");
    this.#check(missing.map(({ refusal }) => refusal));
    for (const { machine, refusal } of missing) {
      warn(`${refusal.message}; it joins when it can be reached`);
      void this.#again(machine);
    }
  }

  /** @throws why the session cannot begin without these */
  #check(missing: readonly NodeRefusal[]): void {
    const { addresses, minNodes } = this.#options;
    const refused = missing.find(({ mayComeLater }) => mayComeLater !== true);
    if (refused !== undefined) throw refused;
    const [first] = missing;
    if (first === undefined) return;
    if (minNodes === undefined) throw first;
    const joined = addresses.length - missing.length;
    if (joined >= minNodes) return;
    throw new RaySystemError(
      `only ${joined} of ${addresses.length} nodes can be reached, and minNodes is ${minNodes}: ${first.message}`,
      { cause: first },
    );
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

  /** Retries until the machine is a node again. */
  async #again(machine: Machine): Promise<void> {
    const { signal } = this.#ended;
    let reported = "";
    for (let waitMs = pauseMs.first; ; waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      // Random pauses spread the sessions that lost a machine together.
      await pause(waitMs * (0.5 + Math.random() / 2), undefined, { ref: false, signal }).catch(
        () => undefined,
      );
      if (this.#isEnded) return;
      let node: JoinedNode;
      try {
        node = await machine.connect(machine.address, this.#options.request);
      } catch (error) {
        const { message, mayComeLater } = error as NodeRefusal;
        if (mayComeLater !== true && message !== reported && !this.#isEnded) {
          warn(`${message}; the next attempt follows`);
          reported = message;
        }
        continue;
      }
      await this.#give(machine, node);
      if (!this.#isEnded) warn(`node ${node.nodeName} has joined the session`);
      return;
    }
  }
}
