/**
 * A big result that stayed on the host that made it, a process of its own. Its owner gets a stub,
 * and a runtime that needs the value pulls it from there, once.
 *
 * The value is an object of that host, counted by its ledger like any other: the stub holds a ref
 * to it, and so keeps it there. A stub that is passed on holds a ref to the owner's object too: a
 * holder that finds the host gone asks the owner. The owner looks for a copy with the runtimes that
 * it or others gave the object to (copy-search.ts), and has the value made again when there is
 * none.
 */
import type { Encoded } from "../../protocol/codec.ts";
import { ObjectFetchTimedOutError, ObjectLostError, RaySystemError } from "../../shared/errors.ts";
import type { Away, ObjectEntry, Outcome } from "../../store/object-entry.ts";
import { entryOf, ObjectRef } from "../../store/object-ref.ts";
import type { Values } from "../values.ts";
import { Wait } from "../waits/stuck-watch.ts";
import type { Waiting } from "../waits/waiting-tasks.ts";
import { timers } from "../../shared/machine/timers.ts";

/** Results above this stay where they were made, as in Ray. */
export const inlineBytes: number = 100 * 1024;

/** As in Ray. */
const fetchTimeoutMs: number = 10 * 60 * 1000;

/**
 * How long those who may have a copy have to answer. Code of theirs may hold the thread: that is
 * worth a wait when the value cannot be made again.
 */
const copyTimeoutMs = { ofRemakable: 5000, ofOthers: 60_000 } as const;

/** The stub that travels in place of the value. */
export interface StandIn {
  readonly kept: ObjectRef;
  readonly byteLength: number;
  /** The owner's object; the host that made it does not know it. */
  readonly object?: ObjectRef;
}

/** @throws RaySystemError for what stands for nothing */
export function standInOf(value: unknown): StandIn {
  const { kept, byteLength, object } = (value ?? {}) as Partial<StandIn>;
  const isSize = Number.isSafeInteger(byteLength) && Number(byteLength) >= 0;
  if (
    !(kept instanceof ObjectRef) ||
    !isSize ||
    !(object === undefined || object instanceof ObjectRef)
  ) {
    throw new RaySystemError("what came in place of a value stands for none");
  }
  return value as StandIn;
}

export interface LocatedLink {
  readonly values: Values;
  readonly waiting: Waiting;
  encodeStandIn(standIn: StandIn): Encoded;
  /** The value of somebody else's object, from its owner itself. */
  fetchWhole(entry: ObjectEntry): Promise<Outcome>;
  /** A copy of the value of our object, with one of `holders`. Removes those that have none. */
  findCopy(entry: ObjectEntry, holders: Set<string>, limitMs: number): Promise<StandIn | undefined>;
  /** Whether `remake` would run the task of `entry`. */
  canRemake(entry: ObjectEntry): boolean;
  /** Runs the task of `entry` again; it has its value, or has failed, when this resolves. */
  remake(entry: ObjectEntry, loss: Error): Promise<void>;
  /**
   * The value of `entry` is in memory from now on.
   *
   * @param copyOf somebody else's object, of whose value it is a copy that the owner may not have
   */
  arrived(entry: ObjectEntry, value: Encoded, copyOf?: ObjectEntry): void;
}

export class Located implements Away {
  readonly byteLength: number;
  readonly #link: LocatedLink;
  readonly #object: ObjectRef | undefined;
  /** Runtimes that may have a copy. */
  readonly #holders: Set<string> = new Set();
  #kept: ObjectRef;
  /** As many were asked for a copy at the last loss, and gave none. */
  #askedInVain = 0;
  #standIn: Encoded | undefined;
  #bringing: Promise<void> | undefined;

  constructor({ kept, byteLength, object }: StandIn, link: LocatedLink) {
    this.#kept = kept;
    this.byteLength = byteLength;
    this.#object = object;
    this.#link = link;
  }

  get bringing(): string {
    return `it is asked of ${entryOf(this.kept).owner}, which keeps it and has not answered`;
  }

