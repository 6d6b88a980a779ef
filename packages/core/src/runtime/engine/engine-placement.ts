/**
 * The placement of a session on an engine: the engine decides, and the session holds what it
 * reserved.
 *
 * A reservation names a machine, which becomes a node of the session before anything starts there.
 * Nothing is counted here, so sessions and other programs of the cluster never book twice.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Allocation, Outcome, Placement, ResourceRequest } from "../../placement/placement.ts";
import type { PendingLine, PendingRequest } from "../../placement/request-queues.ts";
import type { PoolView } from "../../placement/policy.ts";
import { toUnits } from "../../placement/resources.ts";
import type {
  ClusterResources,
  GroupInfo,
  GroupSpec,
  GroupState,
} from "../../rpc/cluster-directory.ts";
import type { Demand } from "../../rpc/resource-demand.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { warn } from "../../shared/text/warning.ts";
import type { EngineView, OpenEngine } from "./engine.ts";
import { EngineGroups } from "./engine-groups.ts";
import type { EngineNodes, NodeLife } from "./engine-nodes.ts";
import { Leases } from "./leases.ts";

/** The pause before the next attempt to use a machine, in ms; it doubles up to the longest. */
const pauseMs = { first: 250, longest: 10_000 };

/** The parts of a session that its placement needs. */
export interface EnginePlacementParts {
  /** Opens the engine, once. */
  readonly open: () => Promise<OpenEngine>;
  /** The engine, once it is open. */
  readonly engine: () => OpenEngine | undefined;
  readonly nodes: EngineNodes;
}

export class EnginePlacement implements Placement {
  readonly #parts: EnginePlacementParts;
  readonly #leases: Leases;
  readonly #groups: EngineGroups;
  #closed: Error | undefined;

  constructor(parts: EnginePlacementParts) {
    this.#parts = parts;
    this.#leases = new Leases({
      open: parts.open,
      ensure: (engineNode, isWanted) => this.#ensure(engineNode, isWanted),
      machines: () => this.#view.nodes,
    });
    this.#groups = new EngineGroups({
      reserve: (spec) => this.#reserveGroup(spec),
      release: (groupId) => this.#leases.release(groupId),
    });
  }

  get nodes(): readonly PoolView[] {
    return this.#view.nodes
      .filter(({ alive }) => alive)
      .map(({ nodeId, labels, resources, availableResources }) => ({
        nodeId,
        labels,
        total: toUnits(resources),
        available: toUnits(availableResources),
      }));
  }

  get resources(): ClusterResources {
    return this.#view.resources;
  }

  /** The engine knows its machines; the driver's own offers nothing. */
  addNode(): void {}

  removeNode(): void {}

  drainNode(): void {}

  request(demand: Demand, label: string): ResourceRequest {
    if (this.#closed !== undefined) {
      const outcome = Promise.reject<Outcome>(this.#closed);
      return { outcome, withdraw: () => undefined, reason: undefined };
    }
    const isInGroup = demand.strategy.kind === "PLACEMENT_GROUP";
    return isInGroup ? this.#requestInGroup(demand, label) : this.#leases.request(demand, label);
  }

  createGroup(spec: GroupSpec): boolean {
    return this.#groups.create(spec);
  }

  removeGroup(groupId: string): void {
    this.#groups.remove(groupId);
  }

  groupReady(groupId: string): Promise<GroupState> {
    return this.#groups.ready(groupId);
  }

  groups(): readonly GroupInfo[] {
    return this.#groups.table();
  }

  /** The engine has reserved all bundles of a group. */
  groupPlaced(groupId: string, engineNodes: readonly string[]): void {
    this.#groups.placed(groupId, engineNodes);
  }

  pending(): readonly PendingRequest[] {
    return [...this.#leases.pending(), ...this.#groups.pending()].toSorted(
      (left, right) => left.sinceMs - right.sinceMs,
    );
  }

  pendingLines(): readonly PendingLine[] {
    return [...this.#leases.pendingLines(), ...this.#groups.pendingLines()];
  }

  whyWaiting(demand: Demand): string | undefined {
    const isInGroup = demand.strategy.kind === "PLACEMENT_GROUP";
    return isInGroup ? this.#groups.whyWaiting(demand) : this.#leases.whyWaiting(demand);
  }

  close(error: Error): void {
    this.#closed ??= error;
    this.#leases.close(error);
    this.#groups.close(error);
  }

  /** The machine is gone, with all that was reserved there. */
  loseNode(engineNode: string): void {
    this.#leases.loseNode(engineNode);
    this.#groups.loseNode(engineNode);
  }

  get #view(): EngineView {
    return this.#parts.engine()?.view ?? nothing;
  }

  #reserveGroup(spec: GroupSpec): void {
    const { groupId, name } = spec;
    this.#parts.open().then(
      (engine) =>
        engine.reserveGroup(spec).catch((error: unknown) => {
          if (this.#closed !== undefined) return;
          warn(`placement group ${name ?? groupId} cannot be made: ${asError(error).message}`);
          this.#groups.remove(groupId);
        }),
      // The placement is closed.
      () => undefined,
    );
  }

  #requestInGroup(demand: Demand, label: string): ResourceRequest {
    const request = this.#groups.request(demand, label);
    return {
      outcome: request.outcome.then((outcome) => this.#onNode(outcome, demand, label)),
      withdraw: () => request.withdraw(),
      get reason() {
        return request.reason;
      },
    };
  }

  /** The machine of a bundle becomes a node before the request gets its part. */
  async #onNode(outcome: Outcome, demand: Demand, label: string): Promise<Outcome> {
    if (outcome.kind !== "placed") return outcome;
    const { allocation } = outcome;
    const life = await this.#ensure(allocation.nodeId, () => !allocation.isLost);
    if (life !== undefined) return { kind: "placed", allocation: onLife(allocation, life) };
    allocation.release();
    return this.#requestInGroup(demand, label).outcome;
  }

  async #ensure(engineNode: string, isWanted: () => boolean): Promise<NodeLife | undefined> {
    for (let waitMs = pauseMs.first; isWanted(); waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      try {
        const life = await this.#parts.nodes.ensure(engineNode);
        if (!life.isOver) return life;
      } catch (error) {
        if (this.#closed !== undefined) throw this.#closed;
        // The report of its end may have come before the reservation.
        if (!isWanted() || this.#isGone(engineNode)) return undefined;
        warn(`node ${engineNode} cannot be used: ${asError(error).message}`);
        await pause(waitMs, undefined, { ref: false });
      }
    }
    return undefined;
  }

  #isGone(engineNode: string): boolean {
    return this.#view.nodes.some(({ nodeId, alive }) => nodeId === engineNode && !alive);
  }
}

/** A part of a bundle, which is lost with the machine's time as a node, too. */
function onLife(allocation: Allocation, life: NodeLife): Allocation {
  return {
    nodeId: allocation.nodeId,
    isDrained: false,
    get isLost() {
      return allocation.isLost || life.isOver;
    },
    release: () => allocation.release(),
    lend: (lent) => allocation.lend(lent),
  };
}

const nothing: EngineView = { nodes: [], resources: { total: {}, available: {} } };
