/**
 * A holder as the limiter sees it: the leases it has, the calls it waits for, and the news that its
 * open question is answered with.
 */

import type { Lease, Limiter, LimitReport, LimitRequest } from "./limiter.ts";

/** Calls that may be sent now, with how long each waited. */
export type GrantedCalls = readonly (readonly [id: number, waitedMs: number])[];

/** A call that was cut off still counts for so long: its endpoint notices later. */
const LINGER_MS = 100;

export class LeaseHolder {
  /** When it was last heard of. */
  seenMs: number;
  readonly #held: Map<number, Lease> = new Map();
  /** How each call that waits gives up its place. */
  readonly #waiting: Map<number, () => void> = new Map();
  #granted: (readonly [id: number, waitedMs: number])[] = [];
  /** Ends the wait of its open question. */
  #answer: (() => void) | undefined;

  constructor(seenMs: number) {
    this.seenMs = seenMs;
  }

  /** Also one that it asks for again, whose grant it may not have heard of. */
  ask(id: number, request: LimitRequest, limiter: Limiter): void {
    const held = this.#held.get(id);
    if (held !== undefined) return this.#grant(id, held);
    if (this.#waiting.has(id)) return;
    let isGranted = false;
    const leave = limiter.ask(request, (lease) => {
      isGranted = true;
      this.#waiting.delete(id);
      this.#held.set(id, lease);
      this.#grant(id, lease);
    });
    if (!isGranted) this.#waiting.set(id, leave);
  }

  /** The call is over, or not wanted any more; one that it does not have is passed over. */
  over(id: number, report: LimitReport): void {
    const held = this.#held.get(id);
    if (held === undefined) {
      this.#waiting.get(id)?.();
      this.#waiting.delete(id);
      return;
    }
    this.#held.delete(id);
    if (report.isCut === true) setTimeout(() => held.release(report), LINGER_MS);
    else held.release(report);
  }

  /** Takes over leases that it has already, and drops those that it knows nothing of. */
  keep(
    held: readonly (readonly [id: number, tokens: number])[],
    asked: ReadonlySet<number>,
    limiter: Limiter,
  ): void {
    const known = new Set(held.map(([id]) => id));
    for (const id of [...this.#held.keys(), ...this.#waiting.keys()]) {
      if (!known.has(id) && !asked.has(id)) this.over(id, isLost);
    }
    for (const [id, tokens] of held) {
      if (!this.#held.has(id)) this.#held.set(id, limiter.adopt(tokens));
    }
    // The question that it asked before may be one that nobody hears the answer of.
    this.#answer?.();
    this.#granted = [];
  }

  /** Returns what was granted since the last time. */
  take(): GrantedCalls {
    const granted = this.#granted;
    if (granted.length > 0) this.#granted = [];
    return granted;
  }

  /** Resolves when something was granted that nobody has taken, and after that time. */
  async news(atMostMs: number): Promise<void> {
    if (this.#granted.length > 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, atMostMs);
    timer.unref();
    this.#answer?.();
    this.#answer = resolve;
    await promise;
    clearTimeout(timer);
    if (this.#answer === resolve) this.#answer = undefined;
  }

  /** It is gone: so are the calls that wait; how those went that it had is unknown. */
  drop(): void {
    for (const leave of this.#waiting.values()) leave();
    this.#waiting.clear();
    const leases = [...this.#held.values()];
    this.#held.clear();
    setTimeout(() => {
      for (const lease of leases) lease.release({ outcome: "unknown" });
    }, LINGER_MS);
    this.#answer?.();
  }

  #grant(id: number, { waitedMs }: Lease): void {
    this.#granted.push([id, waitedMs]);
    if (this.#granted.length > 1 || this.#answer === undefined) return;
    // In the same turn others may be granted, or the call may be answered that had it granted.
    queueMicrotask(() => {
      if (this.#granted.length > 0) this.#answer?.();
    });
  }
}

const isLost: LimitReport = { outcome: "unknown" };
