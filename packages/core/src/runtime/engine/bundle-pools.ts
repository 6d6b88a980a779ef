/**
 * The bundles that a session has reserved, as nodes of a scheduler of its own: it counts what is
 * given out of them.
 *
 * A bundle has the labels of its machine, so that strategies choose among bundles as they choose
 * among machines.
 */
import { meets } from "../../placement/labels.ts";
import type { ResourceRequest } from "../../placement/placement.ts";
import { covers, toUnits, type Units } from "../../placement/resources.ts";
import { Scheduler } from "../../placement/scheduler.ts";
import type { NodeInfo } from "../../rpc/cluster-directory.ts";
import {
  type Amounts,
  type Demand,
  type LabelConditions,
  makeDemand,
} from "../../rpc/resource-demand.ts";
import { present } from "../../shared/errors/internal.ts";
import { onMachine } from "./bundle-allocation.ts";

/** The label of a bundle that names its machine. */
const machineLabel = "rayling.machine";

const separator = "#";

/** A bundle that has a place. */
interface Bundle {
  readonly id: string;
  readonly engineNode: string;
  readonly labels: Readonly<Record<string, string>>;
}

export class BundlePools {
  readonly #amounts: readonly Amounts[];
  readonly #units: readonly Units[];
  readonly #machines: () => readonly NodeInfo[];
  readonly #own: Scheduler = new Scheduler();
  /** By index. */
  readonly #bundles: (Bundle | undefined)[];
  /** Demands as the scheduler gets them, by their keys. */
  readonly #known: Map<string, Demand | undefined> = new Map();
  #placements = 0;

  /** @param machines returns the machines as the engine shows them */
  constructor(bundles: readonly Amounts[], machines: () => readonly NodeInfo[]) {
    this.#amounts = bundles;
    this.#units = bundles.map(toUnits);
    this.#bundles = bundles.map(() => undefined);
    this.#machines = machines;
  }

  /** The machine of each bundle; undefined while it has none. */
  get places(): readonly (string | undefined)[] {
    return this.#bundles.map((one) => one?.engineNode);
  }

  /** A bundle that no machine could hold. */
  get lacking(): Amounts | undefined {
    const machines = this.#living().map(({ resources }) => toUnits(resources));
    return this.#amounts.find((_, index) => {
      const wanted = this.#unitsOf(index);
      return !machines.some((machine) => covers(machine, wanted));
    });
  }

  /** Whether one of them is big enough for the request. */
  isFor({ hold, strategy }: Demand): boolean {
    const wanted = toUnits(hold);
    if (strategy.kind === "PLACEMENT_GROUP" || [...wanted.values()].every((one) => one === 0)) {
      return false;
    }
    return this.#units.some((bundle) => covers(bundle, wanted));
  }

  /** The engine has reserved all bundles, on these machines; after a loss, again. */
  placed(engineNodes: readonly string[]): void {
    for (const [index, engineNode] of engineNodes.entries()) {
      const before = this.#bundles[index];
      if (before?.engineNode === engineNode) continue;
      if (before !== undefined) this.#own.removeNode(before.id);
      this.#placements += 1;
      const id = [engineNode, index, this.#placements].join(separator);
      const labels = this.#labelsOf(engineNode);
      this.#bundles[index] = { id, engineNode, labels };
      this.#own.addNode(id, present(this.#amounts[index], "bundle"), labels);
    }
    this.#known.clear();
  }

  /** Bundles on that machine are gone until the engine has placed them again. */
  loseNode(engineNode: string): void {
    for (const [index, bundle] of this.#bundles.entries()) {
      if (bundle?.engineNode !== engineNode) continue;
      this.#bundles[index] = undefined;
      this.#own.removeNode(bundle.id);
    }
    this.#known.clear();
  }

  /** Returns the demand as `request` takes it; undefined where no bundle that has a place fits. */
  inside(demand: Demand): Demand | undefined {
    const { key, strategy, selectors } = demand;
    if (this.#known.has(key)) return this.#known.get(key);
    const alternatives = alternativesOf(strategy, selectors);
    const inside = this.#found(demand, this.#conditionsOf(alternatives, demand.hold));
    // A machine that joins may meet another alternative.
    if (alternatives.length === 1) this.#known.set(key, inside);
    return inside;
  }

  /**
   * Requests room in a bundle, whose allocation names the machine.
   *
   * @param onRoom called when there is some
   */
  request(inside: Demand, label: string, onRoom: () => void): ResourceRequest {
    const request = this.#own.request(inside, label);
    const outcome = request.outcome.then((given) => {
      if (given.kind !== "placed") return given;
      onRoom();
      const { nodeId } = given.allocation;
      const machine = nodeId.slice(0, nodeId.indexOf(separator));
      return { ...given, allocation: onMachine(given.allocation, { nodeId: machine }) };
    });
    return {
      outcome,
      withdraw: () => request.withdraw(),
      get reason() {
        return request.reason;
      },
    };
  }

  close(error: Error): void {
    this.#own.close(error);
  }

  #found({ hold, strategy }: Demand, conditions: LabelConditions): Demand | undefined {
    const isAffine = strategy.kind === "NODE_AFFINITY";
    const own = isAffine ? ({ kind: "DEFAULT" } as const) : strategy;
    const hard = strategy.kind === "NODE_LABEL" ? strategy.hard : {};
    const wanted = toUnits(hold);
    const isThere = this.#bundles.some(
      (one, index) =>
        one !== undefined &&
        covers(this.#unitsOf(index), wanted) &&
        meets(one.labels, conditions) &&
        meets(one.labels, hard),
    );
    return isThere ? makeDemand(hold, hold, own, [conditions]) : undefined;
  }

  /** Returns the first alternative that a machine meets, as the engine takes it. */
  #conditionsOf(alternatives: readonly LabelConditions[], hold: Amounts): LabelConditions {
    const wanted = toUnits(hold);
    const machines = this.#living();
    const isMet = (conditions: LabelConditions): boolean =>
      machines.some(
        ({ nodeId, resources }) =>
          covers(toUnits(resources), wanted) && meets(this.#labelsOf(nodeId), conditions),
      );
    return alternatives.find(isMet) ?? alternatives[0] ?? {};
  }

  #labelsOf(engineNode: string): Readonly<Record<string, string>> {
    const machine = this.#machines().find(({ nodeId }) => nodeId === engineNode);
    return { ...machine?.labels, [machineLabel]: engineNode };
  }

  #living(): readonly NodeInfo[] {
    return this.#machines().filter(({ alive }) => alive);
  }

  #unitsOf(index: number): Units {
    return present(this.#units[index], "bundle");
  }
}

/** Returns the conditions on labels that a machine may meet, the preferred ones first. */
function alternativesOf(
  strategy: Demand["strategy"],
  selectors: readonly LabelConditions[],
): readonly LabelConditions[] {
  const all = selectors.length === 0 ? [{}] : selectors;
  if (strategy.kind !== "NODE_AFFINITY") return all;
  const there = { [machineLabel]: { in: [strategy.nodeId] } };
  const affine = all.map((one) => ({ ...one, ...there }));
  return strategy.soft ? [...affine, ...all] : affine;
}
