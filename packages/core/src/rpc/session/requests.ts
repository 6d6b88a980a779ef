/**
 * Calls and fetches that one session has sent and that have no answer yet, with their credit.
 *
 * At most `maxCalls` calls (twice an actor's concurrency, if that is more) and `maxBytes` of
 * arguments are under way; the caller keeps the rest. Fetches have a limit of their own and wait
 * here for their turn.
 */
import type { DeathCause } from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { freeCalls } from "./lane.ts";
import { maxFetches } from "./ledger.ts";
import { type Pending, PendingTable } from "./pending-table.ts";

export interface CreditLimits {
  readonly maxCalls: number;
  readonly maxBytes: number;
}

/**
 * More calls than any default concurrency (1,000), so that calls which wait for each other all
 * reach their actor; 16 MiB of arguments.
 */
export const defaultCredit: CreditLimits = { maxCalls: 4096, maxBytes: 16 * 1024 * 1024 };

/** The value of an object, asked of its owner. */
export interface Fetch {
  readonly objectId: string;
  /** The value itself is wanted; no stub will do. */
  readonly whole: boolean;
  readonly pending: Pending;
}

interface CreditWaiter {
  readonly maxConcurrency: number;
  readonly resume: () => void;
}

export class Requests {
  readonly #credit: CreditLimits;
  readonly #sendFetch: (id: number, fetch: Fetch) => void;
  readonly #pending: PendingTable = new PendingTable();
  readonly #creditWaiters: Fifo<CreditWaiter> = new Fifo();
  /** Ids of the fetches that were sent. */
  readonly #fetches: Set<number> = new Set();
  readonly #laterFetches: Fifo<Fetch> = new Fifo();
  #bytes = 0;

  constructor(credit: CreditLimits, sendFetch: (id: number, fetch: Fetch) => void) {
    this.#credit = credit;
    this.#sendFetch = sendFetch;
  }

  get size(): number {
    return this.#pending.size;
  }

  /** Oldest first. */
  all(): Iterable<Pending> {
    return this.#pending.all();
  }

  /** Whether one more call may be sent to an actor of that concurrency. */
  hasCredit(maxConcurrency: number): boolean {
    // Calls that may run together may wait for each other: they are sent whatever their size.
    const free = freeCalls(maxConcurrency);
    if (this.#pending.size < free) return true;
    return (
      this.#pending.size < Math.max(this.#credit.maxCalls, free) &&
      this.#bytes < this.#credit.maxBytes
    );
  }

  /** Calls back once when there is credit again, or the session is closed. */
  whenCredit(maxConcurrency: number, resume: () => void): void {
    this.#creditWaiters.push({ maxConcurrency, resume });
  }

  /** Returns the id of the call. */
  add(pending: Pending): number {
    return this.#pending.add(pending);
  }

  /** Counts bytes of a call until it is answered. */
  charge(id: number, bytes: number): void {
    this.#pending.charge(id, this.#pending.bytesOf(id) + bytes);
    this.#bytes += bytes;
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
    this.#bytes -= this.#pending.bytesOf(id);
    if (this.#fetches.size > 0 && this.#fetches.delete(id)) {
      const later = this.#laterFetches.shift();
      if (later !== undefined) this.fetch(later);
    }
    if (this.#creditWaiters.size > 0) this.#resumeWaiters();
    return pending;
  }

  /** The other side starts nothing more: calls without an answer never began there. */
  neverBegan(): void {
    for (const id of this.#pending.calls()) this.take(id)?.settle({ kind: "absent", id });
  }

  lose(reason: DeathCause): void {
    this.#bytes = 0;
    for (const pending of this.#pending.takeAll()) pending.lose(reason);
    for (const { pending } of this.#laterFetches.drain()) pending.lose(reason);
  }

  /** Everybody who waits for credit goes on: the session is closed. */
  resumeAll(): void {
    for (const { resume } of this.#creditWaiters.drain()) resume();
  }

  /** In order of asking, until one uses up the credit. */
  #resumeWaiters(): void {
    for (;;) {
      const first = this.#creditWaiters.peek();
      if (first === undefined || !this.hasCredit(first.maxConcurrency)) return;
      this.#creditWaiters.shift();
      first.resume();
    }
  }
}
