/**
 * The sessions of a runtime with its peers, made when first needed; peers' questions about objects
 * are answered here.
 *
 * The end of a session says nothing of the peer, which may live and be reached again: it holds its
 * objects until the directory says that it is dead. Of several sessions with one peer, calls and
 * fetches go over the newest, and counts of references over the first as long as it lives: a
 * lowered count must not overtake a raised one.
 */
import type { Directory } from "../../rpc/directory.ts";
import type { CallMessage } from "../../protocol/message.ts";
import { Session } from "../../rpc/session/session.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import { peerOf } from "../../store/store.ts";
import type { Channel } from "../../transport/channel.ts";
import type { References } from "../references.ts";
import type { Values } from "../values.ts";
import type { ObjectExchange } from "./object-exchange.ts";
import type { Objects } from "./objects.ts";
import type { Pulls } from "./pulls.ts";

export interface SessionsParts {
  readonly id: string;
  readonly directory: Directory;
  readonly exchange: ObjectExchange;
  readonly values: Values;
  readonly objects: Objects;
  readonly references: References;
  readonly pulls: Pulls;
  readonly onCall: (call: CallMessage, session: Session) => void;
  readonly concurrencyOf: (target: string) => number | undefined;
}

/** Others to whom one peer passes on what it holds: far more than a cluster has runtimes. */
const maxNamed: number = 2 ** 16;

/** A session, or the wait for it. */
interface Way {
  readonly session: Promise<Session>;
  opened: Session | undefined;
}

