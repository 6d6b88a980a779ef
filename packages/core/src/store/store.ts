/**
 * The objects that cross the border of this runtime: its own objects that others hold, and objects
 * of others that it holds.
 *
 * A ledger per exported object counts references by holder. A reference in a message belongs to a
 * holder "in flight to" its receiver until the receiver claims or declines it; if the receiver dies
 * first, the reference goes with it. Channels have no order among each other, so a claim may arrive
 * before the export that it claims. Counts may be negative for a while, and an object is released
 * only when every count is zero.
 *
 * Messages that are lost with a channel to a living owner may leave counts too high, never too low.
 * A lost claim leaves the reference "in flight". A borrower that has passed a reference on relies
 * on a count that may be lost, so it no longer releases its own. Such counts end with their holder.
 *
 * Explicit claims and releases drive the ledger; the FinalizationRegistry only reports that a
 * borrowed entry is gone.
 */
import { type DeathCause, ownerDeath } from "../shared/errors.ts";
import { ObjectEntry } from "./object-entry.ts";

/** Returns the holder of references that are on their way to a runtime and not claimed yet. */
function inFlightTo(peerId: string): string {
  return `in flight to ${peerId}`;
}

/** Returns the runtime that holds a reference, or will. */
export function peerOf(holder: string): string {
  const flight = inFlightTo("");
  return holder.startsWith(flight) ? holder.slice(flight.length) : holder;
}

/** The store's messages to the owners of borrowed objects. */
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
  /** The number of channels to the owner that were lost before the ref was first passed on. */
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
  /** The number of channels to each living owner that were lost with their last messages. */
  readonly #lostChannels: Map<string, number> = new Map();

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

  /** The number of own objects that others hold, for leak tests and statistics. */
  get exportedCount(): number {
    return this.#exported.size;
  }

  /** The number of borrowed objects that are held here, or were until the collector last ran. */
  get borrowedCount(): number {
    return this.#borrowed.size;
  }

  create(label: string): ObjectEntry {
    return new ObjectEntry(this.id, this.#sequence++, label);
  }

  /** Records that a ref to `entry` leaves in a message. */
  exportReference(entry: ObjectEntry, peerId: string): void {
    const holder = inFlightTo(peerId);
    if (entry.owner === this.id) return this.#pin(entry.id, entry, holder, 1);
    const borrowed = this.#borrowed.get(entry.id);
    // The owner always has its own objects, whatever messages are lost.
    if (borrowed !== undefined && peerId !== entry.owner) {
      borrowed.units.passedOnAfter ??= this.#lostChannels.get(entry.owner) ?? 0;
    }
    this.#link.changeReference(entry.owner, entry.id, holder, 1);
  }

  /** A channel to a living owner is lost: its last messages may not have arrived. */
  wayLost(owner: string): void {
    this.#lostChannels.set(owner, (this.#lostChannels.get(owner) ?? 0) + 1);
  }

  /** Whether the owner may lack the count of a runtime that got the ref from here. */
  #mayBeMissed({ owner, passedOnAfter }: Borrowed): boolean {
    return passedOnAfter !== undefined && passedOnAfter < (this.#lostChannels.get(owner) ?? 0);
  }

  /** Takes over a ref that came out of a message: this runtime holds and releases it. */
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

  /** Declines a ref in a message that nobody reads: it is no longer in flight. */
  declineReference(owner: string, sequence: number): void {
    const objectId = `${owner}:${sequence}`;
    const holder = inFlightTo(this.id);
    if (owner === this.id) this.changeReference(objectId, holder, -1);
    else this.#link.changeReference(owner, objectId, holder, -1);
  }

  /** Changes a holder's count of an own object. Returns whether the object is exported. */
  changeReference(objectId: string, holder: string, change: number): boolean {
    const exported = this.#exported.get(objectId);
    if (exported === undefined) return false;
    this.#pin(objectId, exported.entry, holder, change);
    return true;
  }

  /** Yields own objects that others hold, or soon will, and their holders. */
  *held(): Iterable<{ readonly entry: ObjectEntry; readonly holders: ReadonlySet<string> }> {
    for (const { entry, holders } of this.#exported.values()) {
      yield { entry, holders: new Set([...holders.keys()].map(peerOf)) };
    }
  }

  /** Returns a borrowed object that is held here. */
  borrowed(objectId: string): ObjectEntry | undefined {
    return this.#borrowed.get(objectId)?.entry.deref();
  }

  /** Returns an own object, for a peer that asks for its value. */
  exported(objectId: string): ObjectEntry | undefined {
    return this.#exported.get(objectId)?.entry;
  }

  /** Handles the death of a peer: its references end, and objects borrowed from it fail. */
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
    this.#lostChannels.delete(holder);
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
    if (change > 0) this.#given(entry, peerOf(holder));
    if (count === 0) exported.holders.delete(holder);
    else exported.holders.set(holder, count);
    if (exported.holders.size === 0) this.#exported.delete(objectId);
  }

  #given({ outcome }: ObjectEntry, peerId: string): void {
    if (outcome?.ok === true && peerId !== this.id) outcome.away?.givenTo?.(peerId);
  }

  #lost(owner: string, sequence: number, label: string): ObjectEntry {
    const entry = new ObjectEntry(owner, sequence, label);
    entry.fetch = () => this.#link.fetch(owner, entry);
    return entry;
  }
}

type ObjectEntryFailure = Parameters<ObjectEntry["reject"]>[0];
