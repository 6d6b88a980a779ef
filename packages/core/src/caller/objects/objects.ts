/**
 * The objects of one runtime: what is put, what calls return, what is away and is brought back.
 *
 * The ledger (Store), the memory of big values (ObjectMemory), what is asked of other owners
 * (ObjectExchange) and how lost results are made again (Lineage) are its parts.
 */
import { compact, type Encoded, isBig, sizeOf } from "../../protocol/codec.ts";
import type { Pending } from "../../protocol/message.ts";
import { cameBy } from "../../protocol/shared-memory.ts";
import type { Session } from "../../rpc/session/session.ts";
import { type Away, ObjectEntry } from "../../store/object-entry.ts";
import { ObjectMemory, type ObjectMemoryParts } from "../../store/object-memory.ts";
import { ObjectRef } from "../../store/object-ref.ts";
import type { Store } from "../../store/store.ts";
import { Call } from "../calls/call.ts";
import type { SessionLife } from "../session-life.ts";
import type { Values } from "../values.ts";
import type { Waiting } from "../waits/waiting-tasks.ts";
import { CopiesHere } from "./copies-here.ts";
import { Lineage } from "./lineage.ts";
import {
  inlineBytes,
  Located,
  type LocatedLink,
  type StandIn,
  standInOf,
} from "./results-at-their-host.ts";
import type { ObjectExchange } from "./object-exchange.ts";

export interface ObjectsParts {
  readonly store: Store;
  readonly values: Values;
  readonly waiting: Waiting;
  readonly life: SessionLife;
  readonly exchange: ObjectExchange;
  readonly memory: Pick<ObjectMemoryParts, "budget" | "files" | "immutability">;
  /** Big results of calls stay here: this runtime shares no memory with their owners. */
  readonly keepsResults: boolean;
}

export class Objects {
  readonly store: Store;
  readonly memory: ObjectMemory;
  readonly #parts: ObjectsParts;
  readonly #lineage: Lineage;
  readonly #located: LocatedLink;
  readonly #copies: CopiesHere;
  /** Results that stayed here. */
  readonly #placed: WeakSet<ObjectEntry> = new WeakSet();

