/**
 * The nodes that take requests, in the order in which they joined, as the policies look at them.
 *
 * Every request looks at all nodes, and the set of nodes changes rarely: the lists are kept until
 * it does. What they show of a node is its own, current state.
 */
import type { NodeRoom } from "./group-policy.ts";
import type { Pool } from "./resource-pool.ts";

export class NodePools {
  readonly #byId: Map<string, Pool> = new Map();
  #list: readonly Pool[] | undefined;
  readonly #rooms: Map<"available" | "total", readonly NodeRoom[]> = new Map();

  get(nodeId: string): Pool | undefined {
    return this.#byId.get(nodeId);
  }

  add(node: Pool): void {
    this.#byId.set(node.nodeId, node);
    this.#changed();
  }

  delete(nodeId: string): void {
    this.#byId.delete(nodeId);
    this.#changed();
  }

  get list(): readonly Pool[] {
    return (this.#list ??= [...this.#byId.values()]);
  }

  /** Returns the rooms for a group without bundles on any node. */
  rooms(measure: "available" | "total"): readonly NodeRoom[] {
    let rooms = this.#rooms.get(measure);
    if (rooms !== undefined) return rooms;
    rooms = this.list.map((node) => ({
      nodeId: node.nodeId,
      labels: node.labels,
      room: node[measure],
      bundlesHere: 0,
    }));
    this.#rooms.set(measure, rooms);
    return rooms;
  }

  #changed(): void {
    this.#list = undefined;
    this.#rooms.clear();
  }
}
