/** A reservation in use, which its holder may lend while it is blocked. */
import type { Allocation } from "../../placement/placement.ts";
import { type Demand, makeDemand } from "../../rpc/resource-demand.ts";
import type { NodeLife } from "./engine-nodes.ts";
import type { AskedLease, Lease } from "./reservation-line.ts";

/** Takes reservations back, and makes others. */
export interface LeaseHolder {
  readonly give: (lease: Lease, demand: Demand) => void;
  /** Returns a kept reservation of that demand on that machine. */
  readonly reclaim: (engineNode: string, demand: Demand) => Lease | undefined;
  readonly reserve: (demand: Demand) => AskedLease;
  readonly release: (reservationId: string) => void;
}

export class HeldLease implements Allocation {
  readonly nodeId: string;
  readonly env: Readonly<Record<string, string>> | undefined;
  readonly isDrained = false;
  readonly #life: NodeLife;
  readonly #demand: Demand;
  readonly #holder: LeaseHolder;
  /** Undefined while it is lent. */
  #lease: Lease | undefined;
  /** The reservation that is to replace a lent one. */
  #asked: string | undefined;
  #isReleased = false;

  constructor(lease: Lease, life: NodeLife, demand: Demand, holder: LeaseHolder) {
    this.nodeId = lease.engineNode;
    this.env = lease.env;
    this.#lease = lease;
    this.#life = life;
    this.#demand = demand;
    this.#holder = holder;
  }

  get isLost(): boolean {
    return this.#lease?.isLost === true || this.#life.isOver;
  }

  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#giveBack();
  }

  /**
   * Gives all back or takes it again. A reservation cannot be split, so one of more than CPUs stays
   * as it is: others must not get a GPU that is in use.
   */
  lend(lent: boolean): void {
    const holdsMore = Object.entries(this.#demand.hold).some(
      ([name, amount]) => name !== "CPU" && amount > 0,
    );
    if (this.#isReleased || holdsMore) return;
    if (lent) return this.#giveBack();
    if (this.#lease !== undefined || this.#asked !== undefined) return;
    this.#lease = this.#holder.reclaim(this.nodeId, this.#demand);
    if (this.#lease === undefined) this.#askAgain();
  }

  #giveBack(): void {
    if (this.#asked !== undefined) this.#holder.release(this.#asked);
    this.#asked = undefined;
    const lease = this.#lease;
    this.#lease = undefined;
    if (lease !== undefined) this.#holder.give(lease, this.#demand);
  }

  /** The work goes on meanwhile, beyond what is reserved. */
  #askAgain(): void {
    const { place, hold } = this.#demand;
    const there = { kind: "NODE_AFFINITY", nodeId: this.nodeId, soft: false } as const;
    const { id, lease } = this.#holder.reserve(makeDemand(place, hold, there));
    this.#asked = id;
    lease.then(
      (answer) => {
        // Released meanwhile.
        if (this.#asked !== id) return;
        this.#asked = undefined;
        if (answer !== undefined && "id" in answer) this.#lease = answer;
      },
      // The engine is lost, and the session with it.
      () => undefined,
    );
  }
}
