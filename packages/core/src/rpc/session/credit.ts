/**
 * The credit of one session: how many calls, and how many bytes of arguments, may be under way to
 * the other side. The caller keeps the rest.
 *
 * At most `maxCalls` calls (twice an actor's concurrency, if that is more) and `maxBytes` of
 * arguments are under way. The other side counts them by the same rule (ledger.ts).
 */
import { Fifo } from "../../shared/fifo.ts";
import { freeCalls } from "./call-window.ts";

export interface CreditLimits {
  readonly maxCalls: number;
  readonly maxBytes: number;
}

/**
 * More calls than any default concurrency (1,000), so that calls which wait for each other all
 * reach their actor; 16 MiB of arguments.
 */
export const defaultCredit: CreditLimits = { maxCalls: 4096, maxBytes: 16 * 1024 * 1024 };

interface CreditWaiter {
  readonly maxConcurrency: number;
  readonly resume: () => void;
}

export class Credit {
  readonly #limits: CreditLimits;
  readonly #pending: { readonly size: number };
  readonly #waiters: Fifo<CreditWaiter> = new Fifo();
  #bytes = 0;
  /** By the id of a call, which is a slot number and so small. */
  readonly #bytesOf: number[] = [];

  /** @param pending calls and fetches that are under way */
  constructor(limits: CreditLimits, pending: { readonly size: number }) {
    this.#limits = limits;
    this.#pending = pending;
  }

  /** Whether one more call may be sent to an actor of that concurrency. */
  allows(maxConcurrency: number): boolean {
    // Calls that may run together may wait for each other: they are sent whatever their size.
    const free = freeCalls(maxConcurrency);
    const { size } = this.#pending;
    if (size < free) return true;
    return size < Math.max(this.#limits.maxCalls, free) && this.#bytes < this.#limits.maxBytes;
  }

  /** Calls back once when there is credit again, or the session is closed. */
  whenAllowed(maxConcurrency: number, resume: () => void): void {
    this.#waiters.push({ maxConcurrency, resume });
  }

  /** Counts bytes of a call until it is answered. */
  charge(id: number, bytes: number): void {
    this.#bytesOf[id] = (this.#bytesOf[id] ?? 0) + bytes;
    this.#bytes += bytes;
  }

  /** The bytes of a call that is answered count no more. */
  refund(id: number): void {
    this.#bytes -= this.#bytesOf[id] ?? 0;
    this.#bytesOf[id] = 0;
  }

  /** The other side is lost, with all that was under way. */
  lose(): void {
    this.#bytes = 0;
    this.#bytesOf.length = 0;
  }

  /** Lets those go on that wait, in order of asking, until one uses up the credit. */
  resume(): void {
    for (;;) {
      const first = this.#waiters.peek();
      if (first === undefined || !this.allows(first.maxConcurrency)) return;
      this.#waiters.shift();
      first.resume();
    }
  }

  /** Everybody who waits goes on: the session is closed. */
  resumeAll(): void {
    for (const { resume } of this.#waiters.drain()) resume();
  }
}
