/**
 * Places a request: a pure function of the request and the current state of nodes and bundles.
 *
 * DEFAULT packs a node until half of it is used and then takes the least used one (Ray's hybrid
 * policy without randomness: ties go to the node that joined first). Nodes with GPUs are left to
 * requests for GPUs as long as others have room.
 */
import type { Demand, LabelConditions, Strategy } from "../rpc/resource-demand.ts";
import { assertNever } from "../shared/errors.ts";
import { describe, type Labels, meets } from "./labels.ts";
import { covers, shortage, toUnits, type Units } from "./resources.ts";
import { present } from "../shared/errors/internal.ts";

export interface PlacementRequest {
  readonly place: Units;
  readonly hold: Units;
  readonly strategy: Strategy;
  readonly selectors: readonly LabelConditions[];
}

/** A pool of resources: a node's, or those that a bundle reserved on a node. */
export interface PoolView {
  readonly nodeId: string;
  readonly labels: Labels;
  readonly total: Units;
  readonly available: Units;
}

export interface ClusterView<Pool extends PoolView> {
  /** The living nodes, in the order in which they joined. */
  readonly nodes: readonly Pool[];
  /** The node that SPREAD took last; the next search starts behind it. */
  readonly lastSpread: string | undefined;
  /**
   * Returns the bundles of a group, with undefined for bundles without a place; undefined for a
   * removed or unknown group.
   */
  readonly bundlesOf: (groupId: string) => readonly (Pool | undefined)[] | undefined;
}

export type RefusalKind = "unschedulable" | "placement-group-removed";

export type Decision<Pool extends PoolView> =
  | { readonly kind: "place"; readonly pool: Pool }
  /** The request waits. If `feasible` is false, no node has as much even when idle. */
  | { readonly kind: "wait"; readonly feasible: boolean; readonly reason: string }
  | { readonly kind: "reject"; readonly refusal: RefusalKind; readonly reason: string };

export function toRequest(demand: Demand): PlacementRequest {
  const { strategy, selectors } = demand;
  return { place: toUnits(demand.place), hold: toUnits(demand.hold), strategy, selectors };
}

export function decide<Pool extends PoolView>(
  request: PlacementRequest,
  view: ClusterView<Pool>,
): Decision<Pool> {
  if (request.selectors.length === 0) return byStrategy(request, view);
  const decisions = request.selectors.map((selector) => {
    const nodes = view.nodes.filter(({ labels }) => meets(labels, selector));
    const decision = byStrategy(request, { ...view, nodes });
    return nodes.length > 0 || decision.kind !== "wait"
      ? decision
      : waits(false, `no node with ${describe(selector)}`);
  });
  return (
    decisions.find(({ kind }) => kind !== "wait") ??
    decisions.find((decision) => decision.kind === "wait" && decision.feasible) ??
    present(decisions[0], "strategy")
  );
}

function byStrategy<Pool extends PoolView>(
  request: PlacementRequest,
  view: ClusterView<Pool>,
): Decision<Pool> {
  const { strategy } = request;
  const { nodes } = view;
  switch (strategy.kind) {
    case "DEFAULT":
      return packThenSpread(request, nodes);
    case "SPREAD": {
      const next = 1 + nodes.findIndex(({ nodeId }) => nodeId === view.lastSpread);
      return firstWithRoom(request, [...nodes.slice(next), ...nodes.slice(0, next)]);
    }
    case "NODE_AFFINITY": {
      const node = nodes.find(({ nodeId }) => nodeId === strategy.nodeId);
      if (node !== undefined && covers(node.total, request.place)) {
        return firstWithRoom(request, [node]);
      }
      if (strategy.soft) return packThenSpread(request, nodes);
      const why =
        node === undefined
          ? "is gone or never existed"
          : `does not have ${amounts(node.total, request)}`;
      return {
        kind: "reject",
        refusal: "unschedulable",
        reason: `node ${strategy.nodeId}, which it must run on, ${why}`,
      };
    }
    case "NODE_LABEL": {
      const allowed = nodes.filter(({ labels }) => meets(labels, strategy.hard));
      if (allowed.length === 0) return waits(false, `no node with ${describe(strategy.hard)}`);
      const liked = allowed.filter(({ labels }) => meets(labels, strategy.soft));
      const decision = packThenSpread(request, liked);
      return decision.kind === "place" ? decision : packThenSpread(request, allowed);
    }
    case "PLACEMENT_GROUP":
      return inGroup(request, strategy, view);
    default:
      return assertNever(strategy);
  }
}

function inGroup<Pool extends PoolView>(
  request: PlacementRequest,
  strategy: Extract<Strategy, { kind: "PLACEMENT_GROUP" }>,
  view: ClusterView<Pool>,
): Decision<Pool> {
  const { bundleIndex } = strategy;
  const { groupId } = strategy.group;
  const bundles = view.bundlesOf(groupId);
  if (bundles === undefined) {
    const reason = `its placement group ${groupId} was removed`;
    return { kind: "reject", refusal: "placement-group-removed", reason };
  }
  const wanted = bundleIndex < 0 ? bundles : [bundles[bundleIndex]];
  const placed = wanted.filter((bundle) => bundle !== undefined);
  if (placed.length === 0) return waits(true, `its placement group ${groupId} has no place yet`);
  const decision = firstWithRoom(request, placed);
  // A bundle without a place now may be the one that fits.
  return decision.kind === "wait" && placed.length < wanted.length
    ? waits(true, decision.reason)
    : decision;
}

function packThenSpread<Pool extends PoolView>(
  request: PlacementRequest,
  nodes: readonly Pool[],
): Decision<Pool> {
  const wantsGpu = (request.place.get("GPU") ?? 0) > 0;
  let best: Pool | undefined;
  let bestScore = Infinity;
  for (const node of nodes) {
    if (!covers(node.available, request.place)) continue;
    const used = usedShare(node);
    // Shares are at most 1, so a node that should be kept for others comes after all other nodes.
    const kept = !wantsGpu && (node.total.get("GPU") ?? 0) > 0 ? 2 : 0;
    const score = (used < packUntil ? 0 : used) + kept;
    if (score < bestScore) [best, bestScore] = [node, score];
  }
  return best === undefined ? firstWithRoom(request, nodes) : { kind: "place", pool: best };
}

/** Ray's `scheduler_spread_threshold`. */
const packUntil = 0.5;

/** Returns the largest used share among CPU and memory, which everything uses. */
function usedShare({ total, available }: PoolView): number {
  let most = 0;
  for (const name of ["CPU", "memory"]) {
    const all = total.get(name) ?? 0;
    if (all > 0) most = Math.max(most, 1 - (available.get(name) ?? 0) / all);
  }
  return most;
}

function firstWithRoom<Pool extends PoolView>(
  request: PlacementRequest,
  pools: readonly Pool[],
): Decision<Pool> {
  const free = pools.find(({ available }) => covers(available, request.place));
  if (free !== undefined) return { kind: "place", pool: free };
  const possible = pools.find(({ total }) => covers(total, request.place));
  return possible === undefined
    ? waits(false, `needs ${shortage(pools[0]?.total ?? new Map(), request.place)}`)
    : waits(true, `needs ${shortage(possible.available, request.place)}`);
}

function waits(feasible: boolean, reason: string): Extract<Decision<PoolView>, { kind: "wait" }> {
  return { kind: "wait", feasible, reason };
}

function amounts(total: Units, { place }: PlacementRequest): string {
  return `the resources for it (${shortage(total, place)})`;
}
