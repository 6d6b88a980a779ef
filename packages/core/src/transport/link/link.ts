/**
 * A channel that outlives its connections, for peers on other machines.
 *
 * Both sides count batches. A sent batch is kept until the peer acknowledges it (resend-buffer.ts,
 * receipts.ts). After a cut the dialling side dials again (link-connection.ts), each side says how
 * much it has received, and the rest is sent once more: nothing is lost, and nothing arrives twice.
 * A peer that cannot be reached for `reconnectTimeoutMs` is lost, and so is a peer that `explain`
 * reports as gone (peer-end.ts).
 */
import type { Batch } from "../../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { brokenChannel, type Channel, type PlaceOfPart } from "../channel.ts";
import { maxUnreadBytes } from "../socket/socket.ts";
import type { DialledHeartbeat } from "./dialled-heartbeat.ts";
import { LinkConnection, replaced } from "./link-connection.ts";
import { readWord } from "./link-words.ts";
import { PeerEnd } from "./peer-end.ts";
import { Receipts } from "./receipts.ts";
import type { Redial, Resumed } from "./redialler.ts";
import { ResendBuffer } from "./resend-buffer.ts";

export interface LinkTimes {
  /** The longest cut, in ms. Default 30,000. */
  readonly reconnectTimeoutMs?: number;
  /** The time to explain the loss of a peer and to receive its last data, in ms. Default 5,000. */
  readonly explainMs?: number;
}

export interface LinkOptions extends LinkTimes {
  /** The name of the peer, for messages to people. */
  readonly peer: string;
  /** Resolves when the peer is known to be gone; it may never settle. */
  readonly explain: () => Promise<DeathCause>;
  /**
   * Delays the time to explain the loss of the peer until it settles. Default: that time begins at
   * once.
   */
  readonly whenExplainable?: (() => Promise<unknown>) | undefined;
  /** Makes new connections. The dialled side has none: it waits. */
  readonly redial?: Redial;
  /** The heartbeat that the dialling side makes beside its connections. */
  readonly heartbeat?: DialledHeartbeat;
  /** Called when the connection is cut without a reason. */
  readonly onCut?: () => void;
  /**
   * The most bytes that may await acknowledgement, without big buffers. Default `maxUnreadBytes` of
   * transport/socket/socket.ts.
   */
  readonly maxUnreadBytes?: number;
}

export const standardTimes: Required<LinkTimes> = { reconnectTimeoutMs: 30_000, explainMs: 5000 };

