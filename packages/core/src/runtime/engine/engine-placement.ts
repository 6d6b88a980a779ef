/**
 * The placement of a session on an engine: the engine decides, and the session holds what it
 * reserved.
 *
 * A reservation names a machine, which becomes a node of the session before anything starts there.
 * Only the bundles of the session are counted here, so sessions and other programs of the cluster
 * never book twice.
 */
import type { Outcome, Placement, ResourceRequest } from "../../placement/placement.ts";
import type { PendingLine, PendingRequest } from "../../placement/request-queues.ts";
import type { PoolView } from "../../placement/policy.ts";
import { toUnits } from "../../placement/resources.ts";
import type {
  ClusterResources,
  GroupInfo,
  GroupSpec,
  GroupState,
} from "../../rpc/cluster-directory.ts";
import type { Amounts, Demand } from "../../rpc/resource-demand.ts";
import { asError } from "../../shared/errors/thrown.ts";
import { warn } from "../../shared/text/warning.ts";
import { onMachine } from "./bundle-allocation.ts";
import type { EngineView, OpenEngine } from "./engine.ts";
import { EngineGroups } from "./engine-groups.ts";
import type { EngineNodes, NodeLife } from "./engine-nodes.ts";
import { Leases } from "./leases.ts";
import { ReservedBundles } from "./reserved-bundles.ts";
import { pause } from "../../shared/machine/timers.ts";

/** The pause before the next attempt to use a machine, in ms; it doubles up to the longest. */
const pauseMs = { first: 250, longest: 10_000 };

/** The parts of a session that its placement needs. */
export interface EnginePlacementParts {
  /** The bundles that it reserves in advance. */
  readonly bundles: readonly Amounts[];
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
  readonly #bundles: ReservedBundles | undefined;
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
    if (parts.bundles.length === 0) return;
    this.#bundles = new ReservedBundles(parts.bundles, {
      onNode: (ask) => this.#onNode(ask),
      elsewhere: (demand, label) => this.#leases.request(demand, label),
      machines: () => this.#view.nodes,
    });
  }

  /** Reserves the bundles. Rejects when the engine cannot. */
  async reserveBundles(engine: OpenEngine): Promise<void> {
    if (this.#bundles === undefined) return;
    await engine.reserveGroup(this.#bundles.spec);
    this.#bundles.warnOfLack();
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
    if (demand.strategy.kind === "PLACEMENT_GROUP") {
      return this.#onNode(() => this.#groups.request(demand, label));
    }
    const isForBundles = this.#bundles?.isFor(demand) === true;
    return (isForBundles ? this.#bundles : this.#leases).request(demand, label);
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
    const own = this.#bundles === undefined ? [] : [this.#bundles.info()];
    return [...own, ...this.#groups.table()];
  }

  /** The engine has reserved all bundles of a group. */
  groupPlaced(groupId: string, engineNodes: readonly string[]): void {
    if (groupId === this.#bundles?.spec.groupId) return this.#bundles.placed(engineNodes);
    this.#groups.placed(groupId, engineNodes);
  }

  pending(): readonly PendingRequest[] {
    const all = [this.#leases, this.#groups, this.#bundles].flatMap((one) => one?.pending() ?? []);
    return all.toSorted((left, right) => left.sinceMs - right.sinceMs);
  }

  pendingLines(): readonly PendingLine[] {
    return [this.#leases, this.#groups, this.#bundles].flatMap((one) => one?.pendingLines() ?? []);
  }

  whyWaiting(demand: Demand): string | undefined {
    if (demand.strategy.kind === "PLACEMENT_GROUP") return this.#groups.whyWaiting(demand);
    return this.#bundles?.whyWaiting(demand) ?? this.#leases.whyWaiting(demand);
  }

  close(error: Error): void {
    this.#closed ??= error;
    this.#leases.close(error);
    this.#groups.close(error);
    this.#bundles?.close(error);
  }

  /** The machine is gone, with all that was reserved there. */
  loseNode(engineNode: string): void {
    this.#leases.loseNode(engineNode);
    this.#groups.loseNode(engineNode);
    this.#bundles?.loseNode(engineNode);
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

  /** The machine of a bundle becomes a node before the request gets its part. */
  #onNode(ask: () => ResourceRequest): ResourceRequest {
    let request = ask();
    let isWithdrawn = false;
    const withdrawn = Promise.withResolvers<undefined>();
    const withdraw = (): void => {
      isWithdrawn = true;
      request.withdraw();
      withdrawn.resolve(undefined);
    };
    const settle = async (): Promise<Outcome> => {
      for (;;) {
        const outcome = await request.outcome;
        if (outcome.kind !== "placed") return outcome;
        const { allocation } = outcome;
        const { nodeId } = allocation;
        const isWanted = (): boolean => !isWithdrawn && !allocation.isLost;
        // A machine may take no agent for long, and others wait for the part of the bundle.
        const life = await Promise.race([this.#ensure(nodeId, isWanted), withdrawn.promise]);
        if (isWithdrawn) {
          allocation.release();
          return { kind: "withdrawn" };
        }
        if (life !== undefined) {
          const isOver = (): boolean => life.isOver;
          return { kind: "placed", allocation: onMachine(allocation, { nodeId, isOver }) };
        }
        allocation.release();
        request = ask();
      }
    };
    return {
      outcome: settle(),
      withdraw,
      get reason() {
        return request.reason;
      },
    };
  }

  async #ensure(engineNode: string, isWanted: () => boolean): Promise<NodeLife | undefined> {
    let failed = 0;
    for (let waitMs = pauseMs.first; isWanted(); waitMs = Math.min(2 * waitMs, pauseMs.longest)) {
      try {
        const life = await this.#parts.nodes.ensure(engineNode);
        if (!life.isOver) return life;
      } catch (error) {
        if (this.#closed !== undefined) throw this.#closed;
        // The report of its end may have come before the reservation.
        if (!isWanted() || this.#isGone(engineNode)) return undefined;
        failed += 1;
        // After the 1st, 2nd, 4th, 8th failure and so on.
        if ((failed & (failed - 1)) === 0)
          warn(`node ${engineNode} cannot be used: ${asError(error).message}`);
        await pause(waitMs, { ref: false });
      }
    }
    return undefined;
  }

  #isGone(engineNode: string): boolean {
    return this.#view.nodes.some(({ nodeId, alive }) => nodeId === engineNode && !alive);
  }
}

const nothing: EngineView = { nodes: [], resources: { total: {}, available: {} } };
