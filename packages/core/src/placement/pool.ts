/** Something to give out from: a node, or a bundle that a placement group reserved on one. */
import type { Labels } from "./labels.ts";
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

  /** It goes because its node is emptied. */
  get isDrained(): boolean {
    return this.#isDrained;
  }

  /** Nothing more is given out of it, and who holds some of it is to leave. */
  drain(): void {
    this.#isDrained = true;
    this.#gone = true;
  }

  /** @param heir gets what is free now, and the rest when those who hold it release it */
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

/** Resources that are held; release them once, lend their CPUs while blocked. */
export interface Allocation {
  readonly nodeId: string;
  /** Its node or its bundle is gone, and what runs on it has to end. */
  readonly isLost: boolean;
  /** And that is because its node is, or was, emptied. */
  readonly isDrained: boolean;
  release(): void;
  /** Gives the CPUs back for a while (true) or takes them again (false), beyond the total if need be. */
  lend(lent: boolean): void;
}

/** @param onFree called when something came back */
export function allocate(pool: Pool, hold: Units, onFree: () => void): Allocation {
  let state: "held" | "lent" | "released" = "held";
  const cpus: Units = new Map([...hold].filter(([name]) => name === "CPU"));
  pool.take(hold);
  return {
    nodeId: pool.nodeId,
    get isLost() {
      return pool.isGone;
    },
    get isDrained() {
      return pool.isDrained;
    },
    release: () => {
      if (state === "released") return;
      if (state === "lent") pool.take(cpus);
      state = "released";
      pool.giveBack(hold);
      onFree();
    },
    lend: (lent) => {
      if (state === "released" || lent === (state === "lent")) return;
      state = lent ? "lent" : "held";
      if (!lent) return pool.take(cpus);
      pool.giveBack(cpus);
      onFree();
    },
  };
}
