/**
 * Calls and fetches that one session has sent and that have no answer yet. Calls need credit
 * (credit.ts); fetches have a limit of their own and wait here for their turn.
 */
import type { DeathCause } from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Credit, type CreditLimits } from "./credit.ts";
import { maxFetches } from "./ledger.ts";
import { type Pending, PendingTable } from "./pending-table.ts";

/** The value of an object, asked of its owner. */
export interface Fetch {
  readonly objectId: string;
  /** The value itself is wanted; no stub will do. */
  readonly whole: boolean;
  readonly pending: Pending;
}

export class Requests {
  readonly credit: Credit;
  readonly #sendFetch: (id: number, fetch: Fetch) => void;
  readonly #pending: PendingTable = new PendingTable();
  /** Ids of the fetches that were sent. */
  readonly #fetches: Set<number> = new Set();
  readonly #laterFetches: Fifo<Fetch> = new Fifo();

  constructor(credit: CreditLimits, sendFetch: (id: number, fetch: Fetch) => void) {
    this.credit = new Credit(credit, this.#pending);
    this.#sendFetch = sendFetch;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Oldest first. */
  all(): Iterable<Pending> {
    return this.#pending.all();
  }

  /** Returns the id of the call. */
  add(pending: Pending): number {
    return this.#pending.add(pending);
  }

  /** Sends a fetch, or keeps it until one of those that are under way is answered. */
  fetch(fetch: Fetch): void {
    if (this.#fetches.size >= maxFetches) return this.#laterFetches.push(fetch);
    const id = this.#pending.add(fetch.pending);
    this.#fetches.add(id);
    this.#sendFetch(id, fetch);
  }

  peek(id: number): Pending | undefined {
    return this.#pending.peek(id);
  }

  /** Removes a request whose answer is here, and lets others go on that waited for its place. */
  take(id: number): Pending | undefined {
    const pending = this.#pending.take(id);
    if (pending === undefined) return undefined;
    this.credit.refund(id);
    if (this.#fetches.size > 0 && this.#fetches.delete(id)) {
      const later = this.#laterFetches.shift();
      if (later !== undefined) this.fetch(later);
    }
    this.credit.resume();
    return pending;
  }

  /** The other side starts nothing more: calls without an answer never began there. */
  neverBegan(): void {
    for (const id of this.#pending.calls()) this.take(id)?.settle({ kind: "absent", id });
  }

  lose(reason: DeathCause): void {
    this.credit.lose();
    for (const pending of this.#pending.takeAll()) pending.lose(reason);
    for (const { pending } of this.#laterFetches.drain()) pending.lose(reason);
  }
}
