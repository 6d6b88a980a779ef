/**
 * The objects that cross the border of this runtime: those of ours that others hold, and those of others that we hold.
 *
 * A ledger per exported object counts references by holder. A reference in a message belongs to a holder "in flight to" its receiver
 * until that claims or declines it; it goes with the receiver if that dies first. Channels have no order among each other, so a claim may come before the export it claims: counts may be
 * negative for a while, and an object is let go only when every count is zero.
 * What is lost with a way to an owner that lives must leave counts too high, never too low: a claim that is lost leaves the reference "in flight" it was to
 * take over; and a borrower that has passed a reference on, which is a count of somebody else's that may be lost, does not release its own any more.
 * Such counts end with the life of their holder.
 * Explicit claims and releases drive it; the FinalizationRegistry only tells when a borrowed entry is gone.
 */
import { type DeathCause, ownerDeath } from "../shared/errors.ts";
import { ObjectEntry } from "./object-entry.ts";

/** References that are on their way to a runtime and not claimed by it yet. */
function inFlightTo(peerId: string): string {
  return `in flight to ${peerId}`;
}

/** The runtime that holds, or is to. */
export function peerOf(holder: string): string {
  const flight = inFlightTo("");
  return holder.startsWith(flight) ? holder.slice(flight.length) : holder;
}

/** How the store speaks to the owners of what it borrows. */
export interface StoreLink {
  /** Changes the count of `holder` at the owner of the object. */
  changeReference(owner: string, objectId: string, holder: string, change: number): void;
  /** Asks the owner for the value and settles the entry. */
  fetch(owner: string, entry: ObjectEntry): void;
}

interface Exported {
  readonly entry: ObjectEntry;
  readonly holders: Map<string, number>;
}

interface Borrowed {
  readonly owner: string;
  readonly objectId: string;
  units: number;
  /** How many ways to its owner had been lost when it was first passed on to somebody else. */
  passedOnAfter: number | undefined;
}

export class Store {
  readonly id: string;
  readonly #link: StoreLink;
  #sequence = 0;
  readonly #exported: Map<string, Exported> = new Map();
  readonly #borrowed: Map<
    string,
    { readonly entry: WeakRef<ObjectEntry>; readonly units: Borrowed }
  > = new Map();
  readonly #dropped: FinalizationRegistry<Borrowed>;
  /** How many ways to each owner that lives, with what was said on them. */
  readonly #lostWays: Map<string, number> = new Map();

