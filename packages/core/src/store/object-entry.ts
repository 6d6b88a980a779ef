/**
 * One object as its holder sees it: pending, ready with a packed value, or failed. Settles exactly once.
 *
 * A ready value may be away, on disk or on the host that made it; it is ready all the same, and is brought before it is looked at.
 * An entry lives as long as an ObjectRef, a waiter, a pending call or the export table points to it; there is no table of all
 * entries, so dropping the last reference frees the value.
 */
import type { Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import { SeenFailure } from "./unhandled.ts";

/** Where a value is that is not in memory. */
export interface Away {
  /** Brings it back by `returned` of the entry, or lets the entry fail by `lost`. Resolves after either; asked twice, it brings it once. */
  bring(entry: ObjectEntry): Promise<void>;
  /** Bringing it runs tasks again: nobody must hold a worker meanwhile. */
  isLost?(): boolean;
  /** What may be passed on in place of the value, while that is on another host. */
  standIn?(entry: ObjectEntry): Encoded | undefined;
}

export type Outcome =
  | { readonly ok: true; readonly value: Encoded; readonly away?: undefined }
  | { readonly ok: true; readonly value: undefined; readonly away: Away }
  | Failed;

/** Whoever reads `failure` has looked at it: see unhandled.ts. */
export interface Failed {
  readonly ok: false;
  readonly value?: undefined;
  readonly away?: undefined;
  readonly failure: FailureData;
}

class FailedOutcome extends SeenFailure implements Failed {
  readonly ok = false;
  get failure(): FailureData {
    return this.read();
  }
}

/** The call that makes an object, as long as it is not made. */
export interface Producer {
  /** @throws InvalidOptionError where force is not allowed */
  cancel(recursive: boolean, force: boolean): void;
}

/** How many runtimes have ended in this thread. */
let endedRuntimes = 0;

/** Nobody answers any more for what this thread has entries of. */
export function runtimeEnded(): void {
  endedRuntimes += 1;
}

export class ObjectEntry {
  /** The runtime that made the object and answers for it. */
  readonly owner: string;
  readonly sequence: number;
  /** `Class.method`, a task's name or "put": for messages to people. */
  readonly label: string;
  /** Set by the borrower of somebody else's object: asks the owner for the value, once. */
  fetch: (() => void) | undefined = undefined;
  producer: Producer | undefined = undefined;
  /** See caller/waitable.ts. */
  wave = 0;
  readonly #runtime: number = endedRuntimes;
  #outcome: Outcome | undefined = undefined;
  /** Nearly all entries have one waiter at most; more are in the list. */
  #waiter: ((entry: ObjectEntry) => void) | undefined = undefined;
  #waiters: ((entry: ObjectEntry) => void)[] | undefined = undefined;

  constructor(owner: string, sequence: number, label: string) {
    this.owner = owner;
    this.sequence = sequence;
    this.label = label;
  }

  get id(): string {
    return `${this.owner}:${this.sequence}`;
  }

  /** Of a session that has ended. */
  get isStale(): boolean {
    return this.#runtime !== endedRuntimes;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  resolve(value: Encoded): void {
    this.#settle({ ok: true, value });
  }

  /** It is ready, and its value is elsewhere. */
  resolveAway(away: Away): void {
    this.#settle({ ok: true, value: undefined, away });
  }

  reject(failure: FailureData): void {
    const outcome = new FailedOutcome(failure);
    this.#settle(outcome);
    if (this.#outcome === outcome) outcome.watch(this, this.label);
  }

  /** Its value is elsewhere from now on. */
  moved(away: Away): void {
    if (this.#outcome?.ok === true) this.#outcome = { ok: true, value: undefined, away };
  }

  /** Its value is in memory again. */
  returned(value: Encoded): void {
    if (this.#outcome?.ok === true) this.#outcome = { ok: true, value };
  }

  /** Its value was away, and did not come back. */
  lost(failure: FailureData): void {
    if (this.#outcome?.ok === true) this.#outcome = new FailedOutcome(failure);
  }

  /** Whoever asked for it was told otherwise: its failure, now or later, is no news. */
  overlook(): void {
    if (this.#outcome === undefined) this.watch(look);
    else look(this);
  }

  /** How it failed, for those who look at it for others. */
  get failed(): { readonly name: string; readonly message: string } | undefined {
    return this.#outcome instanceof FailedOutcome ? this.#outcome.summary : undefined;
  }

  get isReady(): boolean {
    return this.#outcome !== undefined;
  }

  /** Calls back when settled: at once if it is, else in the turn that settles it. A borrowed object is asked for now. */
  watch(waiter: (entry: ObjectEntry) => void): void {
    if (this.#outcome !== undefined) return waiter(this);
    if (this.#waiter === undefined) this.#waiter = waiter;
    else (this.#waiters ??= []).push(waiter);
    const fetch = this.fetch;
    if (fetch !== undefined) {
      this.fetch = undefined;
      fetch();
    }
  }

  /** Takes a waiter back: its `get` timed out. */
  unwatch(waiter: (entry: ObjectEntry) => void): void {
    if (this.#waiter === waiter) {
      this.#waiter = this.#waiters?.shift();
      return;
    }
    const index = this.#waiters?.indexOf(waiter) ?? -1;
    if (index >= 0) this.#waiters?.splice(index, 1);
  }

  #settle(outcome: Outcome): void {
    if (this.#outcome !== undefined) return;
    this.#outcome = outcome;
    this.producer = undefined;
    const first = this.#waiter;
    const waiters = this.#waiters;
    this.#waiter = undefined;
    this.#waiters = undefined;
    if (first !== undefined) first(this);
    if (waiters !== undefined) for (const waiter of waiters) waiter(this);
  }
}

function look({ outcome }: ObjectEntry): void {
  if (outcome instanceof FailedOutcome) outcome.read();
}

/** What travels of a ready value: it, or what stands for it. */
export function messageOf(
  entry: ObjectEntry,
  { value, away }: Extract<Outcome, { ok: true }>,
): Encoded | undefined {
  return value ?? away?.standIn?.(entry);
}
