/**
 * Equal requests of a session, and the reservations that the engine made for them.
 *
 * A reservation that is given back serves the next request of its line, and is kept for a moment
 * without one, as Ray keeps its own leases. Only some of the waiting requests are before the
 * engine at a time, and none that nobody waits for any more.
 */
import type { Demand } from "../../rpc/resource-demand.ts";
import { Line } from "../../shared/waiting-line.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Reservations of one line that the engine may have before it at a time. */
const mostAsked = 64;

/** How long a reservation is kept for the next request, in ms: Ray's time for idle leases. */
const keptMs = 500;

/** A reservation of the engine. */
export interface Lease {
  readonly id: string;
  readonly engineNode: string;
  /** Variables of a process that uses it. */
  readonly env: Readonly<Record<string, string>> | undefined;
  /** Whether its machine is gone. */
  isLost: boolean;
}

/** A request that waits. */
export interface LeaseWaiter {
  readonly label: string;
  readonly sinceMs: number;
  readonly take: (lease: Lease) => void;
  readonly refuse: (reason: string) => void;
  readonly fail: (error: Error) => void;
}

/** A reservation that the engine was asked for. */
export interface AskedLease {
  readonly id: string;
  /** Undefined when it was withdrawn. */
  readonly lease: Promise<Lease | { readonly refused: string } | undefined>;
}

/** Makes reservations for a line. */
export interface ReservationLineParts {
  readonly demand: Demand;
  /** Reserves; the line withdraws it by `release`. */
  readonly reserve: (demand: Demand) => AskedLease;
  readonly release: (reservationId: string) => void;
  /** Called when it has neither requests nor reservations. */
  readonly onEmpty: () => void;
}

export class ReservationLine {
  readonly demand: Demand;
  readonly waiting: Line<LeaseWaiter> = new Line();
  readonly #parts: ReservationLineParts;
  readonly #asked: Set<string> = new Set();
  readonly #idle: Map<Lease, NodeJS.Timeout> = new Map();
  #isClosed = false;

  constructor(parts: ReservationLineParts) {
    this.demand = parts.demand;
    this.#parts = parts;
  }

  /** Adds a request. Returns what takes it out again: whether it still waited. */
  enter(waiter: LeaseWaiter): () => boolean {
    const place = this.waiting.add(waiter);
    this.#serve();
    return () => {
      if (this.waiting.take(place) === undefined) return false;
      this.#withdrawSurplus();
      return true;
    };
  }

  /** Takes a reservation back; the next request gets it. */
  give(lease: Lease): void {
    if (lease.isLost || this.#isClosed) {
      this.#parts.release(lease.id);
      return this.#serve();
    }
    const next = this.waiting.shift();
    if (next !== undefined) {
      next.take(lease);
      return this.#withdrawSurplus();
    }
    const timer = timers.setTimeout(() => this.#drop(lease), this.#isPlaceOnly ? 0 : keptMs);
    timer.unref();
    this.#idle.set(lease, timer);
  }

  /** Takes a kept reservation on that machine out of the line. */
  reclaim(engineNode: string): Lease | undefined {
    for (const lease of this.#idle.keys()) {
      if (lease.engineNode !== engineNode || lease.isLost) continue;
      this.#unkeep(lease);
      return lease;
    }
    return undefined;
  }

  /** Drops kept reservations whose machine is gone. */
  dropLost(): void {
    for (const lease of this.#idle.keys()) {
      if (lease.isLost) this.#drop(lease);
    }
  }

  /** Gives all reservations back, and ends all requests with the error. */
  close(error: Error): void {
    this.#isClosed = true;
    for (let next = this.waiting.shift(); next !== undefined; next = this.waiting.shift()) {
      next.fail(error);
    }
    this.#withdrawSurplus();
    for (const lease of this.#idle.keys()) this.#drop(lease);
  }

  get #isPlaceOnly(): boolean {
    return Object.values(this.demand.hold).every((amount) => amount === 0);
  }

  #serve(): void {
    while (this.waiting.size > 0) {
      const lease = this.#idle.keys().next().value;
      if (lease === undefined) break;
      this.#unkeep(lease);
      this.waiting.shift()?.take(lease);
    }
    while (this.#asked.size < Math.min(this.waiting.size, mostAsked)) this.#ask();
    this.#forgetIfEmpty();
  }

  #ask(): void {
    const { id, lease } = this.#parts.reserve(this.demand);
    this.#asked.add(id);
    lease.then(
      (answer) => {
        // A reservation that was withdrawn meanwhile has been released.
        if (!this.#asked.delete(id) || answer === undefined) return this.#serve();
        if ("refused" in answer) {
          this.waiting.shift()?.refuse(answer.refused);
          return this.#serve();
        }
        return this.give(answer);
      },
      (error: Error) => {
        this.#asked.delete(id);
        this.waiting.shift()?.fail(error);
        this.#serve();
      },
    );
  }

  #withdrawSurplus(): void {
    for (const id of [...this.#asked].toReversed()) {
      if (this.#asked.size <= this.waiting.size) break;
      this.#asked.delete(id);
      this.#parts.release(id);
    }
    this.#forgetIfEmpty();
  }

  #unkeep(lease: Lease): void {
    timers.clearTimeout(this.#idle.get(lease));
    this.#idle.delete(lease);
  }

  #drop(lease: Lease): void {
    this.#unkeep(lease);
    this.#parts.release(lease.id);
    this.#forgetIfEmpty();
  }

  #forgetIfEmpty(): void {
    if (this.waiting.size + this.#asked.size + this.#idle.size === 0) this.#parts.onEmpty();
  }
}
