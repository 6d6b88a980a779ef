/**
 * The machines that `init` names: each is a node of the session while it can be reached, and
 * becomes a new node when it can be reached again.
 *
 * Attempts go on until the session ends, at growing intervals; a node that the session itself
 * removed stays removed. Nothing here holds the process. An attempt that is under way when the
 * session ends is over within seconds, and its connection is closed.
 */
import { setTimeout as pause } from "node:timers/promises";
import { InvalidOptionError, RaySystemError, SessionEndedError } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import type { LocalCluster } from "../cluster.ts";
import {
  type JoinedNode,
  type JoinRequest,
  type NodeConnector,
  nodeConnector,
  type NodeRefusal,
} from "./joined-node.ts";
import type { Launcher } from "../launch/launcher.ts";

/** The pause before the next attempt, in ms; it doubles up to the longest. */
const pauseMs = { first: 500, longest: 30_000 };

export interface JoinedNodesParts {
  /** Addresses of other machines. */
  readonly addresses: readonly string[];
  /** The number that must be reachable at the start. Default: all. */
  readonly minNodes: number | undefined;
  readonly request: JoinRequest;
  readonly cluster: LocalCluster;
  readonly launcher: Launcher;
}

/** @throws InvalidOptionError when it exceeds the number of addresses */
export function checkMinNodes(minNodes: number | undefined, addresses: readonly string[]): void {
  if (minNodes === undefined || minNodes <= addresses.length) return;
  throw new InvalidOptionError(
    "minNodes",
    `option minNodes is ${minNodes}, and nodes names ${addresses.length}`,
  );
}

export class JoinedNodes {
  readonly #parts: JoinedNodesParts;
  readonly #ended: AbortController = new AbortController();

  constructor(parts: JoinedNodesParts) {
    this.#parts = parts;
  }

  /**
   * Resolves when the required machines are nodes. Rejects with the reason of the first that
   * refuses this session, or that cannot be reached if all are required; with RaySystemError when
   * too few are reachable.
   */
  async join(): Promise<void> {
    const { addresses, minNodes, request } = this.#parts;
    if (addresses.length === 0) return;
    const connect = await nodeConnector();
    const outcomes = await Promise.allSettled(
      addresses.map((address) => connect(address, request)),
    );
    const missing: { readonly address: string; readonly refusal: NodeRefusal }[] = [];
    for (const [index, outcome] of outcomes.entries()) {
      const address = addresses[index] as string;
      if (outcome.status === "fulfilled") await this.#enter(address, outcome.value, connect);
      else missing.push({ address, refusal: outcome.reason as NodeRefusal });
    }
    if (this.#isEnded) throw new SessionEndedError("no node is joined: the session has ended");
    const refusal = missing.find((one) => one.refusal.mayComeLater !== true)?.refusal;
    if (refusal !== undefined) throw refusal;
    const [first] = missing;
    if (first === undefined) return;
    if (minNodes === undefined) throw first.refusal;
    const joined = addresses.length - missing.length;
    if (joined < minNodes) {
      throw new RaySystemError(
        `only ${joined} of ${addresses.length} nodes can be reached, and minNodes is ${minNodes}: ${first.refusal.message}`,
        { cause: first.refusal },
      );
    }
    for (const one of missing) {
      warn(`${one.refusal.message}; it joins when it can be reached`);
      void this.#again(one.address, connect);
    }
  }

  /** Stops all attempts. */
  close(): void {
    this.#ended.abort();
  }

  get #isEnded(): boolean {
    return this.#ended.signal.aborted;
  }

  async #enter(address: string, node: JoinedNode, connect: NodeConnector): Promise<void> {
    if (this.#isEnded) return node.close();
    const { cluster, launcher } = this.#parts;
    const { nodeId } = cluster.addNode(node);
    let isToLeave = false;
    launcher.addNode(nodeId, node);
    node.onDrain((timeoutMs) => {
      if (!cluster.closeNode(nodeId)) return;
      isToLeave = true;
      void cluster.emptyNode(nodeId, timeoutMs, false);
    });
    void node.lost.then(async ({ message }) => {
      const isDraining = cluster.isDraining(nodeId);
      const reason = isDraining ? "was drained" : `is lost: ${message}`;
      const isLost = await cluster.removeNode(nodeId, reason);
      // The session has removed the node, or is about to.
      if (!isLost || isDraining !== isToLeave || this.#isEnded) return;
      warn(`node ${node.nodeName} ${reason}; it joins again when it can be reached`);
      await this.#again(address, connect);
    });
  }

  /** Retries until the machine is a node again. */
  async #again(address: string, connect: NodeConnector): Promise<void> {
    const { request } = this.#parts;
    const { signal } = this.#ended;
    let told = "";
    for (let waitMs = pauseMs.first; ; waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      // Random pauses spread the sessions that lost a machine together.
      await pause(waitMs * (0.5 + Math.random() / 2), undefined, { ref: false, signal }).catch(
        () => undefined,
      );
      if (this.#isEnded) return;
      let node: JoinedNode;
      try {
        node = await connect(address, request);
      } catch (error) {
        const { message, mayComeLater } = error as NodeRefusal;
        if (mayComeLater !== true && message !== told && !this.#isEnded) {
          warn(`${message}; the next attempt follows`);
          told = message;
        }
        continue;
      }
      await this.#enter(address, node, connect);
      if (!this.#isEnded) warn(`node ${node.nodeName} has joined the session`);
      return;
    }
  }
}
