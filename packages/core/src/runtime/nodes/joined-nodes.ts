/**
 * Machines of a source as nodes of the session: each is one while it can be reached, and becomes a
 * new node when the source gives it again. A node that the session itself removed stays removed.
 */
import { warn } from "../../shared/text/warning.ts";
import type { LocalCluster } from "../cluster.ts";
import type { Launcher } from "../launch/launcher.ts";
import type { JoinedNode } from "./joined-node.ts";
import type { NodeSource } from "./node-source.ts";

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

  /** Resolves when the required machines are nodes. Rejects with why they are not. */
  join(): Promise<void> {
    return this.#parts.source.open();
  }

  /** Takes no further machine. */
  close(): void {
    this.#isEnded = true;
    this.#parts.source.close();
  }

  #enter(node: JoinedNode): void {
    const { cluster, launcher, source } = this.#parts;
    const { nodeId } = cluster.addNode(node);
    launcher.addNode(nodeId, node);
    void node.lost.then(async ({ message }) => {
      const isDraining = cluster.isDraining(nodeId);
      const reason = `is lost: ${message}`;
      const isLost = await cluster.removeNode(nodeId, reason);
      // The session has removed the node, or is about to.
      if (!isLost || isDraining || this.#isEnded) return;
      const isBack = source.lost(node) ? "; it joins again when it can be reached" : "";
      warn(`node ${node.nodeName} ${reason}${isBack}`);
    });
  }
}
