/**
 * Proves that calls and tasks wait for themselves, through any number of hosts, and ends one wait
 * of each such cycle.
 *
 * Hosts report suspects. The nodes that these depend on are gathered from their hosts in rounds,
 * and twice. If everything that a cycle depends on is the same in both looks, the cycle existed at
 * a moment between them, and a call that cannot go on at one moment never can. A host that does not
 * answer is unknown, so nothing is proved through it. The rest after each proof grows with the
 * number of queries, so that proofs take a few hundredths of the time, however many calls wait.
 */
import type { Caller } from "../caller/caller.ts";
import { WaitNodes } from "../caller/waits/wait-nodes.ts";
import {
  cyclesOf,
  freeNode,
  isConfirmed,
  type Nodes,
  partsOfNode,
  stuckNodes,
  type WaitNode,
} from "../rpc/wait-graph.ts";
import type { LocalDirectory } from "./directory.ts";
import type { Host } from "./launch/host.ts";
import { answerOf } from "./observe/actor-status.ts";
import { pause } from "../shared/machine/timers.ts";

export interface DeadlocksParts {
  readonly driverId: string;
  readonly caller: () => Caller;
  readonly directory: () => LocalDirectory;
  /** Whether a wait in a cycle rejects; otherwise a warning reports it. */
  readonly rejects: boolean;
}

/** A host that takes longer, in ms, is busy with running code, and so is not stuck. */
const answerMs = 1000;

/** The pause between the two looks. */
const betweenLooksMs = 10;

/** A query costs both sides together about 0.1 ms. */
const restPerQuestionMs = 2;
const longestRestMs = 1000;

/** Further nodes are not examined. */
const mostNodes = 10_000;

export class Deadlocks {
  readonly #parts: DeadlocksParts;
  readonly #suspects: Set<string> = new Set();
  #questions = 0;
  #isRunning = false;
  readonly #closed: AbortController = new AbortController();

  constructor(parts: DeadlocksParts) {
    this.#parts = parts;
  }

  suspect(taskNodeIds: readonly string[]): void {
    if (this.#closed.signal.aborted) return;
    for (const id of taskNodeIds) this.#suspects.add(id);
    if (!this.#isRunning) void this.#run();
  }

  close(): void {
    this.#closed.abort();
    this.#suspects.clear();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#suspects.size > 0) {
      const suspects = [...this.#suspects];
      this.#suspects.clear();
      this.#questions = 0;
      await this.#examine(suspects);
      const restMs = Math.min(longestRestMs, restPerQuestionMs * this.#questions);
      await this.#pause(restMs);
    }
    this.#isRunning = false;
  }

  /** Waits; ends early when the detector is closed. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closed;
    await pause(ms, { ref: false, signal });
  }

  async #examine(suspects: readonly string[]): Promise<void> {
    const cycles = cyclesOf(await this.#look(suspects));
    if (cycles.length === 0) return;
    await this.#pause(betweenLooksMs);
    const later = await this.#look(suspects);
    for (const cycle of cycles) {
      if (this.#closed.signal.aborted || !isConfirmed(cycle, later)) continue;
      const { victim, steps } = cycle;
      const { rejects } = this.#parts;
      await this.#hosts()
        .get(partsOfNode(victim.id).home)
        ?.control((control) => control.foundCycle(victim.id, steps, rejects))
        // The host has ended, and the wait with it.
        .catch(() => undefined);
    }
  }

  /** Gathers all nodes that the roots depend on, as long as the roots may be stuck. */
  async #look(roots: readonly string[]): Promise<Nodes> {
    const nodes = new Map<string, WaitNode>();
    for (let ids = [...roots]; ids.length > 0 && nodes.size < mostNodes; ids = missingIn(nodes)) {
      const homes = Map.groupBy(ids, (id) => partsOfNode(id).home);
      const found = await Promise.all(
        Array.from(homes, ([home, asked]) => this.#nodesOf(home, asked)),
      );
      for (const node of found.flat()) nodes.set(node.id, node);
      for (const id of ids) if (!nodes.has(id)) nodes.set(id, freeNode(id));
      // Counts unknown nodes as stuck: is anything left to prove?
      const stuck = stuckNodes(withUnknown(nodes));
      if (!roots.some((id) => stuck.has(id))) break;
    }
    return nodes;
  }

  async #nodesOf(home: string, ids: readonly string[]): Promise<readonly WaitNode[]> {
    const known = ids.filter((id) => this.#mayBeStuck(id));
    if (home === this.#parts.driverId) {
      const nodes = new WaitNodes(this.#parts.caller());
      for (const id of known) nodes.find(id);
      return nodes.all;
    }
    const host = this.#hosts().get(home);
    if (host === undefined || known.length === 0) return [];
    this.#questions += 1;
    const ask: Parameters<typeof host.control<readonly WaitNode[]>>[0] = (control) =>
      control.waitNodes(known);
    return (await answerOf<readonly WaitNode[]>(host, ask, answerMs)) ?? [];
  }

  /** Its creator knows an actor only until it is started. */
  #mayBeStuck(id: string): boolean {
    const { kind, key } = partsOfNode(id);
    return kind !== "actor" || this.#parts.directory().isRegistered(key);
  }

  #hosts(): ReadonlyMap<string, Host> {
    return new Map(
      this.#parts
        .directory()
        .hosts()
        .map((host) => [host.id, host]),
    );
  }
}

/** Returns the ids of nodes that known nodes depend on and that are unknown. */
function missingIn(nodes: Nodes): string[] {
  const missing = new Set<string>();
  for (const { of } of nodes.values()) {
    for (const id of of) if (!nodes.has(id)) missing.add(id);
  }
  return [...missing];
}

function withUnknown(nodes: Nodes): Nodes {
  const unknown = missingIn(nodes).map((id): [string, WaitNode] => [
    id,
    { id, name: id, of: [id], least: 1 },
  ]);
  return new Map([...nodes, ...unknown]);
}
