/**
 * One holder as the limiter knows it: its leases, its calls that wait, and grants that were not
 * sent to it yet.
 */

import type { Lease, Limiter, LimitReport, LimitRequest } from "./limiter.ts";

/** Calls that may be sent now, with how long each waited. */
export type GrantedCalls = readonly (readonly [id: number, waitedMs: number])[];

/** A call that was cut off still counts for so long: its endpoint notices later. */
const LINGER_MS = 100;

const none: GrantedCalls = [];

export class LeaseHolder {
  /** When it was last heard of. */
  seenMs: number;
  /** The number of its last registration. */
  epoch = 0;
  readonly #held: Map<number, Lease> = new Map();
  /** How each call that waits gives up its place. */
  readonly #waiting: Map<number, () => void> = new Map();
  #granted: (readonly [id: number, waitedMs: number])[] = [];
  /** Ends the wait for grants: `false` if their answer would not be heard. */
  #wake: ((isHeard: boolean) => void) | undefined;

  constructor(seenMs: number) {
    this.seenMs = seenMs;
  }

  /** If it asks again for a call that has a lease, the answer with the grant was lost. */
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

  /** Gives up the call's place, if it waits. */
  leave(id: number): void {
    this.#waiting.get(id)?.();
    this.#waiting.delete(id);
  }

  /** Hears of the outcome of a call that goes on, and keeps its lease. */
  answered(id: number, report: LimitReport): void {
    this.#held.get(id)?.answered(report);
  }

  /** Releases the call's lease, if it has one. */
  finish(id: number, report: LimitReport): void {
    const held = this.#held.get(id);
    if (held === undefined) return;
    this.#held.delete(id);
    if (report.isCut !== true) return held.release(report);
    held.answered(report);
    setTimeout(() => held.release(report), LINGER_MS);
  }

  /**
   * Compares with what the holder reports: takes over leases that only the holder knows, and drops
   * leases and calls that the holder does not name (it never got the grant, or gave the call up).
   */
  reconcile(
    held: readonly (readonly [id: number, tokens: number])[],
    asked: ReadonlySet<number>,
    limiter: Limiter,
  ): void {
    const known = new Set(held.map(([id]) => id));
    for (const id of this.#waiting.keys()) if (known.has(id) || !asked.has(id)) this.leave(id);
    for (const id of this.#held.keys()) {
      if (!known.has(id) && !asked.has(id)) this.finish(id, notSent);
    }
    for (const [id, tokens] of held) {
      if (!this.#held.has(id)) this.#held.set(id, limiter.adopt(tokens));
    }
    this.#dismiss();
    this.#granted = [];
  }

  /** Returns what was granted since the last time. */
  takeGrants(): GrantedCalls {
    if (this.#granted.length === 0) return none;
    const granted = this.#granted;
    this.#granted = [];
    return granted;
  }

  /**
   * Resolves when there are grants that nobody has taken, and after that time. `false`: the holder
   * has asked anew since, and may not hear this answer.
   */
  async waitForGrants(atMostMs: number): Promise<boolean> {
    this.#dismiss();
    if (this.#granted.length > 0) return true;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(true), atMostMs);
    timer.unref();
    this.#wake = resolve;
    const isHeard = await promise;
    clearTimeout(timer);
    // It may have asked anew between the two.
    if (this.#wake !== resolve) return false;
    this.#wake = undefined;
    return isHeard;
  }

  /** The holder is gone: drops its calls that wait, and releases its leases a moment later. */
  drop(): void {
    for (const leave of this.#waiting.values()) leave();
    this.#waiting.clear();
    const leases = [...this.#held.values()];
    this.#held.clear();
    setTimeout(() => {
      for (const lease of leases) lease.release({ outcome: "unknown" });
    }, LINGER_MS);
    this.#dismiss();
  }

  #dismiss(): void {
    this.#wake?.(false);
    this.#wake = undefined;
  }

  #grant(id: number, { waitedMs }: Lease): void {
    this.#granted.push([id, waitedMs]);
    if (this.#granted.length > 1 || this.#wake === undefined) return;
    // In the same turn others may be granted, or the call may be answered that had it granted.
    queueMicrotask(() => {
      if (this.#granted.length > 0) this.#wake?.(true);
    });
  }
}

/** The report of a call that was granted and never sent. */
const notSent: LimitReport = { outcome: "unknown", tokens: 0 };
