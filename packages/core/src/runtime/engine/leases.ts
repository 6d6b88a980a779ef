/**
 * Requests of a session outside placement groups: each gets a reservation of the engine, on a
 * machine that is a node of the session by then.
 */
import type { Outcome, ResourceRequest } from "../../placement/placement.ts";
import type { PendingLine, PendingRequest } from "../../placement/request-queues.ts";
import { covers, toUnits } from "../../placement/resources.ts";
import type { NodeInfo } from "../../rpc/cluster-directory.ts";
import type { Amounts, Demand } from "../../rpc/resource-demand.ts";
import { clockMs } from "../../shared/clock.ts";
import { newId } from "../../shared/ids.ts";
import { warn } from "../../shared/text/warning.ts";
import type { OpenEngine } from "./engine.ts";
import type { NodeLife } from "./engine-nodes.ts";
import { HeldLease, type LeaseHolder } from "./held-lease.ts";
import {
  type AskedLease,
  type Lease,
  ReservationLine,
  type LeaseWaiter,
} from "./reservation-line.ts";

/** The parts of a session that its leases need. */
export interface LeasesParts {
  /** Opens the engine, once. */
  readonly open: () => Promise<OpenEngine>;
  /**
   * Makes the machine a node, for as long as `isWanted` says so. Resolves with undefined when it is
   * not wanted any more, or gone. Rejects when the session is over.
   */
  readonly ensure: (engineNode: string, isWanted: () => boolean) => Promise<NodeLife | undefined>;
  /** Returns the machines as the engine shows them. */
  readonly machines: () => readonly NodeInfo[];
}

/** A request for resources, until it is settled. */
interface Waiting extends LeaseWaiter {
  readonly demand: Demand;
  readonly settle: (outcome: Outcome) => void;
  isOver: boolean;
  /** Takes it out of its line. */
  leave: () => boolean;
}

export class Leases {
  readonly #parts: LeasesParts;
  readonly #lines: Map<string, ReservationLine> = new Map();
  /** All reservations, by their ids. */
  readonly #leases: Map<string, Lease> = new Map();
  /** Demands that no machine could hold, and that a warning has named. */
  readonly #reported: Set<string> = new Set();

  constructor(parts: LeasesParts) {
    this.#parts = parts;
  }

  request(demand: Demand, label: string): ResourceRequest {
    const { promise: outcome, resolve, reject } = Promise.withResolvers<Outcome>();
    const waiter: Waiting = {
      label,
      demand,
      sinceMs: clockMs(),
      isOver: false,
      leave: () => false,
      settle: resolve,
      take: (lease) => void this.#use(lease, waiter),
      refuse: (reason) => resolve({ kind: "refused", refusal: "unschedulable", reason }),
      fail: reject,
    };
    const over = (): void => void (waiter.isOver = true);
    outcome.then(over, over);
    this.#enter(waiter);
    this.#warnOfLack(demand, label);
    return {
      outcome,
      withdraw: () => {
        over();
        waiter.leave();
        resolve({ kind: "withdrawn" });
      },
      get reason() {
        return waiter.isOver ? undefined : reasonOf(demand);
      },
    };
  }

