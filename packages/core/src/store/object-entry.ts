/**
 * One object as its holder sees it: pending, ready with a packed value, or failed. It settles
 * exactly once.
 *
 * The value of a ready entry may be away, on disk or on the host that made it; it is brought before
 * it is read. An entry lives as long as an ObjectRef, a waiter, a pending call or the export table
 * points to it. There is no table of all entries, so dropping the last reference frees the value.
 */
import type { Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import type { Pending } from "../protocol/message.ts";
import { SeenFailure } from "./unhandled.ts";

/** The maker of an object, while it is under way. */
export type Producer = Pick<Pending, "cancel">;

/** The place of a value that is not in memory. */
export interface Away {
  /** How the value is brought, in words for a warning. */
  readonly bringing: string;
  /**
   * Brings the value back through `returned` of the entry, or fails the entry through `lost`.
   * Resolves after either; concurrent calls bring it once.
   */
  bring(entry: ObjectEntry): Promise<void>;
  /** Whether tasks must run again to bring it: the caller must not hold a worker meanwhile. */
  isLost?(): boolean;
  /** Returns a stub to pass on instead of the value while that is on another host. */
  standIn?(entry: ObjectEntry): Encoded | undefined;
  /** A runtime was given the object while its value is away: it may get a copy of the value. */
  givenTo?(peerId: string): void;
}

export type Outcome =
  | { readonly ok: true; readonly value: Encoded; readonly away?: undefined }
  | { readonly ok: true; readonly value: undefined; readonly away: Away }
  | Failed;

/** A read of `failure` marks it as seen: see unhandled.ts. */
export interface Failed {
  readonly ok: false;
  readonly value?: undefined;
  readonly away?: undefined;
  readonly failure: FailureData;
}

/**
 * Not a literal: where the first ones of a literal survive a collection, V8 puts all later ones
 * into the old generation at once. Each would keep its value, and what points there, until the next
 * major collection.
 */
class ReadyOutcome {
  readonly ok = true;
  readonly value: Encoded;
  constructor(value: Encoded) {
    this.value = value;
  }
}

class FailedOutcome extends SeenFailure implements Failed {
  readonly ok = false;
  get failure(): FailureData {
    return this.read();
  }
}

/** The number of runtimes that have ended in this thread. */
let endedRuntimes = 0;

/** Marks all entries of this thread as stale: their runtime no longer answers. */
export function runtimeEnded(): void {
  endedRuntimes += 1;
}

export class ObjectEntry {
  /** The id of the runtime that made the object and answers for it. */
  readonly owner: string;
  readonly sequence: number;
  /** `Class.method`, a task's name or "put": for messages to people. */
  readonly label: string;
  #source: Producer | (() => void) | undefined = undefined;
  /** The number of the last `wait` that saw it; see caller/waits/waitable.ts. */
  wave = 0;
  readonly #runtime: number = endedRuntimes;
  #outcome: Outcome | undefined = undefined;
  /** Nearly all entries have at most one. */
  #waiters: ((entry: ObjectEntry) => void) | ((entry: ObjectEntry) => void)[] | undefined =
    undefined;

  constructor(owner: string, sequence: number, label: string) {
    this.owner = owner;
    this.sequence = sequence;
    this.label = label;
  }

  get id(): string {
    return `${this.owner}:${this.sequence}`;
  }

  /** The call that makes it, while that is under way. */
  get producer(): Producer | undefined {
    return typeof this.#source === "object" ? this.#source : undefined;
  }

  set producer(call: Producer | undefined) {
    this.#source = call;
  }

  /** Asks the owner for the value, once. The borrower of another runtime's object sets it. */
  set fetch(fetch: () => void) {
    this.#source = fetch;
  }

  /** Whether its session has ended. */
  get isStale(): boolean {
    return this.#runtime !== endedRuntimes;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  resolve(value: Encoded): void {
    ObjectEntry.#settle(this, new ReadyOutcome(value));
  }

  /** Settles the entry with a value that is elsewhere. */
  resolveAway(away: Away): void {
    ObjectEntry.#settle(this, { ok: true, value: undefined, away });
  }

  reject(failure: FailureData): void {
    const outcome = new FailedOutcome(failure);
    ObjectEntry.#settle(this, outcome);
    if (this.#outcome === outcome) outcome.watch(this, this.label);
  }

  /** Records that its value has left memory. */
  moved(away: Away): void {
    if (this.#outcome?.ok === true) this.#outcome = { ok: true, value: undefined, away };
  }

  /** Records that its value is in memory again. */
  returned(value: Encoded): void {
    if (this.#outcome?.ok === true) this.#outcome = new ReadyOutcome(value);
  }

  /** Fails an entry whose value was away and cannot be brought back. */
  lost(failure: FailureData): void {
    if (this.#outcome?.ok === true) this.#outcome = new FailedOutcome(failure);
  }

  /** Marks a failure, now or later, as seen: the caller already got another error. */
  overlook(): void {
    if (this.#outcome === undefined) this.watch(look);
    else look(this);
  }

  /** Returns how it failed, without marking the failure as seen. */
  get failed(): { readonly name: string; readonly message: string } | undefined {
    return this.#outcome instanceof FailedOutcome ? this.#outcome.summary : undefined;
  }

  get isReady(): boolean {
    return this.#outcome !== undefined;
  }

  /**
   * Calls back when the entry is settled: at once, or in the turn that settles it. A borrowed
   * object is fetched now.
   */
  watch(waiter: (entry: ObjectEntry) => void): void {
    if (this.#outcome !== undefined) return waiter(this);
    const waiters = this.#waiters;
    if (waiters === undefined) this.#waiters = waiter;
    else if (typeof waiters === "function") this.#waiters = [waiters, waiter];
    else waiters.push(waiter);
    const source = this.#source;
    if (typeof source === "function") {
      this.#source = undefined;
      source();
    }
  }

  /** Removes a waiter whose `get` timed out. */
  unwatch(waiter: (entry: ObjectEntry) => void): void {
    const waiters = this.#waiters;
    if (waiters === waiter) this.#waiters = undefined;
    if (!Array.isArray(waiters)) return;
    const index = waiters.indexOf(waiter);
    if (index >= 0) waiters.splice(index, 1);
  }

  /** Static, because a private method is one more field of each object. */
  static #settle(entry: ObjectEntry, outcome: Outcome): void {
    if (entry.#outcome !== undefined) return;
    entry.#outcome = outcome;
    entry.#source = undefined;
    const waiters = entry.#waiters;
    entry.#waiters = undefined;
    if (typeof waiters === "function") waiters(entry);
    else if (waiters !== undefined) for (const waiter of waiters) waiter(entry);
  }
}

function look({ outcome }: ObjectEntry): void {
  if (outcome instanceof FailedOutcome) outcome.read();
}

/** Returns the message for a ready value: the value itself, or its stub. */
export function messageOf(
  entry: ObjectEntry,
  { value, away }: Extract<Outcome, { ok: true }>,
): Encoded | undefined {
  return value ?? away?.standIn?.(entry);
}
