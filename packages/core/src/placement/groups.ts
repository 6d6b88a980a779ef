/**
 * The placement groups: their requests, the places of their bundles, and the reservations in the
 * nodes' pools.
 *
 * A plan covers all bundles without a place and is carried out in the same turn, so a group has all
 * of them or none. A lost node takes its bundles with it; the group keeps the others and requests
 * these again. The table still shows the last `maxRemembered` removed groups.
 */
import type { GroupInfo, GroupSpec, GroupState } from "../rpc/cluster-directory.ts";
import { planBundles } from "./group-policy.ts";
import type { NodePools } from "./node-pools.ts";
import { Pool } from "./resource-pool.ts";
import { toUnits, type Units } from "./resources.ts";
import { present } from "../shared/errors/internal.ts";

/** The most removed groups that a table shows. */
export const maxRemembered = 1000;

export interface Group {
  readonly spec: GroupSpec;
  readonly units: readonly Units[];
  readonly bundles: (Pool | undefined)[];
  /** Its turn among all requests; a group that lost bundles keeps it. */
  readonly sequence: number;
  state: GroupState;
  /** Called when the group is placed, or never will be. */
  watchers: ((state: GroupState) => void)[];
}

export class Groups {
  readonly #groups: Map<string, Group> = new Map();
  readonly #removed: string[] = [];

  add(spec: GroupSpec, sequence: number): Group {
    const group: Group = {
      spec,
      units: spec.bundles.map(toUnits),
      bundles: spec.bundles.map(() => undefined),
      sequence,
      state: "PENDING",
      watchers: [],
    };
    this.#groups.set(spec.groupId, group);
    return group;
  }

  get(groupId: string): Group | undefined {
    return this.#groups.get(groupId);
  }

  bundlesOf(groupId: string): readonly (Pool | undefined)[] | undefined {
    const group = this.#groups.get(groupId);
    return group === undefined || group.state === "REMOVED" ? undefined : group.bundles;
  }

  /** Reserves every bundle without a place if all of them fit; otherwise it changes nothing. */
  place(group: Group, nodes: NodePools): boolean {
    const plan = planOf(group, nodes, "available");
    if (plan === undefined) return false;
    let next = 0;
    for (const [index, bundle] of group.bundles.entries()) {
      if (bundle !== undefined) continue;
      const node = present(nodes.get(plan[next++] ?? ""), "node of the plan");
      const units = present(group.units[index], "bundle");
      node.take(units);
      group.bundles[index] = new Pool(node.nodeId, node.labels, units);
    }
    settle(group, "CREATED");
    return true;
  }

  /** Whether idle nodes could hold the group. */
  isFeasible(group: Group, nodes: NodePools): boolean {
    return planOf(group, nodes, "total") !== undefined;
  }

  /**
   * Forgets the bundles on a node that is gone or drained. Returns the groups that must be placed
   * again.
   */
  loseNode(nodeId: string, isDrained: boolean): readonly Group[] {
    const lost: Group[] = [];
    for (const group of this.#groups.values()) {
      let some = false;
      for (const [index, bundle] of group.bundles.entries()) {
        if (bundle?.nodeId !== nodeId) continue;
        if (isDrained) bundle.drain();
        else bundle.end();
        group.bundles[index] = undefined;
        some = true;
      }
      if (!some) continue;
      group.state = "RESCHEDULING";
      lost.push(group);
    }
    return lost;
  }

  /**
   * Removes a group. Its reservations return to their nodes as soon as the users of its bundles
   * have ended.
   */
  remove(group: Group, nodes: NodePools): void {
    for (const [index, bundle] of group.bundles.entries()) {
      if (bundle === undefined) continue;
      bundle.end(nodes.get(bundle.nodeId));
      group.bundles[index] = undefined;
    }
    settle(group, "REMOVED");
    this.#removed.push(group.spec.groupId);
    if (this.#removed.length <= maxRemembered) return;
    const oldest = this.#removed.shift();
    if (oldest !== undefined) this.#groups.delete(oldest);
  }

  /** @param waitsFor returns why a group is not placed yet */
  table(waitsFor: (group: Group) => string | undefined): readonly GroupInfo[] {
    return [...this.#groups.values()].map((group) => ({
      placementGroupId: group.spec.groupId,
      name: group.spec.name ?? "",
      strategy: group.spec.strategy,
      state: group.state,
      bundles: group.spec.bundles,
      bundlesToNodeId: group.bundles.map((bundle) => bundle?.nodeId),
      waitsFor: waitsFor(group),
    }));
  }

  named(name: string): Group | undefined {
    for (const group of this.#groups.values()) {
      if (group.spec.name === name && group.state !== "REMOVED") return group;
    }
    return undefined;
  }
}

function settle(group: Group, state: "CREATED" | "REMOVED"): void {
  group.state = state;
  const { watchers } = group;
  group.watchers = [];
  for (const watcher of watchers) watcher(state);
}

function planOf(
  group: Group,
  nodes: NodePools,
  measure: "available" | "total",
): readonly string[] | undefined {
  const here = new Map<string, number>();
  for (const bundle of group.bundles) {
    if (bundle !== undefined) here.set(bundle.nodeId, (here.get(bundle.nodeId) ?? 0) + 1);
  }
  const idle = nodes.rooms(measure);
  const rooms =
    here.size === 0
      ? idle
      : idle.map((room) => ({ ...room, bundlesHere: here.get(room.nodeId) ?? 0 }));
  const missing = [...group.bundles.keys()].filter((index) => group.bundles[index] === undefined);
  const wanted = missing.map((index) => ({
    units: present(group.units[index], "bundle"),
    selector: group.spec.selectors[index] ?? {},
  }));
  return planBundles(wanted, group.spec.strategy, rooms);
}
