/**
 * Machines of a source as nodes of the session: each is one while it can be reached, and becomes a
 * new node when the source gives it again. A node that the session itself removed stays removed.
 */
import { warn } from "../../shared/text/warning.ts";
import type { LocalCluster } from "../cluster.ts";
import type { Launcher } from "../launch/launcher.ts";
import { present } from "../../shared/errors/internal.ts";

/** The pause before the next attempt, in ms; it doubles up to the longest. */
const pauseMs = { first: 500, longest: 30_000 };

export interface JoinedNodesParts {
  readonly source: NodeSource;
  readonly cluster: LocalCluster;
  readonly launcher: Launcher;
}

export class JoinedNodes {
  readonly #parts: JoinedNodesParts;
  #isEnded = false;

  constructor(parts: JoinedNodesParts) {
    this.#parts = parts;
    parts.source.onNode((node) => this.#enter(node));
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
      const address = present(addresses[index], "address");
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

  /** Takes no further machine. */
  close(): void {
    this.#isEnded = true;
    this.#parts.source.close();
  }

  #enter(node: JoinedNode): void {
    const { cluster, launcher, source } = this.#parts;
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
      const isBack = source.lost(node) ? "; it joins again when it can be reached" : "";
      warn(`node ${node.nodeName} ${reason}${isBack}`);
    });
  }
}
