/**
 * The bundles that a session reserves in advance: one placement group of the engine.
 *
 * A request that fits a bundle waits until all of them are reserved, and takes room there. Where
 * bundles have given nothing to requests of its kind for a moment, it asks the engine as well, and
 * the first room counts: no request waits for a bundle that others keep.
 */
import type { PendingLine, PendingRequest } from "../../placement/lines.ts";
import { meets } from "../../placement/labels.ts";
import type { ResourceRequest } from "../../placement/placement.ts";
import { covers, toUnits, type Units } from "../../placement/resources.ts";
import { Scheduler } from "../../placement/scheduler.ts";
import type { GroupInfo, GroupSpec, NodeInfo } from "../../rpc/cluster.ts";
import { type Amounts, type Demand, type LabelConditions, makeDemand } from "../../rpc/demand.ts";
import { present } from "../../shared/errors/internal.ts";
import { newId } from "../../shared/ids.ts";
import { show } from "../../shared/text/show.ts";
import { warn } from "../../shared/text/warning.ts";
import { onMachine } from "./bundle-allocation.ts";
import { FirstOf } from "./first-of.ts";

/** How long bundles give nothing to a kind of requests until those ask the engine, in ms. */
const noRoomMs = 500;

/** The label of a bundle that names its machine. */
const machineLabel = "rayling.machine";

const notReserved = "waits for the bundles of its session, which the cluster has to reserve";

/** The parts of a placement that its bundles need. */
export interface ReservedBundlesParts {
  /** Makes a request whose machine becomes a node before it gets its allocation. */
  readonly onNode: (ask: () => ResourceRequest) => ResourceRequest;
  /** Makes a request to the engine. */
  readonly elsewhere: (demand: Demand, label: string) => ResourceRequest;
  /** Returns the machines as the engine shows them. */
  readonly machines: () => readonly NodeInfo[];
}

interface Waiter {
  readonly demand: Demand;
  readonly label: string;
  readonly sinceMs: number;
  readonly request: FirstOf;
}

export class ReservedBundles {
  readonly spec: GroupSpec;
  readonly #parts: ReservedBundlesParts;
  readonly #units: readonly Units[];
  readonly #own: Scheduler = new Scheduler();
  /** Demands as the own scheduler gets them, by their keys. */
  readonly #known: Map<string, Demand | undefined> = new Map();
  /** The bundles in the session's own scheduler, by index. */
  readonly #bundles: (Bundle | undefined)[];
  /** Requests that wait for the bundles and for nothing else. */
  readonly #waiting: Set<Waiter> = new Set();
  /** Kinds of requests that got room since the last look. */
  readonly #served: Set<string> = new Set();
  #placements = 0;
  #isPlaced = false;
  #timer: NodeJS.Timeout | undefined;
  #closed: Error | undefined;

  constructor(bundles: readonly Amounts[], parts: ReservedBundlesParts) {
    const [groupId, strategy] = [newId("group"), "PACK"] as const;
    const selectors = bundles.map(() => ({}));
    this.spec = { groupId, name: undefined, strategy, bundles, selectors, owner: undefined };
    this.#units = bundles.map(toUnits);
    this.#bundles = bundles.map(() => undefined);
    this.#parts = parts;
  }

  /** Whether one of them is big enough for the request. */
  isFor({ hold, strategy }: Demand): boolean {
    const wanted = toUnits(hold);
    if (strategy.kind === "PLACEMENT_GROUP" || [...wanted.values()].every((one) => one === 0)) {
      return false;
    }
    return this.#units.some((bundle) => covers(bundle, wanted));
  }

