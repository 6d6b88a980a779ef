/**
 * Hands out resources of the nodes, in order of request; what does not fit waits, and nothing behind it overtakes it unless it fits.
 *
 * A request that no node could ever fit waits too (as in Ray, a node may join), and says so once on the process's warnings.
 */
import { decide, type NodeView, type PlacementRequest } from "./policy.ts";
import { add, type Resources } from "./resources.ts";

/** Resources that are held; release them once, lend them while blocked. */
export interface Allocation {
  readonly nodeId: string;
  release(): void;
  /** Gives the resources back for a while (true) or takes them again (false), beyond the total if need be. */
  lend(lent: boolean): void;
}

interface Waiter {
  readonly request: PlacementRequest;
  readonly label: string;
  readonly resolve: (allocation: Allocation) => void;
  readonly reject: (error: Error) => void;
  warned: boolean;
}

export class Scheduler {
  readonly #nodes: Map<string, NodeView> = new Map();
  #waiters: Waiter[] = [];
  #closed: Error | undefined;

  addNode(nodeId: string, total: Resources): void {
    this.#nodes.set(nodeId, { nodeId, total, available: total });
    this.#serve();
  }

  get nodes(): readonly NodeView[] {
    return [...this.#nodes.values()];
  }

  /** @param label names the requester in the warning about a request that cannot be met */
  acquire(request: PlacementRequest, label: string): Promise<Allocation> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== undefined) return reject(this.#closed);
      this.#waiters.push({ request, label, resolve, reject, warned: false });
      this.#serve();
    });
  }

  /** Nobody waits any longer, nor later. */
  close(error: Error): void {
    this.#closed = error;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }

  #serve(): void {
    const waiting: Waiter[] = [];
    for (const waiter of this.#waiters) {
      const decision = decide(waiter.request, this.nodes);
      if (decision.kind === "place") {
        waiter.resolve(this.#allocate(decision.nodeId, waiter.request.hold));
        continue;
      }
      if (!decision.feasible && !waiter.warned) {
        waiter.warned = true;
        process.emitWarning(
          `${waiter.label} ${decision.reason} and waits until a node has as much`,
          "RaylingWarning",
        );
      }
      waiting.push(waiter);
    }
    this.#waiters = waiting;
  }

  #allocate(nodeId: string, hold: Resources): Allocation {
    let state: "held" | "lent" | "released" = "held";
    this.#change(nodeId, hold, -1);
    return {
      nodeId,
      release: () => {
        if (state === "held") this.#change(nodeId, hold, 1);
        state = "released";
        this.#serve();
      },
      lend: (lent) => {
        if (state === "released" || lent === (state === "lent")) return;
        state = lent ? "lent" : "held";
        this.#change(nodeId, hold, lent ? 1 : -1);
        if (lent) this.#serve();
      },
    };
  }

  #change(nodeId: string, resources: Resources, sign: 1 | -1): void {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return;
    this.#nodes.set(nodeId, { ...node, available: add(node.available, resources, sign) });
  }
}
