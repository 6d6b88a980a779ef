/**
 * Placement groups of a session on an engine: each is one group of the engine, bundle for bundle.
 *
 * The engine says where the bundles are. What is given out of them is counted by a scheduler of the
 * session's own, to which each bundle that has a place is a node with exactly its amounts. The
 * table still shows the last `maxRemembered` removed groups.
 */
import { maxRemembered } from "../../placement/groups.ts";
import type { Outcome, ResourceRequest } from "../../placement/placement.ts";
import type { PendingLine, PendingRequest } from "../../placement/request-queues.ts";
import { Scheduler } from "../../placement/scheduler.ts";
import type { GroupInfo, GroupSpec, GroupState } from "../../rpc/cluster-directory.ts";
import type { Demand } from "../../rpc/resource-demand.ts";
import { present } from "../../shared/errors/internal.ts";
import { onMachine } from "./bundle-allocation.ts";

/** Binds a bundle to its place in the session's own scheduler. */
const bundleLabel = "rayling.bundle";

const separator = "#";

/** Makes and ends groups of the engine. */
export interface EngineGroupsParts {
  /** Reserves the bundles; `placed` is called with the machine of each, again after a loss. */
  readonly reserve: (spec: GroupSpec) => void;
  readonly release: (groupId: string) => void;
}

interface Known {
  readonly spec: GroupSpec;
  readonly ready: PromiseWithResolvers<GroupState>;
  /** The bundles in the session's own scheduler, by index. */
  readonly bundles: (string | undefined)[];
  state: "PENDING" | "PLACED" | "REMOVED";
  /** Allocations out of it that are not given back. */
  users: number;
}

export class EngineGroups {
  readonly #parts: EngineGroupsParts;
  readonly #own: Scheduler = new Scheduler();
  readonly #groups: Map<string, Known> = new Map();
  /** Removed groups that nobody uses, in the order of their ends. */
  readonly #removed: Set<string> = new Set();
  #placements = 0;

  constructor(parts: EngineGroupsParts) {
    this.#parts = parts;
  }