  constructor(id: string, link: StoreLink) {
    this.id = id;
    this.#link = link;
    this.#dropped = new FinalizationRegistry((units) => {
      const current = this.#borrowed.get(units.objectId);
      if (current?.units === units) this.#borrowed.delete(units.objectId);
      if (!this.#mayBeMissed(units)) {
        link.changeReference(units.owner, units.objectId, id, -units.units);
      }
    });
  }

  /** How many of our objects others hold: for tests of leaks and for statistics. */
  get exportedCount(): number {
    return this.#exported.size;
  }

  /** How many objects of others are held here, or were until the collector last ran. */
  get borrowedCount(): number {
    return this.#borrowed.size;
  }

  create(label: string): ObjectEntry {
    return new ObjectEntry(this.id, this.#sequence++, label);
  }

  /** A ref to `entry` leaves in a message. */
  exportReference(entry: ObjectEntry, peerId: string): void {
    const holder = inFlightTo(peerId);
    if (entry.owner === this.id) return this.#pin(entry.id, entry, holder, 1);
    const borrowed = this.#borrowed.get(entry.id);
    // The owner itself has its own, whatever it hears.
    if (borrowed !== undefined && peerId !== entry.owner) {
      borrowed.units.passedOnAfter ??= this.#lostWays.get(entry.owner) ?? 0;
    }
    this.#link.changeReference(entry.owner, entry.id, holder, 1);
  }

  /** A way to an owner of what we hold is lost, and the owner may live: what we told it last may not have arrived. */
  wayLost(owner: string): void {
    this.#lostWays.set(owner, (this.#lostWays.get(owner) ?? 0) + 1);
  }

  /** Its owner may not know for whom we hold it, too. */
  #mayBeMissed({ owner, passedOnAfter }: Borrowed): boolean {
    return passedOnAfter !== undefined && passedOnAfter < (this.#lostWays.get(owner) ?? 0);
  }

  /** A ref came out of a message: it is ours to hold and to release. */
  importReference(owner: string, sequence: number, label: string): ObjectEntry {
    const objectId = `${owner}:${sequence}`;
    if (owner === this.id) {
      const own = this.#exported.get(objectId)?.entry ?? this.#lost(owner, sequence, label);
      this.changeReference(objectId, inFlightTo(this.id), -1);
      return own;
    }
    const known = this.#borrowed.get(objectId);
    const living = known?.entry.deref();
    if (known === undefined || living === undefined) {
      const entry = new ObjectEntry(owner, sequence, label);
      entry.fetch = () => this.#link.fetch(owner, entry);
      const units: Borrowed = { owner, objectId, units: 1, passedOnAfter: undefined };
      this.#borrowed.set(objectId, { entry: new WeakRef(entry), units });
      this.#dropped.register(entry, units);
      this.#claim(owner, objectId);
      return entry;
    }
    known.units.units += 1;
    this.#claim(owner, objectId);
    return living;
  }

  /** A ref came in a message that nobody looks at: it is on its way to us no more. */
  declineReference(owner: string, sequence: number): void {
    const objectId = `${owner}:${sequence}`;
    const holder = inFlightTo(this.id);
    if (owner === this.id) this.changeReference(objectId, holder, -1);
    else this.#link.changeReference(owner, objectId, holder, -1);
  }

  /** A holder, or the way to it, changed its count of one of our objects. Returns whether anybody holds that. */
  changeReference(objectId: string, holder: string, change: number): boolean {
    const exported = this.#exported.get(objectId);
    if (exported === undefined) return false;
    this.#pin(objectId, exported.entry, holder, change);
    return true;
  }

  /** Our objects that others hold or are about to, and who. */
  *held(): Iterable<{ readonly entry: ObjectEntry; readonly holders: ReadonlySet<string> }> {
    for (const { entry, holders } of this.#exported.values()) {
      yield { entry, holders: new Set([...holders.keys()].map(peerOf)) };
    }
  }

  /** Somebody else's object that we hold. */
  borrowed(objectId: string): ObjectEntry | undefined {
    return this.#borrowed.get(objectId)?.entry.deref();
  }

  /** One of our objects, for a peer that asks for its value. */
  exported(objectId: string): ObjectEntry | undefined {
    return this.#exported.get(objectId)?.entry;
  }

  /** A peer is dead: what it held it holds no more, and what we borrowed from it fails. */
  dropHolder(
    holder: string,
    cause: DeathCause,
    encodeError: (error: Error) => ObjectEntryFailure,
  ): void {
    for (const [objectId, exported] of this.#exported) {
      const held = exported.holders.delete(holder);
      if (!exported.holders.delete(inFlightTo(holder)) && !held) continue;
      if (exported.holders.size === 0) this.#exported.delete(objectId);
    }
    this.#lostWays.delete(holder);
    for (const [objectId, borrowed] of this.#borrowed) {
      if (borrowed.units.owner !== holder) continue;
      const entry = borrowed.entry.deref();
      entry?.reject(encodeError(ownerDeath(objectId, cause)));
    }
  }

  #claim(owner: string, objectId: string): void {
    this.#link.changeReference(owner, objectId, this.id, 1);
    this.#link.changeReference(owner, objectId, inFlightTo(this.id), -1);
  }

  #pin(objectId: string, entry: ObjectEntry, holder: string, change: number): void {
    let exported = this.#exported.get(objectId);
    if (exported === undefined) {
      exported = { entry, holders: new Map() };
      this.#exported.set(objectId, exported);
    }
    const count = (exported.holders.get(holder) ?? 0) + change;
    if (count === 0) exported.holders.delete(holder);
    else exported.holders.set(holder, count);
    if (exported.holders.size === 0) this.#exported.delete(objectId);
  }

  #lost(owner: string, sequence: number, label: string): ObjectEntry {
    const entry = new ObjectEntry(owner, sequence, label);
    entry.fetch = () => this.#link.fetch(owner, entry);
    return entry;
  }
}

type ObjectEntryFailure = Parameters<ObjectEntry["reject"]>[0];
