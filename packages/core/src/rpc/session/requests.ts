/**
 * Calls and fetches that one session has sent and that have no answer yet. Calls need credit
 * (credit.ts); fetches have a limit of their own and wait here for their turn.
 *
 * Each has a slot, whose number is its id on the wire; a free slot is used again. Not a Map: a Map
 * that fills and empties with every turn is rebuilt again and again, and its old tables burden the
 * collector (measured: 1.6 times the cost of a call).
 */
import type { Pending } from "../../protocol/message.ts";
import type { DeathCause } from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { Claims } from "./claims.ts";
import { Credit, type CreditLimits } from "./credit.ts";
import { maxFetches } from "./ledger.ts";

/** The value of an object, asked of its owner. */
export interface Fetch {
  readonly objectId: string;
  /** The value itself is wanted; no stub will do. */
  readonly whole: boolean;
  readonly pending: Pending;
}

/** Keeps the id of a call that was taken back until its answer is here. */
const takenBack: Pending = { isCall: true, settle: () => undefined, lose: () => undefined };

export class Requests {
  readonly credit: Credit;
  readonly #sendFetch: (id: number, fetch: Fetch) => void;
  readonly #claims: Claims;
  readonly #pending: (Pending | undefined)[] = [];
  readonly #sequences: number[] = [];
  readonly #free: number[] = [];
  #sequence = 0;
  #size = 0;
  /** Ids of the fetches that were sent. */
  readonly #fetches: Set<number> = new Set();
  readonly #laterFetches: Fifo<Fetch> = new Fifo();

  /** @param claims memory for the claims of calls, if both sides share some */
  constructor(
    credit: CreditLimits,
    sendFetch: (id: number, fetch: Fetch) => void,
    claims: () => Int32Array | undefined = () => undefined,
  ) {
    this.credit = new Credit(credit, this);
    this.#sendFetch = sendFetch;
    this.#claims = new Claims(claims);
  }

  get size(): number {
    return this.#size;
  }

  /** Oldest first. */
  all(): Pending[] {
    return this.#ids().flatMap((id) => this.#pending[id] ?? []);
  }

  /** Opens the claim of what is added next. Returns whether it can be taken back then. */
  opensClaim(): boolean {
    return this.#claims.opens(this.#free.at(-1) ?? this.#pending.length);
  }

  /** Takes a call back, which may be sent again. Returns whether it has not begun. */
  takesBack(id: number): boolean {
    if (!this.#claims.takesBack(id)) return false;
    this.#pending[id] = takenBack;
    return true;
  }

  /** Whether a call that was sent with a claim has begun. */
  hasBegun(id: number): boolean {
    return this.#claims.hasBegun(id);
  }

  /** Returns the id of the call. */
  add(pending: Pending): number {
    const id = this.#free.pop() ?? this.#pending.length;
    this.#pending[id] = pending;
    this.#sequences[id] = this.#sequence++;
    this.#size += 1;
    return id;
  }

  /** Sends a fetch, or keeps it until one of those that are under way is answered. */
  fetch(fetch: Fetch): void {
    if (this.#fetches.size >= maxFetches) return this.#laterFetches.push(fetch);
    const id = this.add(fetch.pending);
    this.#fetches.add(id);
    this.#sendFetch(id, fetch);
  }

  peek(id: number): Pending | undefined {
    return this.#pending[id];
  }

  /** Removes a request whose answer is here, and lets others go on that waited for its place. */
  take(id: number): Pending | undefined {
    const pending = this.#remove(id);
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
    for (const id of this.#ids()) {
      if (this.#pending[id]?.isCall === true) this.take(id)?.settle({ kind: "absent", id });
    }
  }

  /** Oldest first. */
  lose(reason: DeathCause): void {
    this.credit.lose();
    const lost = this.#ids().flatMap((id) => this.#remove(id) ?? []);
    for (const pending of lost) pending.lose(reason);
    for (const { pending } of this.#laterFetches.drain()) pending.lose(reason);
  }

  #remove(id: number): Pending | undefined {
    const pending = this.#pending[id];
    if (pending === undefined) return undefined;
    this.#pending[id] = undefined;
    this.#free.push(id);
    this.#size -= 1;
    return pending;
  }

  /** In the order in which they were added. */
  #ids(): number[] {
    const ids = [...this.#pending.keys()].filter((id) => this.#pending[id] !== undefined);
    return ids.toSorted(
      (left, right) => (this.#sequences[left] ?? 0) - (this.#sequences[right] ?? 0),
    );
  }
}
