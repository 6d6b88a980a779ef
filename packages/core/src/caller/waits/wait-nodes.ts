/**
 * This runtime's part of the graph of waits: its calls and objects, and the actors that it is about
 * to create.
 *
 * Looked up when somebody asks. Nodes of this runtime that a call needs come along with it, because
 * nobody else could name them.
 */
import { freeNode, nodeId, partsOfNode, type WaitNode } from "../../rpc/wait-graph.ts";
import type { ObjectEntry } from "../../store/object-entry.ts";
import { Call } from "../calls/call.ts";
import type { Caller } from "../caller.ts";
import type { Wait } from "./stuck-watch.ts";
import { StreamState } from "../stream.ts";
import type { Waitable } from "./waitable.ts";

/** Who waits for more at a time is not looked at: it would cost more than it is worth. */
const mostTargets = 1000;

export class WaitNodes {
  readonly #caller: Caller;
  readonly #nodes: Map<string, WaitNode> = new Map();

  constructor(caller: Caller) {
    this.#caller = caller;
  }

  get all(): readonly WaitNode[] {
    return [...this.#nodes.values()];
  }

  add(node: WaitNode): WaitNode {
    this.#nodes.set(node.id, node);
    return node;
  }

  /** A node that another runtime asks for; free if it is not known here. */
  find(id: string): WaitNode {
    const { kind, key } = partsOfNode(id);
    const { store } = this.#caller.objects;
    if (kind === "actor") return this.#actor(id, key);
    const entry = kind === "object" ? store.exported(`${this.#caller.id}:${key}`) : undefined;
    return entry === undefined ? this.add(freeNode(id)) : this.#object(id, entry);
  }

  /** The wait of an execution. */
  wait(wait: Wait): WaitNode {
    const { what, waitables, task, sinceMs, numReturns } = wait;
    const id = nodeId("wait", this.#caller.id, `${wait.id}`);
    const targets = waitables.filter(({ isReady }) => !isReady);
    const ready = waitables.length - targets.length;
    // A get ends with the first failure, so that all of its refs must be stuck.
    const least =
      numReturns === undefined ? targets.length : targets.length - (numReturns - ready) + 1;
    const isLong = targets.length > mostTargets;
    if (!wait.isEndless || targets.length === 0 || isLong || this.#isFree(targets, least)) {
      return this.add(freeNode(id));
    }
    const of = targets.map((target) => this.target(target));
    const name = `${task?.taskName} (${task?.taskId})`;
    return this.add({
      id,
      name,
      says: `waits in ${what} for`,
      of,
      least,
      wait: { beganMs: sinceMs },
    });
  }

  /** Whether enough of them go on, as far as can be seen without a question. */
  #isFree(targets: readonly Waitable[], least: number): boolean {
    const free = targets.filter((target) => isFree(target, this.#caller.id));
    return targets.length - free.length < least;
  }

  /** The id of what makes it ready. */
  target(waitable: Waitable): string {
    if (waitable instanceof StreamState) return this.#entry(waitable.completion);
    return this.#entry(waitable as ObjectEntry);
  }

  #entry(entry: ObjectEntry): string {
    const id = nodeId("object", entry.owner, `${entry.sequence}`);
    if (entry.owner === this.#caller.id && !this.#nodes.has(id)) this.#object(id, entry);
    return id;
  }

  #object(id: string, entry: ObjectEntry): WaitNode {
    // Before what it needs is looked at, which may need it.
    this.#nodes.set(id, freeNode(id));
    const call = entry.producer;
    const name = nameOf(entry);
    if (entry.outcome !== undefined || !(call instanceof Call) || call.isCancelled) {
      return this.add({ ...freeNode(id), name });
    }
    return this.add({ id, name, least: 1, ...this.#needs(call) });
  }

  #needs(call: Call): Pick<WaitNode, "of"> & Partial<WaitNode> {
    switch (call.stage) {
      case "arguments": {
        const missing = call.args.dependencies.filter(({ outcome }) => outcome === undefined);
        return { of: missing.map((one) => this.#entry(one)), says: "waits for its argument" };
      }
      case "turn": {
        const head = firstOf(call);
        if (head === undefined || head === call) return { of: [] };
        return { of: [this.#entry(head.entry)], says: "stands in the queue of its actor behind" };
      }
      case "actor": {
        const { info } = call.owner;
        if (info === undefined) return { of: [] };
        return { of: [nodeId("actor", info.owner, info.actorId)], says: "waits for its actor:" };
      }
      case "sent": {
        const task = `${this.#caller.id}:${call.entry.sequence}`;
        return { of: [nodeId("task", call.session?.peerId ?? "", task)], mark: call.id };
      }
      default:
        // Others may let go of credit, or of a worker.
        return { of: [] };
    }
  }

  #actor(id: string, actorId: string): WaitNode {
    const missing = this.#caller.starts
      .missingFor(actorId)
      .filter(({ outcome }) => outcome === undefined);
    if (missing.length === 0) return this.add(freeNode(id));
    const of = missing.map((one) => this.#entry(one));
    const says = "is not created before its argument is there:";
    return this.add({ id, name: `actor ${actorId}`, says, of, least: 1 });
  }
}

export function nameOf(entry: ObjectEntry): string {
  return `${entry.label} (${entry.id})`;
}

function isFree(target: Waitable, here: string): boolean {
  const entry = target instanceof StreamState ? target.completion : (target as ObjectEntry);
  if (entry.owner !== here) return false;
  const call = entry.producer;
  return !(call instanceof Call) || call.stage === "worker" || call.stage === "credit";
}

function firstOf({ queue }: Call): Call | undefined {
  for (const call of queue) if (!call.isSettled) return call;
  return undefined;
}