  get kept(): ObjectRef {
    return this.#kept;
  }

  /** Undefined when it is known that it is not there any more. */
  standIn(entry: ObjectEntry): Encoded | undefined {
    if (this.isLost()) return undefined;
    this.#standIn ??= this.#link.encodeStandIn({
      kept: this.kept,
      byteLength: this.byteLength,
      object: this.#object ?? new ObjectRef(entry),
    });
    return this.#standIn;
  }

  isLost(): boolean {
    return entryOf(this.kept).outcome?.ok === false;
  }

  givenTo(peerId: string): void {
    this.#holders.add(peerId);
  }

  bring(entry: ObjectEntry): Promise<void> {
    this.#bringing ??= this.#bring(entry).finally(() => (this.#bringing = undefined));
    return this.#bringing;
  }

  async #bring(entry: ObjectEntry): Promise<void> {
    const object = this.#object === undefined ? undefined : entryOf(this.#object);
    let found = await settled(entryOf(this.kept));
    while (found?.value === undefined && (await this.#movedTo(entry))) {
      found = await settled(entryOf(this.kept));
    }
    if (found === undefined) {
      const { owner } = entryOf(this.kept);
      const late = new ObjectFetchTimedOutError(entry.id, owner, fetchTimeoutMs);
      return entry.lost(this.#link.values.describe(late));
    }
    if (found.value !== undefined) return this.#link.arrived(entry, found.value, object);
    if (object === undefined) return this.#link.remake(entry, this.#loss(entry, found));
    // The value may be made again: that takes a CPU, which a task that waits for its argument here
    // must not hold.
    const wait = new Wait("the fetch of an argument");
    wait.waitables = [object];
    this.#link.waiting.begin(wait);
    const whole = await this.#link.fetchWhole(object);
    this.#link.waiting.ended(wait);
    if (whole.ok && whole.value !== undefined) this.#link.arrived(entry, whole.value);
    else if (!whole.ok) entry.lost(whole.failure);
  }

  /** Looks for a copy, and takes it as the place of the value. Returns whether there is one. */
  async #movedTo(entry: ObjectEntry): Promise<boolean> {
    // A borrower asks the owner, who knows of all that may have one.
    if (this.#object !== undefined) return false;
    this.#holders.delete(entryOf(this.kept).owner);
    if (this.#holders.size === 0) return false;
    const { ofRemakable, ofOthers } = copyTimeoutMs;
    const limitMs = this.#link.canRemake(entry) ? ofRemakable : ofOthers;
    this.#askedInVain = this.#holders.size;
    const copy = await this.#link.findCopy(entry, this.#holders, limitMs);
    if (copy === undefined) return false;
    this.#askedInVain = 0;
    this.#kept = copy.kept;
    this.#standIn = undefined;
    return true;
  }

  #loss(entry: ObjectEntry, outcome: Outcome): Error {
    const why = outcome.ok
      ? "its value is gone"
      : this.#link.values.revive(outcome.failure).message;
    const { owner } = entryOf(this.kept);
    const others = this.#askedInVain;
    const rest =
      others === 0 ? "" : `; nobody else that was given it gave a copy (asked: ${others})`;
    const reason = `the host that kept it, ${owner}, has lost it: ${why}${rest}`;
    return new ObjectLostError(entry.id, reason);
  }
}

/** Undefined when it takes too long. A value that went to disk is brought. */
function settled(entry: ObjectEntry): Promise<Outcome | undefined> {
  return new Promise((resolve) => {
    const timer = timers.setTimeout(() => {
      entry.unwatch(onSettled);
      resolve(undefined);
    }, fetchTimeoutMs);
    timer.unref();
    const onSettled = (): void => {
      const { outcome } = entry;
      if (outcome?.ok === true && outcome.away !== undefined) {
        void outcome.away.bring(entry).then(onSettled);
        return;
      }
      timers.clearTimeout(timer);
      resolve(outcome);
    };
    entry.watch(onSettled);
  });
}