  constructor(parts: ObjectsParts) {
    const { store, values, waiting, exchange } = parts;
    this.#parts = parts;
    this.store = store;
    this.memory = new ObjectMemory({
      ...parts.memory,
      describe: (error) => values.describe(error),
    });
    this.#copies = new CopiesHere(store.id);
    this.#lineage = new Lineage({
      createEntry: (label) => store.create(label),
      adopt: (entry, made) => this.#adopt(entry, made),
      describe: (error) => values.describe(error),
    });
    this.#located = {
      values,
      waiting,
      encodeStandIn: (standIn) => this.#encodeStandIn(standIn),
      fetchWhole: (entry) => exchange.fetchWhole(entry),
      findCopy: (entry, holders, limitMs) => exchange.findCopy(entry, holders, limitMs),
      canRemake: (entry) => this.#lineage.allows(entry),
      remake: (entry, loss) => this.#lineage.remake(entry, loss),
      arrived: (entry, value, copyOf) => this.#arrived(entry, value, copyOf),
    };
  }

  /** @throws NotEncodableError, SessionEndedError */
  put(value: unknown): ObjectRef {
    const { life, values } = this.#parts;
    life.check("what is put");
    const entry = this.store.create("put");
    entry.resolve(compact(values.codec.encode(value, "value")));
    this.memory.keep(entry, true);
    return new ObjectRef(entry);
  }

  /** A ref that settles as `work` does. */
  refOf(label: string, work: Promise<unknown>): ObjectRef {
    const { values } = this.#parts;
    const entry = this.store.create(label);
    work
      .then((value) => this.settle(entry, compact(values.codec.encode(value, label))))
      .catch((error: unknown) => entry.reject(values.describe(error)));
    return new ObjectRef(entry);
  }

  /**
   * Gives an entry the value that arrived for it, and takes over the refs inside.
   *
   * @param maker the call that made it, if one did: a big value may have to be made again
   */
  settle(entry: ObjectEntry, value: Encoded, maker?: Pending): void {
    const { codec } = this.#parts.values;
    try {
      codec.claim(value);
      const isLocated = value.isLocated === true;
      if ((isLocated || isBig(value)) && maker instanceof Call) this.#lineage.note(entry, maker);
      if (isLocated) this.#locate(entry, standInOf(codec.decode(value)));
      else entry.resolve(value);
      if (isBig(value) && entry.owner === this.store.id) this.memory.keep(entry, false);
    } catch (error) {
      // A value that cannot be read fails its own call, not the channel it came by.
      entry.reject(this.#parts.values.describe(error));
    }
  }

  /** Returns the answer to a call: in place of a big result that stays here, a stub of it. */
  placed(value: Encoded, label: string): Encoded {
    if (!this.#parts.keepsResults || sizeOf(value) <= inlineBytes) return value;
    const entry = this.store.create(label);
    this.settle(entry, compact(value));
    this.#placed.add(entry);
    return this.#encodeStandIn({ kept: new ObjectRef(entry), byteLength: sizeOf(value) });
  }

  /** Returns a stub of the copy that is here, if one is, of an object of the runtime that asks. */
  copyOf(objectId: string, asker: string): Encoded | undefined {
    const copy = this.#copies.find(objectId, asker);
    if (copy === undefined) return undefined;
    const { found, label, byteLength } = copy;
    const entry = found instanceof ObjectEntry ? found : this.store.create(label);
    if (!(found instanceof ObjectEntry)) this.settle(entry, compact(found));
    return this.#encodeStandIn({ kept: new ObjectRef(entry), byteLength });
  }

  /**
   * Gives the results that stayed here to the runtimes that hold them: this one is about to end.
   * Results on disk are lost.
   */
  handOver(open: Iterable<Session>): void {
    const sessions = new Map([...open].map((session) => [session.peerId, session]));
    for (const { entry, holders } of this.store.held()) {
      const value = entry.outcome?.value;
      if (value === undefined || !this.#placed.delete(entry)) continue;
      for (const holder of holders) {
        sessions.get(holder)?.send({ kind: "value", objectId: entry.id, value });
      }
    }
  }

  /** Hands over results that are on disk, too. */
  async handOverAll(open: Iterable<Session>): Promise<void> {
    const entries = [...this.store.held()].map(({ entry }) => entry);
    const placed = entries.filter((entry) => this.#placed.has(entry));
    await this.bringHere(placed, () => this.handOver(open));
  }

  /**
   * Whether values of these entries are away and no stub may be passed on in their place: they are
   * brought then, and `resume` is called when all are there or have failed.
   */
  bringing(entries: readonly ObjectEntry[], resume: () => void): boolean {
    return this.#bringing(entries, (entry, away) => away.standIn?.(entry) === undefined, resume);
  }

  /** Whether values of these entries are away: they are brought then, as by `bringing`. */
  bringingHere(entries: readonly ObjectEntry[], resume: () => void): boolean {
    return this.#bringing(entries, () => true, resume);
  }

  /** Brings what is away; `look` is called when all are there or have failed. */
  bringHere(entries: readonly ObjectEntry[], look: () => void): Promise<void> {
    return this.memory.bring(entries, look);
  }

  #bringing(
    entries: readonly ObjectEntry[],
    isWanted: (entry: ObjectEntry, away: Away) => boolean,
    resume: () => void,
  ): boolean {
    let wanted: ObjectEntry[] | undefined;
    for (const entry of entries) {
      const { outcome } = entry;
      if (outcome?.ok !== true) continue;
      if (outcome.value !== undefined) {
        if (isBig(outcome.value)) this.memory.used(entry);
      } else if (isWanted(entry, outcome.away)) {
        (wanted ??= []).push(entry);
      }
    }
    if (wanted === undefined) return false;
    void this.memory.bring(wanted, resume);
    return true;
  }

  #locate(entry: ObjectEntry, standIn: StandIn): void {
    // The value on the other host goes when something small here is collected.
    cameBy(standIn.byteLength);
    entry.resolveAway(new Located(standIn, this.#located));
  }

  #encodeStandIn(standIn: StandIn): Encoded {
    const encoded = this.#parts.values.codec.encode(standIn, "what stands for a value");
    return { ...encoded, isLocated: true };
  }

  /** The value of an entry that was away is in memory from now on. */
  #arrived(entry: ObjectEntry, value: Encoded, copyOf?: ObjectEntry): void {
    const { values } = this.#parts;
    try {
      values.codec.claim(value);
    } catch (error) {
      return entry.lost(values.describe(error));
    }
    entry.returned(value);
    if (entry.owner === this.store.id) this.memory.keep(entry, false);
    if (copyOf !== undefined) this.#copies.note(copyOf, entry, value);
  }

  /** Gives `entry` the value that a task has made again. */
  async #adopt(entry: ObjectEntry, made: ObjectEntry): Promise<void> {
    const { outcome } = made;
    if (outcome?.ok === false) return entry.lost(outcome.failure);
    if (outcome?.away instanceof Located) {
      const away = new Located(outcome.away, this.#located);
      entry.moved(away);
      return away.bring(entry);
    }
    await this.bringHere([made], () => {
      if (made.outcome?.ok === false) entry.lost(made.outcome.failure);
      else if (made.outcome?.value !== undefined) this.#arrived(entry, made.outcome.value);
    });
  }
}
