/** The sessions of a runtime with its peers, made when first needed; what peers ask about objects is answered here. */
import type { Encoded } from "../protocol/codec.ts";
import type { FailureData } from "../protocol/failure.ts";
import type { Directory } from "../rpc/directory.ts";
import { type CallMessage, Session } from "../rpc/session.ts";
import type { DeathCause } from "../shared/errors.ts";
import type { ObjectEntry } from "../store/object-entry.ts";
import { peerOf, type Store } from "../store/store.ts";
import type { Channel } from "../transport/channel.ts";
import type { ObjectExchange } from "./object-exchange.ts";
import type { Pulls } from "./pulls.ts";

export interface SessionsLink {
  readonly id: string;
  readonly directory: Directory;
  readonly store: Store;
  readonly exchange: ObjectExchange;
  readonly pulls: Pulls;
  readonly onCall: (call: CallMessage, session: Session) => void;
  settle(entry: ObjectEntry, value: Encoded): void;
  exportReferences(references: readonly object[], peerId: string): void;
  decline(value: Encoded): void;
  describe(error: Error): FailureData;
}

export class Sessions {
  readonly #link: SessionsLink;
  readonly #known: Map<string, Promise<Session>> = new Map();
  readonly #open: Set<Session> = new Set();
  /** Holders of our objects of whose death the directory is to tell. */
  readonly #followed: Set<string> = new Set();

  constructor(link: SessionsLink) {
    this.#link = link;
  }

  /** The living ones. */
  get open(): Iterable<Session> {
    return this.#open;
  }

  /** A peer opened a channel to us, or the launcher made one. */
  add(peerId: string, channel: Channel): Session {
    const link = this.#link;
    const { store, exchange, onCall } = link;
    const session = new Session(peerId, channel, {
      onCall,
      onFetch: (id, objectId, whole, from) =>
        exchange.answer(id, objectId, whole, store.exported(objectId), from),
      onValue: (objectId, value) => {
        const entry = store.borrowed(objectId);
        // Nobody speaks for another owner.
        if (entry?.owner === peerId) link.settle(entry, value);
        else link.decline(value);
      },
      onReference: (objectId, holder, change) => {
        store.changeReference(objectId, holder, change);
        this.#follow(peerOf(holder));
      },
      onCancelObject: (objectId, recursive, force) => {
        try {
          store.exported(objectId)?.producer?.cancel(recursive, force);
        } catch (error) {
          // The one who asked is not there to hear of it.
          process.emitWarning(String(error), "RaylingWarning");
        }
      },
      onParts: (bytes, from, begin) => link.pulls.take(from, bytes, begin),
      onExport: (references) => link.exportReferences(references, peerId),
      onUnread: (value) => link.decline(value),
    });
    const known = Promise.resolve(session);
    this.#known.set(peerId, known);
    this.#open.add(session);
    void session.closed.then((reason) => {
      this.#open.delete(session);
      if (this.#known.get(peerId) === known) this.#known.delete(peerId);
      this.#dropHolder(peerId, reason);
    });
    return session;
  }

  /** A peer without a session to us has what it holds until the directory knows of its death, which may be long ago. */
  #follow(peerId: string): void {
    const { directory, id } = this.#link;
    if (peerId === id || this.#known.has(peerId) || this.#followed.has(peerId)) return;
    this.#followed.add(peerId);
    directory.death(peerId).then(
      (cause) => {
        this.#followed.delete(peerId);
        this.#dropHolder(peerId, cause);
      },
      // A directory that does not answer ends with this runtime.
      () => undefined,
    );
  }

  #dropHolder(peerId: string, { message }: DeathCause): void {
    const { store } = this.#link;
    store.dropHolder(peerId, message, (error) => this.#link.describe(error));
  }

  /** The one with that peer, which the directory connects us to if there is none. Rejects when it is gone. */
  async with(peerId: string): Promise<Session> {
    const known = this.#known.get(peerId);
    if (known !== undefined) return known;
    const connecting = this.#link.directory
      .connect(peerId)
      .then((channel) => this.add(peerId, channel));
    this.#known.set(peerId, connecting);
    try {
      return await connecting;
    } catch (error) {
      if (this.#known.get(peerId) === connecting) this.#known.delete(peerId);
      this.#follow(peerId);
      throw error;
    }
  }

  /** Sends what is gathered, on every session: the thread is about to end. */
  flush(): void {
    for (const session of this.#open) session.flush();
  }

  close(reason: DeathCause): void {
    for (const session of this.#open) session.close(reason);
  }
}
