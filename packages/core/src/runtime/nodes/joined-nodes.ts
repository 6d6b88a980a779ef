/**
 * The machines that `init` names: each is a node of the session for as long as it can be reached, and a new one when it can be reached again.
 *
 * It tries until the session ends, less and less often; a node that the session itself has left stays left. Nothing here holds the process. An attempt that
 * is on its way when the session ends is over within seconds, and what it brings is closed.
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

/** Before the next attempt; doubles up to the longest. */
const pauseMs = { first: 500, longest: 30_000 };

export interface JoinedNodesParts {
  /** Those of other machines. */
  readonly addresses: readonly string[];
  /** So many must be there at the start. Default: all. */
  readonly minNodes: number | undefined;
  readonly request: JoinRequest;
  readonly cluster: LocalCluster;
  readonly launcher: Launcher;
}

/** @throws InvalidOptionError when more must be there than are named */
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
   * Resolves when those that must be there are nodes. Rejects with the reason of the first that refuses us, or that cannot be reached if all must be there;
   * with RaySystemError when fewer are there than must be.
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
        `only ${joined} of ${addresses.length} nodes are there, and minNodes is ${minNodes}: ${first.refusal.message}`,
        { cause: first.refusal },
      );
    }
    for (const one of missing) {
      warn(`${one.refusal.message}; it is a node when it can be reached`);
      void this.#again(one.address, connect);
    }
  }

  /** Nobody is joined any more. */
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
      // The session has left it, or is about to.
      if (!isLost || isDraining !== isToLeave || this.#isEnded) return;
      warn(`node ${node.nodeName} ${reason}; it is a node again when it can be reached`);
      await this.#again(address, connect);
    });
  }

  /** Until it is there. */
  async #again(address: string, connect: NodeConnector): Promise<void> {
    const { request } = this.#parts;
    const { signal } = this.#ended;
    let told = "";
    for (let waitMs = pauseMs.first; ; waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      // Not the same for all who lost the same machine.
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
          warn(`${message}; it is tried again`);
          told = message;
        }
        continue;
      }
      await this.#enter(address, node, connect);
      if (!this.#isEnded) warn(`node ${node.nodeName} is there, and is a node of the session`);
      return;
    }
  }
}
