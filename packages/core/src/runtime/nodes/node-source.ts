/** Where the machines of a session come from, besides the driver's own. */
import type { JoinedNode } from "./joined-node.ts";

export interface NodeSource {
  /** Sets who gets each machine as soon as it can be a node. Called once, before `open`. */
  onNode(listener: (node: JoinedNode) => void): void;
  /**
   * Resolves when the machines that the session cannot do without were given to the listener.
   * Rejects with why they were not.
   */
  open(): Promise<void>;
  /**
   * The session has lost that machine, and has not given it up itself.
   *
   * @returns whether it will be given to the listener again when it can be a node
   */
  lost(node: JoinedNode): boolean;
  /** Gives no further machine. */
  close(): void;
}