export class Link implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly connection: LinkConnection;
  /** The batches that have arrived over all connections. */
  readonly receipts: Receipts;
  readonly #resolveClosed: (reason: DeathCause) => void;
  readonly #sent: ResendBuffer;
  readonly #end: PeerEnd;
  #open = true;
  #receiver: ((batch: Batch) => void) | undefined;
  /** Batches that arrived before there was a receiver. */
  #early: Batch[] = [];
  #placeOfPart: PlaceOfPart | undefined;

  constructor(options: LinkOptions) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    const { peer, onCut, redial, heartbeat } = options;
    const {
      reconnectTimeoutMs = standardTimes.reconnectTimeoutMs,
      explainMs = standardTimes.explainMs,
    } = options;
    this.#sent = new ResendBuffer(peer, options.maxUnreadBytes ?? maxUnreadBytes);
    this.receipts = new Receipts((word) => this.connection.wire?.sendWord(word));
    this.connection = new LinkConnection({
      peer,
      redial,
      heartbeat,
      reconnectTimeoutMs,
      goodbyeMs: explainMs,
      goesOn: () => this.isOpen,
      received: () => this.receipts.count,
      silentMs: () => this.receipts.silentMs,
      onConnected: (resumed) => this.#resume(resumed),
      onEnded: (reason) => this.#outlives(reason),
      onCut,
      onLost: (message, error, isStillSo) => void this.#end.look(message, error, isStillSo),
    });
    this.#end = new PeerEnd({
      explain: options.explain,
      whenExplainable: options.whenExplainable,
      explainMs,
      isConnected: () => this.connection.isAttached,
      silentMs: () => this.receipts.silentMs,
      onEnd: (cause) => this.#finish(cause),
    });
  }

  get isOpen(): boolean {
    return this.#open && this.#end.cause === undefined;
  }

  /**
   * Goes on over that connection.
   *
   * @throws RaySystemError when the peer claims more than was sent, or less than it acknowledged
   * before
   */
  attach({ wire, received }: Resumed): void {
    if (!this.isOpen) return wire.close(replaced);
    this.#sent.drop(received);
    this.connection.use(wire);
    this.receipts.attached();
    wire.onWord((word) => this.#hear(word));
    wire.onBytes(() => {
      if (wire === this.connection.wire) this.receipts.heardBytes();
    });
    if (this.#placeOfPart !== undefined) wire.takeParts(this.#placeOfPart);
    for (const batch of this.#sent.all()) if (wire.isOpen) wire.send(batch);
    wire.onMessage((batch) => {
      if (wire === this.connection.wire) this.#arrived(batch);
    });
  }

  send(batch: Batch): void {
    if (!this.isOpen) throw new RaySystemError("the channel is closed");
    this.#sent.add(batch);
    if (this.#sent.isOverfull) return this.#finish(brokenChannel(this.#sent.overfull()));
    const { wire } = this.connection;
    if (wire?.isOpen === true) wire.send(batch);
  }

  takeParts(place: PlaceOfPart): void {
    this.#placeOfPart = place;
    this.connection.wire?.takeParts(place);
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#receiver = receiver;
    const early = this.#early;
    this.#early = [];
    for (const batch of early) receiver(batch);
  }

  poll(): readonly Batch[] {
    const batches = this.connection.wire?.poll() ?? [];
    for (const batch of batches) this.receipts.add(batch);
    return batches;
  }

  drained(): Promise<void> {
    return this.isOpen ? this.#sent.drained() : Promise.resolve();
  }

  drainNow(until?: number): void {
    this.connection.wire?.drainNow(until);
  }

  /**
   * Under TLS nothing can be read or written synchronously: unsent data is lost, and the peer
   * learns that from the end of the process.
   */
  isHeardNow(): boolean {
    const { wire } = this.connection;
    if (wire === undefined || !wire.hasFile || !this.#open) return true;
    wire.poll();
    return this.#sent.isEmpty;
  }

  /** Says goodbye at the end of a process, where nothing is closed any more. */
  sayGoodbyeNow(until: number): void {
    if (this.#open) this.connection.sayGoodbyeNow(until);
  }

  /**
   * Receives a word over the heartbeat.
   *
   * @throws RaySystemError on any word but goodbye
   */
  hearGoodbye(word: Uint8Array): void {
    if (readWord(word) !== "goodbye") throw new RaySystemError("unknown control word from peer");
    void this.#end.look("it ended the connection");
  }

  close(reason: DeathCause): void {
    if (!this.#open) return;
    this.connection.sayGoodbye();
    this.#finish(reason);
  }

  #finish(reason: DeathCause): void {
    if (!this.#open) return;
    this.#open = false;
    this.#end.stop();
    this.receipts.end();
    this.connection.end(reason);
    this.#resolveClosed(reason);
    this.#sent.end();
  }

  /** Goes on over a connection that this side made. */
  #resume(resumed: Resumed): void {
    try {
      this.attach(resumed);
    } catch (error) {
      resumed.wire.close(replaced);
      this.#finish(brokenChannel(error));
    }
  }

  /** Ends the link with its connection, unless that was only cut. Returns whether it goes on. */
  #outlives(reason: DeathCause): boolean {
    // Malformed data would be no better over another connection.
    if (reason.kind === "channel-broken") this.#finish(reason);
    else if (this.#end.cause !== undefined) this.#finish(this.#end.cause);
    return this.#open;
  }

  #arrived(batch: Batch): void {
    this.receipts.add(batch);
    if (this.#receiver === undefined) this.#early.push(batch);
    else this.#receiver(batch);
  }

  /** @throws RaySystemError on an unknown word */
  #hear(word: Uint8Array): void {
    const said = readWord(word);
    if (said === "ask") this.receipts.say();
    else if (said === "goodbye") this.hearGoodbye(word);
    else this.#sent.drop(said);
  }
}
