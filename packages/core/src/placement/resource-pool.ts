/**
 * A pool of resources: a node, or a bundle that a placement group reserved on one.
 */
import type { Labels } from "./labels.ts";
import type { Allocation } from "./placement.ts";
import type { PoolView } from "./policy.ts";
import { change, type Units } from "./resources.ts";

export class Pool implements PoolView {
  readonly nodeId: string;
  readonly labels: Labels;
  readonly total: Units;
  readonly #available: Map<string, number>;
  #gone = false;
  #isDrained = false;
  #heir: Pool | undefined;

  constructor(nodeId: string, labels: Labels, total: Units) {
    this.nodeId = nodeId;
    this.labels = labels;
    this.total = total;
    this.#available = new Map(total);
  }

  get available(): Units {
    return this.#available;
  }

  get isGone(): boolean {
    return this.#gone;
  }

  /** Whether the pool ends because its node is drained. */
  get isDrained(): boolean {
    return this.#isDrained;
  }

  /** Stops allocation from this pool; holders of its resources are to leave. */
  drain(): void {
    this.#isDrained = true;
    this.#gone = true;
  }

  /** @param heir gets the free resources now, and the rest when their holders release them */
  end(heir?: Pool): void {
    this.#gone = true;
    this.#heir = heir;
    heir?.giveBack(this.#available);
  }

  take(units: Units): void {
    if (this.#heir !== undefined) return this.#heir.take(units);
    change(this.#available, units, -1);
  }

  giveBack(units: Units): void {
    if (this.#heir !== undefined) return this.#heir.giveBack(units);
    change(this.#available, units, 1);
  }
}

/** @param onFree called when resources came back */
export function allocate(pool: Pool, hold: Units, onFree: () => void): Allocation {
  pool.take(hold);
  return new PoolAllocation(pool, hold, onFree);
}

class PoolAllocation implements Allocation {
  readonly #pool: Pool;
  readonly #hold: Units;
  readonly #onFree: () => void;
  #state: "held" | "lent" | "released" = "held";

  constructor(pool: Pool, hold: Units, onFree: () => void) {
    this.#pool = pool;
    this.#hold = hold;
    this.#onFree = onFree;
  }

  get nodeId(): string {
    return this.#pool.nodeId;
  }

  get isLost(): boolean {
    return this.#pool.isGone;
  }

  get isDrained(): boolean {
    return this.#pool.isDrained;
  }

  release(): void {
    if (this.#state === "released") return;
    if (this.#state === "lent") this.#pool.take(cpusOf(this.#hold));
    this.#state = "released";
    this.#pool.giveBack(this.#hold);
    this.#onFree();
  }

  lend(lent: boolean): void {
    if (this.#state === "released" || lent === (this.#state === "lent")) return;
    this.#state = lent ? "lent" : "held";
    if (!lent) return this.#pool.take(cpusOf(this.#hold));
    this.#pool.giveBack(cpusOf(this.#hold));
    this.#onFree();
  }
}

function cpusOf(hold: Units): Units {
  return new Map([...hold].filter(([name]) => name === "CPU"));
}
