/**
 * Proves that calls and tasks wait for themselves, through whatever hosts, and ends one wait of each such cycle.
 *
 * Hosts name suspects. What these need is gathered from those who know it, in rounds, and twice: where all that a cycle rests on is the same in both looks, it was so at
 * one moment between them, and what cannot go on at one moment never can. A host that does not answer is not known, so that nothing is proved through it.
 * Rests after each proof for the longer the more it has asked, so that it takes a few hundredths of the time, however many wait for how long.
 */
import { setTimeout as pause } from "node:timers/promises";
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
import { answerOf } from "./observe/status.ts";

export interface DeadlocksParts {
  readonly driverId: string;
  readonly caller: () => Caller;
  readonly directory: () => LocalDirectory;
  /** Or they are only told of. */
  readonly rejects: boolean;
}

/** A host that takes longer is held by code that runs, and so is not stuck. */
const answerMs = 1000;

/** From one look to the other. */
const betweenLooksMs = 10;

/** A question costs both sides together some 0.1 ms. */
const restPerQuestionMs = 2;
const longestRestMs = 1000;

/** More are not looked at. */
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

  /** Ends early when it is closed. */
  async #pause(ms: number): Promise<void> {
    const { signal } = this.#closed;
    await pause(ms, undefined, { ref: false, signal }).catch(() => undefined);
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
        // It has ended, and the wait with it.
        .catch(() => undefined);
    }
  }

  /** All that those need, so far as it may be stuck. */
  async #look(roots: readonly string[]): Promise<Nodes> {
    const nodes = new Map<string, WaitNode>();
    for (let ids = [...roots]; ids.length > 0 && nodes.size < mostNodes; ids = missingIn(nodes)) {
      const homes = Map.groupBy(ids, (id) => partsOfNode(id).home);
      const found = await Promise.all(
        Array.from(homes, ([home, asked]) => this.#nodesOf(home, asked)),
      );
      for (const node of found.flat()) nodes.set(node.id, node);
      for (const id of ids) if (!nodes.has(id)) nodes.set(id, freeNode(id));
      // With what is not known yet as if it were stuck: is anything left to prove?
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

  /** An actor is known by its creator only until it is started. */
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

/** Ids that are needed by what is known, and are not. */
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
