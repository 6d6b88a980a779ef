/**
 * Places the bundles of a placement group, all of them or none: a pure function of the bundles and
 * the current state of the nodes.
 *
 * The strict strategies are exact: they find a placement if one exists. PACK and SPREAD prefer few
 * or many nodes and accept others; their search gives up after `maxSteps`, and the group waits for
 * the next change.
 */
import type { GroupStrategy } from "../rpc/cluster-directory.ts";
import type { LabelConditions } from "../rpc/resource-demand.ts";
import { assertNever } from "../shared/errors.ts";
import { type Labels, meets } from "./labels.ts";
import { change, covers, type Units } from "./resources.ts";
import { present } from "../shared/errors/internal.ts";

export interface BundleRequest {
  readonly units: Units;
  readonly selector: LabelConditions;
}

export interface NodeRoom {
  readonly nodeId: string;
  readonly labels: Labels;
  /**
   * The free resources of the node, or its total resources if the question is whether the group
   * could ever be placed.
   */
  readonly room: Units;
  /** The number of the group's bundles that are already on the node. */
  readonly bundlesHere: number;
}

/** Returns the node of each bundle, or undefined when they cannot all be placed. */
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
  if (nodes.every(({ bundlesHere }) => bundlesHere === 0)) return nodes;
  return nodes.toSorted((left, right) => right.bundlesHere - left.bundlesHere);
}