  pending(): readonly PendingRequest[] {
    return [...this.#lines.values()].flatMap(({ demand, waiting }) =>
      Array.from(waiting.entries(), ([, waiter]) => this.#row(demand, waiter)),
    );
  }

  pendingLines(): readonly PendingLine[] {
    return [...this.#lines.values()].flatMap(({ demand, waiting }) => {
      const first = waiting.peek();
      return first === undefined ? [] : [{ ...this.#row(demand, first), size: waiting.size }];
    });
  }

  whyWaiting(demand: Demand): string | undefined {
    const isWaiting = (this.#lines.get(demand.key)?.waiting.size ?? 0) > 0;
    return isWaiting ? reasonOf(demand) : undefined;
  }

  /** The machine is gone, with all that was reserved there. */
  loseNode(engineNode: string): void {
    for (const lease of this.#leases.values()) {
      if (lease.engineNode === engineNode) lease.isLost = true;
    }
    for (const line of this.#lines.values()) line.dropLost();
  }

  release(id: string): void {
    this.#leases.delete(id);
    // Before the engine is open it has nothing to give back.
    this.#parts.open().then(
      (engine) => engine.release(id),
      () => undefined,
    );
  }

  close(error: Error): void {
    for (const line of this.#lines.values()) line.close(error);
  }

  #enter(waiter: Waiting): void {
    waiter.leave = this.#line(waiter.demand).enter(waiter);
  }

  #line(demand: Demand): ReservationLine {
    const known = this.#lines.get(demand.key);
    if (known !== undefined) return known;
    const line: ReservationLine = new ReservationLine({
      demand,
      reserve: (wanted) => this.#reserve(wanted),
      release: (id) => this.release(id),
      onEmpty: () => {
        if (this.#lines.get(demand.key) === line) this.#lines.delete(demand.key);
      },
    });
    this.#lines.set(demand.key, line);
    return line;
  }

  #reserve(demand: Demand): AskedLease {
    const id = newId("lease");
    const lease = this.#parts.open().then(async (engine) => {
      const answer = await engine.reserve(id, demand);
      if (answer.kind === "withdrawn") return undefined;
      if (answer.kind === "refused") return { refused: answer.reason };
      const { engineNode, env } = answer;
      const made: Lease = { id, engineNode, env, isLost: false };
      this.#leases.set(id, made);
      return made;
    });
    return { id, lease };
  }

  /** Gives a request its lease when the machine is a node; otherwise the request waits again. */
  async #use(lease: Lease, waiter: Waiting): Promise<void> {
    const { demand } = waiter;
    const isWanted = (): boolean => !waiter.isOver && !lease.isLost;
    try {
      const life = await this.#parts.ensure(lease.engineNode, isWanted);
      if (life !== undefined && isWanted()) {
        waiter.isOver = true;
        const allocation = new HeldLease(lease, life, demand, this.#holder);
        return waiter.settle({ kind: "placed", allocation });
      }
      // Only a machine that is gone cannot become a node.
      if (life === undefined && !waiter.isOver) lease.isLost = true;
      if (!waiter.isOver) this.#enter(waiter);
      this.#line(demand).give(lease);
    } catch (error) {
      waiter.fail(error as Error);
    }
  }

  readonly #holder: LeaseHolder = {
    give: (lease, demand) => this.#line(demand).give(lease),
    reclaim: (engineNode, demand) => this.#lines.get(demand.key)?.reclaim(engineNode),
    reserve: (demand) => this.#reserve(demand),
    release: (id) => this.release(id),
  };

  #row(demand: Demand, { label, sinceMs }: LeaseWaiter): PendingRequest {
    const { hold } = demand;
    const feasible = this.#isFeasible(hold);
    return { label, wants: [hold], sinceMs, feasible, reason: reasonOf(demand) };
  }

  #isFeasible(hold: Amounts): boolean {
    const wanted = toUnits(hold);
    return this.#parts
      .machines()
      .some(({ alive, resources }) => alive && covers(toUnits(resources), wanted));
  }

  #warnOfLack(demand: Demand, label: string): void {
    if (this.#parts.machines().length === 0 || this.#reported.has(demand.key)) return;
    if (this.#isFeasible(demand.hold)) return;
    this.#reported.add(demand.key);
    warn(`${label} ${reasonOf(demand)}, and waits until a node has as much`);
  }
}

function reasonOf({ hold, selectors, strategy }: Demand): string {
  const wanted = Object.entries(hold).map(([name, amount]) => `${amount} ${name}`);
  const where = strategy.kind === "NODE_AFFINITY" ? ` on node ${strategy.nodeId}` : "";
  const labelled = selectors.length === 0 ? "" : " on a node with its labels";
  return `needs ${wanted.join(", ") || "a node"}${where}${labelled}, which the cluster has to reserve`;
}