  request(demand: Demand, label: string): ResourceRequest {
    const request = new FirstOf(notReserved);
    const waiter = { demand, label, sinceMs: performance.now(), request };
    const over = (): void => void this.#waiting.delete(waiter);
    request.outcome.then(over, over);
    if (this.#closed !== undefined) request.fail(this.#closed);
    else if (this.#isPlaced) this.#begin(waiter);
    else this.#waiting.add(waiter);
    return request;
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
      this.#own.addNode(id, present(this.spec.bundles[index], "bundle"), labels);
    }
    this.#known.clear();
    if (this.#isPlaced) return;
    this.#isPlaced = true;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const waiter of waiting) this.#begin(waiter);
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

  /** Warns of a bundle that no machine could hold. */
  warnOfLack(): void {
    const machines = this.#parts.machines().filter(({ alive }) => alive);
    const isFeasible = (bundle: Units | undefined): boolean =>
      bundle !== undefined && machines.some(({ resources }) => covers(toUnits(resources), bundle));
    const lacking = this.spec.bundles.find((_, index) => !isFeasible(this.#units[index]));
    if (lacking === undefined) return;
    warn(`the bundle ${show(lacking)} of this session waits until a node has as much`);
  }

  info(): GroupInfo {
    const { groupId, strategy, bundles } = this.spec;
    const isWhole = this.#bundles.every((one) => one !== undefined);
    return {
      placementGroupId: groupId,
      name: "",
      strategy,
      state: isWhole ? "CREATED" : this.#isPlaced ? "RESCHEDULING" : "PENDING",
      bundles,
      bundlesToNodeId: this.#bundles.map((one) => one?.engineNode),
      waitsFor: isWhole ? undefined : "has bundles that the cluster has to reserve",
    };
  }

  pending(): readonly PendingRequest[] {
    return [...this.#waiting].map(({ demand, label, sinceMs, request }) => ({
      label,
      wants: [demand.hold],
      sinceMs,
      feasible: true,
      reason: request.reason ?? "",
    }));
  }

  pendingLines(): readonly PendingLine[] {
    const sizes = new Map<string, number>();
    for (const { demand } of this.#waiting) {
      sizes.set(demand.key, (sizes.get(demand.key) ?? 0) + 1);
    }
    const waiting = [...this.#waiting];
    const rows = this.pending();
    return rows.flatMap((row, index) => {
      const key = present(waiting[index], "request").demand.key;
      const size = sizes.get(key);
      sizes.delete(key);
      return size === undefined ? [] : [{ ...row, size }];
    });
  }

  whyWaiting({ key }: Demand): string | undefined {
    for (const { demand, request } of this.#waiting) {
      if (demand.key === key) return request.reason;
    }
    return undefined;
  }

  close(error: Error): void {
    this.#closed ??= error;
    clearInterval(this.#timer);
    this.#own.close(error);
    for (const { request } of this.#waiting) request.fail(error);
  }

  #begin(waiter: Waiter): void {
    const { demand, label, request } = waiter;
    const inside = this.#inside(demand);
    if (inside === undefined) return request.ask(() => this.#parts.elsewhere(demand, label));
    request.ask(() => this.#parts.onNode(() => this.#askOwn(inside, demand, label)));
    if (request.reason === undefined) return;
    this.#waiting.add(waiter);
    this.#timer ??= setInterval(() => this.#look(), noRoomMs).unref();
  }

  #askOwn(inside: Demand, { key }: Demand, label: string): ResourceRequest {
    const request = this.#own.request(inside, label);
    const outcome = request.outcome.then((given) => {
      if (given.kind !== "placed") return given;
      this.#served.add(key);
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

  /** Lets those ask the engine for whose kind no bundle had room since the last look. */
  #look(): void {
    if (this.#waiting.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    for (const waiter of this.#waiting) {
      const { demand, label, request } = waiter;
      if (this.#served.has(demand.key)) continue;
      this.#waiting.delete(waiter);
      request.ask(() => this.#parts.elsewhere(demand, label));
    }
    this.#served.clear();
  }

  /** Returns the demand as the session's own scheduler gets it; undefined where no bundle fits. */
  #inside(demand: Demand): Demand | undefined {
    const { key, strategy, selectors } = demand;
    if (this.#known.has(key)) return this.#known.get(key);
    const alternatives = alternativesOf(strategy, selectors);
    const inside = this.#found(demand, this.#conditionsOf(alternatives, demand.hold));
    // A machine that joins may meet another alternative.
    if (alternatives.length === 1) this.#known.set(key, inside);
    return inside;
  }

  #found({ hold, strategy }: Demand, conditions: LabelConditions): Demand | undefined {
    const isAffine = strategy.kind === "NODE_AFFINITY";
    const own = isAffine ? ({ kind: "DEFAULT" } as const) : strategy;
    const hard = strategy.kind === "NODE_LABEL" ? strategy.hard : {};
    const wanted = toUnits(hold);
    const isThere = this.#bundles.some(
      (one, index) =>
        one !== undefined &&
        covers(this.#units[index] ?? new Map(), wanted) &&
        meets(one.labels, conditions) &&
        meets(one.labels, hard),
    );
    return isThere ? makeDemand(hold, hold, own, [conditions]) : undefined;
  }

  /** Returns the first alternative that a machine meets, as the engine takes it. */
  #conditionsOf(alternatives: readonly LabelConditions[], hold: Amounts): LabelConditions {
    const wanted = toUnits(hold);
    const machines = this.#parts.machines().filter(({ alive }) => alive);
    const isMet = (conditions: LabelConditions): boolean =>
      machines.some(
        ({ nodeId, resources }) =>
          covers(toUnits(resources), wanted) && meets(this.#labelsOf(nodeId), conditions),
      );
    return alternatives.find(isMet) ?? alternatives[0] ?? {};
  }

  #labelsOf(engineNode: string): Readonly<Record<string, string>> {
    const machine = this.#parts.machines().find(({ nodeId }) => nodeId === engineNode);
    return { ...machine?.labels, [machineLabel]: engineNode };
  }
}

/** A bundle that has a place. */
interface Bundle {
  readonly id: string;
  readonly engineNode: string;
  readonly labels: Readonly<Record<string, string>>;
}

const separator = "#";

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