  create(spec: GroupSpec): boolean {
    if (spec.name !== undefined && this.#isTaken(spec.name)) return false;
    this.#groups.set(spec.groupId, {
      spec,
      ready: Promise.withResolvers(),
      bundles: spec.bundles.map(() => undefined),
      state: "PENDING",
      users: 0,
    });
    this.#parts.reserve(spec);
    return true;
  }

  /** The engine has reserved all bundles, on these machines. */
  placed(groupId: string, engineNodes: readonly string[]): void {
    const known = this.#groups.get(groupId);
    if (known === undefined || known.state === "REMOVED") return;
    for (const [index, engineNode] of engineNodes.entries()) {
      const before = known.bundles[index];
      if (before !== undefined && nodeOf(before) === engineNode) continue;
      if (before !== undefined) this.#own.removeNode(before);
      this.#placements += 1;
      const id = [engineNode, groupId, index, this.#placements].join(separator);
      known.bundles[index] = id;
      const bundle = present(known.spec.bundles[index], "bundle");
      this.#own.addNode(id, bundle, { [bundleLabel]: bundleOf(groupId, index) });
    }
    if (known.state === "PLACED") return;
    known.state = "PLACED";
    const { spec } = known;
    const selectors = spec.bundles.map((_, index) => ({
      [bundleLabel]: { in: [bundleOf(groupId, index)] },
    }));
    this.#own.createGroup({ ...spec, name: undefined, strategy: "PACK", selectors });
    known.ready.resolve("CREATED");
  }

  /** Bundles on that machine are gone until the engine has placed them again. */
  loseNode(engineNode: string): void {
    for (const { bundles } of this.#groups.values()) {
      for (const [index, id] of bundles.entries()) {
        if (id === undefined || nodeOf(id) !== engineNode) continue;
        bundles[index] = undefined;
        this.#own.removeNode(id);
      }
    }
  }

  /** The engine keeps the bundles until what runs in them has ended. */
  remove(groupId: string): void {
    const known = this.#groups.get(groupId);
    if (known === undefined || known.state === "REMOVED") return;
    known.state = "REMOVED";
    known.ready.resolve("REMOVED");
    this.#own.removeGroup(groupId);
    this.#releaseIfUnused(known);
  }

  ready(groupId: string): Promise<GroupState> {
    const known = this.#groups.get(groupId);
    if (known === undefined || known.state === "REMOVED") return Promise.resolve("REMOVED");
    if (known.state === "PENDING") return known.ready.promise;
    return this.#own.groupReady(groupId);
  }

  table(): readonly GroupInfo[] {
    const placed = new Map(this.#own.groups().map((one) => [one.placementGroupId, one]));
    return [...this.#groups.values()].map(({ spec, state, bundles }) => {
      const own = placed.get(spec.groupId);
      const isPending = state === "PENDING";
      return {
        placementGroupId: spec.groupId,
        name: spec.name ?? "",
        strategy: spec.strategy,
        state: state === "REMOVED" || isPending ? state : (own?.state ?? "REMOVED"),
        bundles: spec.bundles,
        bundlesToNodeId: bundles.map((id) => (id === undefined ? undefined : nodeOf(id))),
        waitsFor: isPending ? "has bundles that the cluster has to reserve" : own?.waitsFor,
      };
    });
  }

  /** Requests a part of a group, whose allocation names the machine of its bundle. */
  request(demand: Demand, label: string): ResourceRequest {
    const known = this.#knownOf(demand);
    if (known?.state !== "PENDING") return this.#ask(demand, label);
    let asked: ResourceRequest | undefined;
    const withdrawn = Promise.withResolvers<Outcome>();
    const outcome = Promise.race([
      withdrawn.promise,
      known.ready.promise.then(() => {
        asked = this.#ask(demand, label);
        return asked.outcome;
      }),
    ]);
    return {
      outcome,
      withdraw: () => {
        if (asked !== undefined) return asked.withdraw();
        withdrawn.resolve({ kind: "withdrawn" });
        // It is not to be asked for any more.
        void known.ready.promise.then(() => asked?.withdraw());
      },
      get reason() {
        return asked === undefined ? "its placement group has no place yet" : asked.reason;
      },
    };
  }

  pending(): readonly PendingRequest[] {
    return this.#own.pending();
  }

  pendingLines(): readonly PendingLine[] {
    return this.#own.pendingLines();
  }

  whyWaiting(demand: Demand): string | undefined {
    if (this.#knownOf(demand)?.state === "PENDING") return "its placement group has no place yet";
    return this.#own.whyWaiting(demand);
  }

  close(error: Error): void {
    this.#own.close(error);
    for (const known of this.#groups.values()) known.ready.resolve("REMOVED");
  }

  #ask(demand: Demand, label: string): ResourceRequest {
    const request = this.#own.request(demand, label);
    const known = this.#knownOf(demand);
    const outcome = request.outcome.then((given): Outcome => {
      if (given.kind !== "placed" || known === undefined) return given;
      known.users += 1;
      const allocation = onMachine(given.allocation, {
        nodeId: nodeOf(given.allocation.nodeId),
        onRelease: () => {
          known.users -= 1;
          this.#releaseIfUnused(known);
        },
      });
      return { kind: "placed", allocation };
    });
    return {
      outcome,
      withdraw: () => request.withdraw(),
      get reason() {
        return request.reason;
      },
    };
  }

  #isTaken(name: string): boolean {
    for (const { spec, state } of this.#groups.values()) {
      if (spec.name === name && state !== "REMOVED") return true;
    }
    return false;
  }

  #knownOf({ strategy }: Demand): Known | undefined {
    if (strategy.kind !== "PLACEMENT_GROUP") return undefined;
    return this.#groups.get(strategy.group.groupId);
  }

  #releaseIfUnused(known: Known): void {
    if (known.state !== "REMOVED" || known.users > 0) return;
    for (const [index, id] of known.bundles.entries()) {
      if (id !== undefined) this.#own.removeNode(id);
      known.bundles[index] = undefined;
    }
    const { groupId } = known.spec;
    this.#parts.release(groupId);
    this.#removed.add(groupId);
    const [oldest] = this.#removed;
    if (this.#removed.size <= maxRemembered || oldest === undefined) return;
    this.#removed.delete(oldest);
    this.#groups.delete(oldest);
  }
}

function bundleOf(groupId: string, index: number): string {
  return `${groupId}${separator}${index}`;
}

function nodeOf(id: string): string {
  return id.slice(0, id.indexOf(separator));
}
