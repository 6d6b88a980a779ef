/**
 * Where the bundles of a placement group go, all of them or none: a pure function of the bundles and what the nodes look like now.
 *
 * The strict strategies are exact: a place is found if there is one. PACK and SPREAD prefer few or many nodes and then take
 * what they get; their search gives up after `maxSteps`, and the group waits for the next change.
 */
import type { GroupStrategy } from "../rpc/cluster.ts";
import type { LabelConditions } from "../rpc/demand.ts";
import { assertNever } from "../shared/errors.ts";
import { type Labels, meets } from "./labels.ts";
import { change, covers, type Units } from "./resources.ts";

export interface BundleRequest {
  readonly units: Units;
  readonly selector: LabelConditions;
}

export interface NodeRoom {
  readonly nodeId: string;
  readonly labels: Labels;
  /** What is free there, or all that it has, if the question is whether the group could ever be placed. */
  readonly room: Units;
  /** Bundles of this group that are there already. */
  readonly bundlesHere: number;
}

/** The node of each bundle, or undefined when they cannot all be placed. */
export function planBundles(
  bundles: readonly BundleRequest[],
  strategy: GroupStrategy,
  nodes: readonly NodeRoom[],
): readonly string[] | undefined {
  switch (strategy) {
    case "STRICT_PACK":
      return onOneNode(bundles, nodes);
    case "STRICT_SPREAD":
      return oneEach(
        bundles,
        nodes.filter(({ bundlesHere }) => bundlesHere === 0),
      );
    case "PACK":
      return onOneNode(bundles, homesFirst(nodes)) ?? search(bundles, nodes, fullestFirst);
    case "SPREAD":
      return search(bundles, nodes, emptiestFirst);
    default:
      return assertNever(strategy);
  }
}

function onOneNode(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
): readonly string[] | undefined {
  const sum = new Map<string, number>();
  for (const { units } of bundles) change(sum, units, 1);
  const node = nodes.find(
    ({ room, labels }) =>
      covers(room, sum) && bundles.every(({ selector }) => meets(labels, selector)),
  );
  return node === undefined ? undefined : bundles.map(() => node.nodeId);
}

function homesFirst(nodes: readonly NodeRoom[]): readonly NodeRoom[] {
  return nodes.toSorted((left, right) => right.bundlesHere - left.bundlesHere);
}

/** Each bundle on a node of its own: a bipartite matching, by augmenting paths. */
function oneEach(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
): readonly string[] | undefined {
  const bundleOn = new Map<NodeRoom, number>();
  const place = (index: number, tried: Set<NodeRoom>): boolean => {
    const bundle = bundles[index] as BundleRequest;
    const fitting = nodes.filter((node) => fits(bundle, node.room, node.labels));
    const free = fitting.find((node) => !bundleOn.has(node));
    if (free !== undefined) {
      bundleOn.set(free, index);
      return true;
    }
    for (const node of fitting) {
      if (tried.has(node)) continue;
      tried.add(node);
      if (!place(bundleOn.get(node) as number, tried)) continue;
      bundleOn.set(node, index);
      return true;
    }
    return false;
  };
  for (let index = 0; index < bundles.length; index++) {
    if (!place(index, new Set())) return undefined;
  }
  const plan: string[] = [];
  for (const [node, index] of bundleOn) plan[index] = node.nodeId;
  return plan;
}

interface Candidate {
  readonly node: NodeRoom;
  readonly left: Map<string, number>;
  /** How many of the bundles it could take alone. */
  readonly capacity: number;
  count: number;
}

type Preference = (left: Candidate, right: Candidate) => number;

/** Few nodes: those in use already, then those that take most. */
const fullestFirst: Preference = (left, right) =>
  right.count - left.count || right.capacity - left.capacity;

const emptiestFirst: Preference = (left, right) => left.count - right.count;

const maxSteps = 1000;

/** Takes the big bundles first, each to the node it likes best, and goes back when one has no place. */
function search(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
  preference: Preference,
): readonly string[] | undefined {
  if (!couldHold(bundles, nodes)) return undefined;
  const candidates: Candidate[] = nodes.map((node) => ({
    node,
    left: new Map(node.room),
    capacity: capacityOf(node, bundles),
    count: node.bundlesHere,
  }));
  const sizes = bundles.map((bundle) => sizeOf(bundle, nodes));
  const order = [...bundles.keys()].toSorted(
    (left, right) => (sizes[right] as number) - (sizes[left] as number),
  );
  const plan: string[] = [];
  let steps = 0;
  const place = (position: number): boolean => {
    const index = order[position];
    if (index === undefined) return true;
    const bundle = bundles[index] as BundleRequest;
    for (const candidate of candidates.toSorted(preference)) {
      if (steps > maxSteps) return false;
      if (!fits(bundle, candidate.left, candidate.node.labels)) continue;
      steps += 1;
      change(candidate.left, bundle.units, -1);
      candidate.count += 1;
      plan[index] = candidate.node.nodeId;
      if (place(position + 1)) return true;
      change(candidate.left, bundle.units, 1);
      candidate.count -= 1;
    }
    return false;
  };
  return place(0) ? plan : undefined;
}

/** Quickly said of most groups that have to wait: each bundle has a node that it fits on, and all of them are not more than there is. */
function couldHold(bundles: readonly BundleRequest[], nodes: readonly NodeRoom[]): boolean {
  const wanted = new Map<string, number>();
  const room = new Map<string, number>();
  for (const { units } of bundles) change(wanted, units, 1);
  for (const node of nodes) change(room, node.room, 1);
  return (
    covers(room, wanted) &&
    bundles.every((bundle) => nodes.some((node) => fits(bundle, node.room, node.labels)))
  );
}

/** As a share of what the best node has: a GPU of 2 is more than a CPU of 64. */
function sizeOf({ units }: BundleRequest, nodes: readonly NodeRoom[]): number {
  let size = 0;
  for (const [name, wanted] of units) {
    const most = nodes.reduce((best, { room }) => Math.max(best, room.get(name) ?? 0), 1);
    size = Math.max(size, wanted / most);
  }
  return size;
}

function capacityOf({ room, labels }: NodeRoom, bundles: readonly BundleRequest[]): number {
  const left = new Map(room);
  let count = 0;
  for (const bundle of bundles) {
    if (!fits(bundle, left, labels)) continue;
    change(left, bundle.units, -1);
    count += 1;
  }
  return count;
}

function fits({ units, selector }: BundleRequest, room: Units, labels: Labels): boolean {
  return covers(room, units) && meets(labels, selector);
}