/** Places each bundle on a node of its own: a bipartite matching, by augmenting paths. */
function oneEach(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
): readonly string[] | undefined {
  const bundleOn = new Map<NodeRoom, number>();
  const place = (index: number, tried: Set<NodeRoom>): boolean => {
    const bundle = present(bundles[index], "bundle");
    const fitsOn = (node: NodeRoom): boolean => fits(bundle, node.room, node.labels);
    const free = nodes.find((node) => !bundleOn.has(node) && fitsOn(node));
    if (free !== undefined) {
      bundleOn.set(free, index);
      return true;
    }
    // All nodes that it fits on are taken.
    for (const [node, other] of [...bundleOn].filter(([one]) => fitsOn(one))) {
      if (tried.has(node)) continue;
      tried.add(node);
      if (!place(other, tried)) continue;
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
  /** The node's own map until something is placed on it. */
  left: Units;
  /** The number of bundles that it could take alone. */
  readonly capacity: number;
  count: number;
}

interface Preference {
  /** Compares two nodes: negative if `left` is preferred. Ties go to the node that joined first. */
  readonly compare: (left: Candidate, right: Candidate) => number;
  /** Whether no node is preferred to this one: the others need no look. */
  readonly isBest: (candidate: Candidate) => boolean;
}

/** Prefers few nodes: used ones first, then those that take the most bundles. */
const fullestFirst: Preference = {
  compare: (left, right) => right.count - left.count || right.capacity - left.capacity,
  isBest: () => false,
};

const emptiestFirst: Preference = {
  compare: (left, right) => left.count - right.count,
  isBest: ({ count }) => count === 0,
};

const maxSteps = 1000;

/**
 * Takes the big bundles first, each to its preferred node, and backtracks when a bundle has no
 * place.
 */
function search(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
  preference: Preference,
): readonly string[] | undefined {
  if (bundles.length > 1 && !couldHold(bundles, nodes)) return undefined;
  const capacityOf = preference === fullestFirst ? capacityFor(bundles) : () => 0;
  const candidates = new Candidates(nodes, capacityOf);
  const order = biggestFirst(bundles, nodes);
  const plan: string[] = [];
  let steps = 0;
  const place = (position: number): boolean => {
    const index = order[position];
    if (index === undefined) return true;
    const bundle = present(bundles[index], "bundle");
    const tried = new Set<Candidate>();
    for (;;) {
      const best = bestOf(candidates, bundle, preference, tried);
      if (best === undefined || steps > maxSteps) return false;
      steps += 1;
      tried.add(best);
      const { left } = best;
      best.left = without(left, bundle.units);
      best.count += 1;
      plan[index] = best.node.nodeId;
      if (place(position + 1)) return true;
      best.left = left;
      best.count -= 1;
    }
  };
  return place(0) ? plan : undefined;
}

/** Candidates are made when they are first looked at: mostly few of the nodes are. */
class Candidates {
  readonly #nodes: readonly NodeRoom[];
  readonly #capacityOf: (node: NodeRoom) => number;
  readonly #made: Candidate[] = [];

  constructor(nodes: readonly NodeRoom[], capacityOf: (node: NodeRoom) => number) {
    this.#nodes = nodes;
    this.#capacityOf = capacityOf;
  }

  /** Returns undefined behind the last one. */
  at(index: number): Candidate | undefined {
    return this.#made[index] ?? this.#make(index);
  }

  #make(index: number): Candidate | undefined {
    const node = this.#nodes[index];
    if (node === undefined) return undefined;
    const capacity = this.#capacityOf(node);
    const made = { node, left: node.room, capacity, count: node.bundlesHere };
    this.#made[index] = made;
    return made;
  }
}

function bestOf(
  candidates: Candidates,
  bundle: BundleRequest,
  preference: Preference,
  tried: ReadonlySet<Candidate>,
): Candidate | undefined {
  const { compare, isBest } = preference;
  let best: Candidate | undefined;
  let index = 0;
  for (let one = candidates.at(index); one !== undefined; one = candidates.at(++index)) {
    // The cheap test comes first: most nodes are no better than the best one so far.
    if (best !== undefined && compare(one, best) >= 0) continue;
    if (tried.has(one) || !fits(bundle, one.left, one.node.labels)) continue;
    best = one;
    if (isBest(one)) break;
  }
  return best;
}

function without(room: Units, units: Units): Units {
  const left = new Map(room);
  change(left, units, -1);
  return left;
}

/**
 * Refuses quickly most groups that have to wait: some bundle fits on no node, or all together
 * exceed the total.
 */
function couldHold(bundles: readonly BundleRequest[], nodes: readonly NodeRoom[]): boolean {
  const different = areAlike(bundles) ? bundles.slice(0, 1) : bundles;
  return (
    haveTogether(nodes, bundles) &&
    different.every((bundle) => nodes.some((node) => fits(bundle, node.room, node.labels)))
  );
}

/** Looks at no more nodes than it takes. */
function haveTogether(nodes: readonly NodeRoom[], bundles: readonly BundleRequest[]): boolean {
  const wanted = new Map<string, number>();
  for (const { units } of bundles) change(wanted, units, 1);
  const sum = new Map<string, number>();
  return nodes.some(({ room }) => {
    for (const name of wanted.keys()) {
      // A node that is overdrawn takes nothing from the others.
      sum.set(name, (sum.get(name) ?? 0) + Math.max(0, room.get(name) ?? 0));
    }
    return covers(sum, wanted);
  });
}

/**
 * Orders bundles by their share of the largest node's resources: a GPU of 2 is more than a CPU of
 * 64. Ties stay in order.
 */
function biggestFirst(
  bundles: readonly BundleRequest[],
  nodes: readonly NodeRoom[],
): readonly number[] {
  if (areAlike(bundles)) return [...bundles.keys()];
  const most = new Map<string, number>();
  const mostOf = (name: string): number => {
    let best = most.get(name);
    if (best !== undefined) return best;
    best = 1;
    for (const { room } of nodes) best = Math.max(best, room.get(name) ?? 0);
    most.set(name, best);
    return best;
  };
  const sizes = bundles.map(({ units }) =>
    [...units].reduce((size, [name, wanted]) => Math.max(size, wanted / mostOf(name)), 0),
  );
  return [...bundles.keys()].toSorted((left, right) => (sizes[right] ?? 0) - (sizes[left] ?? 0));
}

/** Counts the bundles that a node could take alone. */
function capacityFor(bundles: readonly BundleRequest[]): (node: NodeRoom) => number {
  const [first] = bundles;
  if (first === undefined || !areAlike(bundles)) {
    return (node) => fillOf(node, bundles);
  }
  const wanted = [...first.units].filter(([, units]) => units > 0);
  return ({ room, labels }) => {
    if (!meets(labels, first.selector)) return 0;
    let count = bundles.length;
    for (const [name, units] of wanted) {
      count = Math.min(count, Math.max(0, Math.floor((room.get(name) ?? 0) / units)));
    }
    return count;
  };
}

function areAlike(bundles: readonly BundleRequest[]): boolean {
  const [first] = bundles;
  return first !== undefined && bundles.every((bundle) => isSame(bundle, first));
}

function isSame(left: BundleRequest, right: BundleRequest): boolean {
  return (
    left === right ||
    (left.units.size === right.units.size &&
      [...left.units].every(([name, units]) => right.units.get(name) === units) &&
      JSON.stringify(left.selector) === JSON.stringify(right.selector))
  );
}

function fillOf({ room, labels }: NodeRoom, bundles: readonly BundleRequest[]): number {
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
