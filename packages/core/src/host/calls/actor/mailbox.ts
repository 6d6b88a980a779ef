/** The mailbox of an actor: calls that wait for their turn, by concurrency group. */
import type { ActorInfo } from "../../../rpc/directory.ts";
import { Fifo } from "../../../shared/fifo.ts";
import type { Execution } from "../execution.ts";

/** Calls that share a limit. */
export interface Group {
  readonly limit: number;
  readonly queue: Fifo<Execution>;
  /** The number of queued calls that already have their answer. */
  withdrawn: number;
  running: number;
}

/** This many answered calls may stay in a queue, however short it is. */
const mostWithdrawn = 1024;

const none: ReadonlyMap<string, Group> = new Map();

export class ConcurrencyGroups {
  /** Calls without a group of their own. */
  readonly #own: Group;
  readonly #named: ReadonlyMap<string, Group>;

  constructor({ maxConcurrency, concurrencyGroups }: ActorInfo) {
    this.#own = newGroup(maxConcurrency);
    const named = Object.entries(concurrencyGroups);
    this.#named =
      named.length === 0 ? none : new Map(named.map(([name, limit]) => [name, newGroup(limit)]));
  }

  of(name: string | undefined): Group | undefined {
    return name === undefined ? this.#own : this.#named.get(name);
  }

  all(): Group[] {
    return [this.#own, ...this.#named.values()];
  }

  get load(): { readonly running: number; readonly queued: number } {
    let running = 0;
    let queued = 0;
    for (const group of this.all()) {
      running += group.running;
      queued += group.queue.size - group.withdrawn;
    }
    return { running, queued };
  }

  /** Returns the limit of the call's group, and whether all of its places are taken. */
  placesFor({ route }: Execution): { readonly limit: number; readonly isFull: boolean } {
    const group = this.of(route.shape?.group);
    return {
      limit: group?.limit ?? 0,
      isFull: group !== undefined && group.running === group.limit,
    };
  }

  /** Whether calls wait for the place of a running one. */
  isAwaited({ route }: Execution): boolean {
    const group = this.of(route.shape?.group);
    return group !== undefined && group.queue.size > group.withdrawn;
  }

  /**
   * Removes answered calls from the queue, so that they do not pile up behind a call that never
   * ends.
   */
  withdrawn({ route }: Execution): void {
    const group = this.of(route.shape?.group);
    if (group === undefined) return;
    group.withdrawn += 1;
    if (group.withdrawn < mostWithdrawn || 2 * group.withdrawn < group.queue.size) return;
    group.withdrawn = 0;
    for (const execution of group.queue.drain()) {
      if (execution.isQueued) group.queue.push(execution);
    }
  }

  /** Removes all calls from the queues. */
  *drain(): Iterable<Execution> {
    for (const group of this.all()) {
      group.withdrawn = 0;
      const executions = group.queue.drain();
      for (const execution of executions) execution.queued = undefined;
      yield* executions;
    }
  }
}

function newGroup(limit: number): Group {
  return { limit, queue: new Fifo(), withdrawn: 0, running: 0 };
}
