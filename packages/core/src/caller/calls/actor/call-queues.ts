/** Calls to one actor that were not sent, in the order in which they are to be sent. */
import type { FailureData } from "../../../protocol/failure.ts";
import { Fifo } from "../../../shared/fifo.ts";
import type { Call } from "../call.ts";

/** The failures of calls whose last attempt found no connection. */
export interface OutOfReach {
  readonly unsent: FailureData;
  /** For calls with an earlier attempt, which may have run. */
  readonly sentBefore: FailureData;
}

export class CallQueues {
  /** The queue of the default concurrency group. */
  readonly #queue: Fifo<Call> = new Fifo();
  #groups: Map<string, Fifo<Call>> | undefined;
  /** Calls to an unordered actor whose arguments are not ready. */
  #parked: Set<Call> | undefined;
  #search: Promise<void> | undefined;

  /** @param find looks for the actor's place; its calls were sent there then, or cannot be */
  async during(find: () => Promise<void>): Promise<void> {
    const search = find();
    this.#search = search;
    await search;
    if (this.#search === search) this.#search = undefined;
  }

  /** Resolves when none of the calls waits for the actor's place; undefined: none does. */
  get placed(): Promise<void> | undefined {
    for (const queue of this.all()) if (queue.peek() !== undefined) return this.#search;
    return undefined;
  }

  of(group: string | undefined): Fifo<Call> {
    if (group === undefined) return this.#queue;
    const groups = (this.#groups ??= new Map());
    let queue = groups.get(group);
    if (queue === undefined) {
      queue = new Fifo();
      groups.set(group, queue);
    }
    return queue;
  }

  all(): Iterable<Fifo<Call>> {
    return [this.#queue, ...(this.#groups?.values() ?? [])];
  }

  *calls(): Iterable<Call> {
    for (const queue of this.all()) yield* queue;
    yield* this.#parked ?? [];
  }

  /**
   * A call goes to the end of its queue. One that goes again is placed before the first that waits
   * for an argument, because that argument may come of it.
   */
  place(call: Call): void {
    if (!call.isAgain) return call.queue.push(call);
    call.queue.insert(call, ({ unresolved, isSettled }) => unresolved > 0 && !isSettled);
  }

  /** A call waits beside its queue until its arguments are ready. */
  park(call: Call): void {
    (this.#parked ??= new Set()).add(call);
  }

  /** Returns whether the call was parked. */
  unpark(call: Call): boolean {
    return this.#parked?.delete(call) === true;
  }

  /** Each call in a queue has used up a try. Returns whether one of them has another. */
  useTry({ unsent, sentBefore }: OutOfReach): boolean {
    let isWanted = false;
    for (const queue of this.all()) {
      for (const call of queue) {
        if (call.isSettled) continue;
        if (call.retriesLeft === 0) call.fail(call.mayHaveRun ? sentBefore : unsent);
        else {
          call.retriesLeft -= 1;
          isWanted = true;
        }
      }
    }
    return isWanted;
  }

  fail(failure: FailureData): void {
    for (const queue of this.all()) {
      for (const call of queue.drain()) if (!call.isSettled) call.fail(failure);
    }
    const parked = this.#parked ?? [];
    this.#parked = undefined;
    for (const call of parked) if (!call.isSettled) call.fail(failure);
  }
}
