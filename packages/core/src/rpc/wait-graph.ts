/**
 * Who waits for whom, as plain data from several runtimes, and which waits can be proved never to
 * end.
 *
 * A node is stuck if enough of the nodes that it needs are stuck. The greatest set of nodes for
 * which that holds can never go on by itself: an unknown node, and a node that runs, is free. A
 * cycle always contains the wait of an execution: arguments alone make none, because a ref can be
 * passed only to calls that are made after the call that makes it, and a retried call goes before
 * the calls that wait for it.
 */

/** One call, execution, wait or actor, as the runtime sees it that knows it. */
export interface WaitNode {
  readonly id: string;
  /** For people. */
  readonly name: string;
  /**
   * Words between its name and the name of the node it needs; undefined where it only passes on.
   */
  readonly says?: string;
  /** Ids of those that it needs. */
  readonly of: readonly string[];
  /** It is stuck when so many of them are. Of one that needs nothing: 1, and so it is free. */
  readonly least: number;
  /** Tells one attempt from the next, where the rest may look alike. */
  readonly mark?: number;
  /** When the wait of an execution began, as of clockMs(). */
  readonly wait?: { readonly beganMs: number };
}

export type NodeKind = "object" | "task" | "wait" | "actor";

/** @param home the runtime that knows it */
export function nodeId(kind: NodeKind, home: string, key: string): string {
  return `${kind}|${home}|${key}`;
}

export function partsOfNode(id: string): {
  readonly kind: string;
  readonly home: string;
  readonly key: string;
} {
  const [kind = "", home = "", ...key] = id.split("|");
  return { kind, home, key: key.join("|") };
}

/** One that needs nothing. */
export function freeNode(id: string): WaitNode {
  return { id, name: id, of: [], least: 1 };
}

export type Nodes = ReadonlyMap<string, WaitNode>;

/** A cycle of nodes that are all stuck. The last of its waits to begin is to be ended. */
export interface Cycle {
  readonly victim: WaitNode;
  /** One sentence for each step, from the victim around to it. */
  readonly steps: readonly string[];
  /** All nodes that it rests on. */
  readonly rests: readonly WaitNode[];
}

/** The nodes that can never go on. */
export function stuckNodes(nodes: Nodes): ReadonlySet<string> {
  const stuck = new Set<string>();
  const needers = new Map<string, string[]>();
  const counts = new Map<string, number>();
  for (const { id, of } of nodes.values()) {
    stuck.add(id);
    counts.set(id, of.filter((needed) => nodes.has(needed)).length);
    for (const needed of of) {
      const known = needers.get(needed);
      if (known === undefined) needers.set(needed, [id]);
      else known.push(id);
    }
  }
  const isFree = (id: string): boolean =>
    (counts.get(id) ?? 0) < (nodes.get(id)?.least ?? Number.POSITIVE_INFINITY);
  const freed = [...stuck].filter(isFree);
  for (const id of freed) stuck.delete(id);
  for (let id = freed.pop(); id !== undefined; id = freed.pop()) {
    for (const needer of needers.get(id) ?? []) {
      counts.set(needer, (counts.get(needer) ?? 0) - 1);
      if (!stuck.has(needer) || !isFree(needer)) continue;
      stuck.delete(needer);
      freed.push(needer);
    }
  }
  return stuck;
}

/** The cycles among them, one for each group of waits that wait for each other. */
export function cyclesOf(nodes: Nodes): readonly Cycle[] {
  const stuck = stuckNodes(nodes);
  const waits = [...nodes.values()]
    .filter(({ id, wait }) => wait !== undefined && stuck.has(id))
    .toSorted(lastFirst);
  const found: { readonly cycle: Cycle; readonly reached: ReadonlySet<string> }[] = [];
  for (const wait of waits) {
    const cameFrom = reach(nodes, stuck, wait.id);
    const path = pathBack(cameFrom, wait.id);
    if (path === undefined) continue;
    const isOfOther = found.some(
      ({ cycle, reached }) => cameFrom.has(cycle.victim.id) && reached.has(wait.id),
    );
    if (isOfOther) continue;
    const rests = [...cameFrom.keys()].flatMap((id) => nodes.get(id) ?? []);
    const cycle = { victim: wait, steps: sentences(nodes, path), rests };
    found.push({ cycle, reached: new Set(cameFrom.keys()) });
  }
  return found.map(({ cycle }) => cycle);
}

/**
 * Whether everything that the cycle rests on is unchanged: then it held at one moment between both
 * looks, and holds for ever.
 */
export function isConfirmed({ rests }: Cycle, later: Nodes): boolean {
  return rests.every((node) => {
    const now = later.get(node.id);
    return (
      now !== undefined &&
      now.least === node.least &&
      now.mark === node.mark &&
      now.of.length === node.of.length &&
      now.of.every((id, index) => id === node.of[index])
    );
  });
}

function lastFirst(left: WaitNode, right: WaitNode): number {
  const later = (right.wait?.beganMs ?? 0) - (left.wait?.beganMs ?? 0);
  return later === 0 ? (left.id < right.id ? 1 : -1) : later;
}

/**
 * The predecessor of each stuck node that can be reached from `start`. `start` itself is included
 * only if it can be reached.
 */
function reach(
  nodes: Nodes,
  stuck: ReadonlySet<string>,
  start: string,
): ReadonlyMap<string, string> {
  const cameFrom = new Map<string, string>();
  const queue = [start];
  for (const id of queue) {
    for (const next of nodes.get(id)?.of ?? []) {
      if (!stuck.has(next) || cameFrom.has(next)) continue;
      cameFrom.set(next, id);
      queue.push(next);
    }
  }
  return cameFrom;
}

/** From `start` to the one before it is reached again. */
function pathBack(cameFrom: ReadonlyMap<string, string>, start: string): string[] | undefined {
  const path: string[] = [];
  for (let id = cameFrom.get(start); id !== undefined; id = cameFrom.get(id)) {
    path.unshift(id);
    if (id === start) return path;
  }
  return undefined;
}

function sentences(nodes: Nodes, path: readonly string[]): string[] {
  return path.flatMap((id, index) => {
    const node = nodes.get(id);
    const next = nodes.get(path[(index + 1) % path.length] ?? "");
    return node?.says === undefined ? [] : [`${node.name} ${node.says} ${next?.name ?? ""}`];
  });
}