export class Sessions {
  readonly #parts: SessionsParts;
  /** The newest with each peer. */
  readonly #known: Map<string, Way> = new Map();
  /** The one with each peer that counts of references go over. */
  readonly #counted: Map<string, Way> = new Map();
  readonly #open: Set<Session> = new Set();
  /** Peers of whose death the directory is to tell, and who waits for that here. */
  readonly #followed: Map<string, Set<(cause: DeathCause) => void>> = new Map();
  #ended: DeathCause | undefined;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
  }

  /** The living ones. */
  get open(): Iterable<Session> {
    return this.#open;
  }

  /** A peer opened a channel to us, or the launcher made one. */
  add(peerId: string, channel: Channel, connected?: Way): Session {
    const { exchange, values, objects, references, pulls, onCall, concurrencyOf } = this.#parts;
    const { store } = objects;
    const named = new Set<string>();
    const session = new Session(peerId, channel, {
      onCall,
      concurrencyOf,
      onFetch: (fetch, from) => exchange.answer(fetch, store.exported(fetch.objectId), from),
      onValue: (objectId, value) => {
        const entry = store.borrowed(objectId);
        // Nobody speaks for another owner.
        if (entry?.owner === peerId) objects.settle(entry, value);
        else values.decline(value);
      },
      onReference: (objectId, holder, change) => {
        if (store.changeReference(objectId, holder, change)) this.#named(peerOf(holder), named);
      },
      onCancelObject: (objectId, recursive, force) => {
        try {
          store.exported(objectId)?.producer?.cancel?.(recursive, force);
        } catch (error) {
          // The one who asked is not there to hear of it.
          warn(String(error));
        }
      },
      onParts: (bytes, from, begin) => pulls.take(from, bytes, begin),
      onExport: (exported) => references.exportTo(peerId, exported),
      onUnread: (value) => values.decline(value),
    });
    const way = connected ?? this.#way(peerId, Promise.resolve(session));
    way.opened = session;
    this.#known.set(peerId, way);
    this.#open.add(session);
    void session.closed.then(() => this.#closed(session));
    return session;
  }

  /**
   * A peer says that somebody holds an object of ours, of whose end we must hear.
   *
   * @param named those that this peer has named and that may live
   * @throws RaySystemError for more than there are
   */
  #named(holder: string, named: Set<string>): void {
    if (holder === this.#parts.id || this.#known.has(holder) || named.has(holder)) return;
    if (named.size >= maxNamed) {
      throw new RaySystemError(`more than ${maxNamed} others hold what it was given`);
    }
    named.add(holder);
    this.whenDead(holder, () => void named.delete(holder));
  }

  /** Counts go over it, too, if there is none yet for them. */
  #way(peerId: string, session: Promise<Session>): Way {
    const way: Way = { session, opened: undefined };
    if (!this.#counted.has(peerId)) this.#counted.set(peerId, way);
    return way;
  }

  #closed(session: Session): void {
    const { peerId } = session;
    this.#open.delete(session);
    if (this.#known.get(peerId)?.opened === session) this.#known.delete(peerId);
    if (this.#counted.get(peerId)?.opened === session) this.#lostCounts(peerId);
    if (![...this.#open].some((other) => other.peerId === peerId)) this.#follow(peerId);
  }

  /** Changes of reference counts may have been lost with the session. */
  #lostCounts(peerId: string): void {
    this.#counted.delete(peerId);
    this.#parts.objects.store.wayLost(peerId);
  }

  /**
   * A peer without a session to us holds its objects until the directory knows of its death, which
   * may be long ago.
   */
  #follow(peerId: string): Set<(cause: DeathCause) => void> {
    const known = this.#followed.get(peerId);
    if (known !== undefined) return known;
    const watchers = new Set<(cause: DeathCause) => void>();
    this.#followed.set(peerId, watchers);
    this.#parts.directory.death(peerId).then(
      (cause) => {
        this.#followed.delete(peerId);
        this.#dropHolder(peerId, cause);
        for (const watcher of watchers) watcher(cause);
      },
      // A directory that does not answer ends with this runtime.
      () => undefined,
    );
    return watchers;
  }

  /**
   * Calls back when the directory says that the peer is dead, or this runtime ends; at once if it
   * has. Returns how to stop watching.
   */
  whenDead(peerId: string, watcher: (cause: DeathCause) => void): () => void {
    if (this.#ended !== undefined) {
      watcher(this.#ended);
      return () => undefined;
    }
    const watchers = this.#follow(peerId);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }

  #dropHolder(peerId: string, cause: DeathCause): void {
    const { objects, values } = this.#parts;
    objects.store.dropHolder(peerId, cause, (error) => values.describe(error));
  }

  /**
   * The session with that peer, which the directory connects us to if there is none. Rejects when
   * the peer is gone.
   */
  async with(peerId: string): Promise<Session> {
    const known = this.#known.get(peerId);
    if (known !== undefined && !isCut(known)) return known.session;
    const connecting = this.#parts.directory
      .connect(peerId)
      .then((channel) => this.add(peerId, channel, way));
    const way = this.#way(peerId, connecting);
    this.#known.set(peerId, way);
    try {
      return await connecting;
    } catch (error) {
      if (this.#known.get(peerId) === way) this.#known.delete(peerId);
      if (this.#counted.get(peerId) === way) this.#lostCounts(peerId);
      this.#follow(peerId);
      throw error;
    }
  }

  /**
   * The session that counts of references go over. Rejects when the peer cannot be reached, and the
   * counts are lost.
   */
  forCounts(peerId: string): Promise<Session> {
    const counted = this.#counted.get(peerId);
    if (counted !== undefined && !isCut(counted)) return counted.session;
    if (counted !== undefined) this.#lostCounts(peerId);
    const connected = this.with(peerId);
    // Later callers get this promise, too: a caller that waited for another one might be overtaken.
    const way = this.#known.get(peerId);
    if (way === undefined) return connected;
    connected.catch(() => undefined);
    this.#counted.set(peerId, way);
    return way.session;
  }

  /** Sends what is gathered, on every session: the thread is about to end. */
  flush(): void {
    for (const session of this.#open) session.flush();
  }

  close(reason: DeathCause): void {
    this.#ended ??= reason;
    for (const watchers of this.#followed.values()) for (const watcher of watchers) watcher(reason);
    this.#followed.clear();
    for (const session of this.#open) session.close(reason);
  }
}

/** It may take a while to be told why, and to end. */
function isCut({ opened }: Way): boolean {
  return opened?.isConnected === false;
}
