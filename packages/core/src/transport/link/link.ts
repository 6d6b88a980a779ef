/**
 * A channel that outlives its connections, for peers on other machines.
 *
 * Both sides count batches. A sent batch is kept until the peer acknowledges it. After a cut the
 * dialling side dials again, each side says how much it has received, and the rest is sent once
 * more: nothing is lost, and nothing arrives twice. A peer that cannot be reached for
 * `reconnectTimeoutMs` is lost, and so is a peer that `explain` reports as gone. A peer that was
 * reached and does not answer yet is busy: that time does not count. Nor does the time of a dialler
 * that holds a heartbeat, for up to half an hour. A connection that breaks before any data came
 * over it does not restart the time.
 */
import type { Batch } from "../../protocol/message.ts";
import {
  AuthenticationError,
  type DeathCause,
  ProtocolVersionError,
  RaySystemError,
} from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { warn } from "../../shared/text/warning.ts";
import { brokenChannel, type Channel, type PlaceOfPart } from "../channel.ts";
import { deadline, Patience } from "../deadline.ts";
import { maxUnreadBytes, type SocketChannel, unreadBytesOf } from "../socket/socket.ts";

/**
 * A connection over which a link goes on, and the number of this side's batches that the peer has.
 */
export interface Resumed {
  readonly wire: SocketChannel;
  readonly received: number;
}

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
  /**
   * Makes a new connection and reports the number of received batches; `onReached` is called when
   * the peer's machine has accepted it. The dialled side has none: it waits. Rejects with
   * LinkRefused when the peer no longer knows the link.
   */
  readonly redial?: Redial;
  /** Called when the connection is cut without a reason. */
  readonly onCut?: () => void;
  /**
   * The most bytes that may await acknowledgement, without big buffers. Default `maxUnreadBytes` of
   * transport/socket/socket.ts.
   */
  readonly maxUnreadBytes?: number;
}

/** Makes a connection. Rejects when `signal` aborts. */
export type Redial = (
  received: number,
  onReached: () => void,
  signal: AbortSignal,
) => Promise<Resumed>;

/** The peer answered but no longer knows the link. */
export class LinkRefused extends RaySystemError {}

export const standardTimes: Required<LinkTimes> = { reconnectTimeoutMs: 30_000, explainMs: 5000 };
/**
 * The first pause after a useless connection, in ms; it doubles up to the longest. A short longest
 * pause finds a network that is back for only a second.
 */
const pauseMs = { first: 50, longest: 500 };
/** This many cuts within this time cause a warning, at most once in that time. */
const flapping = { cuts: 5, ms: 60_000 };
/** A side that receives data acknowledges it at least this often, in ms. */
const sayMs = 1000;
/**
 * A dialler that is silent for this long is gone, even if its machine answers: unless its thread is
 * held, it asks every few seconds.
 */
export const longestSilenceMs: number = 30 * 60 * 1000;
/** Received batches are acknowledged after this many batches, bytes or ms. */
const acknowledge = { batches: 64, bytes: 256 * 1024, ms: 50 };

const words = { received: 1, goodbye: 2, ask: 3 } as const;

export class Link implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly #options: LinkOptions;
  readonly #resolveClosed: (reason: DeathCause) => void;
  readonly #times: Required<LinkTimes>;
  readonly #maxUnreadBytes: number;
  #open = true;
  /** The cause of the peer's end; its last data may still arrive. */
  #gone: DeathCause | undefined;
  #wire: SocketChannel | undefined;
  #receiver: ((batch: Batch) => void) | undefined;
  #placeOfPart: PlaceOfPart | undefined;
  /** Batches that arrived before there was a receiver. */
  #early: Batch[] = [];
  /** Sent batches without an acknowledgement. */
  readonly #kept: Fifo<Batch> = new Fifo();
  /** The number of the first kept batch. */
  #keptFrom = 0;
  /** The bytes of the kept batches, without big buffers. */
  #keptBytes = 0;
  #received = 0;
  #acknowledged = 0;
  #unacknowledgedBytes = 0;
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  /** The time budget of a cut: it runs while the link is cut and the peer is not reached. */
  readonly #patience: Patience;
  #attachedAt = 0;
  /** When data last arrived. */
  #heardAt = 0;
  /** When this side last acknowledged. */
  #saidAt = 0;
  /** The error of the last attempt to reach the peer. */
  #failure: Error | undefined;
  /** The pause before the next attempt, in ms. */
  #pauseMs = 0;
  /** Whether the link was closed while it was cut. */
  #owesGoodbye = false;
  /** Aborts the attempts to connect. */
  readonly #attempts: AbortController = new AbortController();
  #goneTimer: NodeJS.Timeout | undefined;
  #wakeRedial: (() => void) | undefined;
  #cuts = 0;
  /** The times of the last cuts, within the warning period. */
  #lastCuts: number[] = [];
  #warnedAt = -Infinity;
  #drainWaiters: (() => void)[] = [];
  /**
   * The heartbeat beside the link (transport/link/heartbeat.ts), on the side that dialled, while it
   * exists.
   */
  heartbeat: SocketChannel | undefined;
  /** Whether, on the dialled side, the peer holds a heartbeat beside the link. */
  #isHeldBeside = false;

  constructor(options: LinkOptions) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    this.#options = options;
    this.#maxUnreadBytes = options.maxUnreadBytes ?? maxUnreadBytes;
    const { reconnectTimeoutMs, explainMs } = options;
    this.#times = {
      reconnectTimeoutMs: reconnectTimeoutMs ?? standardTimes.reconnectTimeoutMs,
      explainMs: explainMs ?? standardTimes.explainMs,
    };
    this.#patience = new Patience(this.#times.reconnectTimeoutMs, () => void this.#giveUpPeer());
    options.explain().then(
      (cause) => this.#peerGone(cause),
      // A failed explanation says nothing; the connection decides.
      () => undefined,
    );
  }

  get isOpen(): boolean {
    return this.#open && this.#gone === undefined;
  }

  /** The number of received batches. */
  get received(): number {
    return this.#received;
  }

  /** The number of cuts. */
  get cuts(): number {
    return this.#cuts;
  }

  /** When data last arrived from the peer, by performance.now(). */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** The longest cut, in ms. */
  get reconnectTimeoutMs(): number {
    return this.#times.reconnectTimeoutMs;
  }

  /**
   * Whether there is a connection, possibly a dead one: a connection that can no longer be written
   * to may never report its end.
   */
  get isAttached(): boolean {
    return this.#wire !== undefined;
  }

  /** Asks the peer to send a word. */
  ask(): void {
    this.#wire?.sendWord(Uint8Array.of(words.ask));
  }

  /**
   * Goes on over that connection.
   *
   * @throws RaySystemError when the peer claims more than was sent, or less than it acknowledged
   * before
   */
  attach({ wire, received }: Resumed): void {
    if (!this.isOpen) return wire.close(replaced);
    this.#drop(received);
    const last = this.#wire;
    this.#wire = wire;
    last?.close(replaced);
    this.#patience.renew();
    this.#attachedAt = performance.now();
    this.#heardAt = this.#attachedAt;
    this.#saidAt = this.#attachedAt;
    this.#failure = undefined;
    this.#acknowledged = this.#received;
    this.#unacknowledgedBytes = 0;
    wire.onWord((word) => this.#hear(word));
    wire.onBytes(() => {
      if (wire === this.#wire) this.#heardBytes();
    });
    if (this.#placeOfPart !== undefined) wire.takeParts(this.#placeOfPart);
    void wire.closed.then((reason) => this.#cut(wire, reason));
    for (const batch of this.#kept) if (wire.isOpen) wire.send(batch);
    wire.onMessage((batch) => {
      if (wire === this.#wire) this.#arrived(batch);
    });
  }

  /** Makes the first connection of a link that has none yet. */
  begin(): void {
    const { redial } = this.#options;
    if (redial !== undefined) void this.#redial(redial);
  }

  /** Drops a connection that is known to be dead; the link goes on over the next one. */
  cut(): void {
    this.#wire?.close(givenUp);
  }

  send(batch: Batch): void {
    if (!this.isOpen) throw new RaySystemError("the channel is closed");
    this.#kept.push(batch);
    this.#keptBytes += unreadBytesOf(batch);
    if (this.#keptBytes > this.#maxUnreadBytes) return this.#giveUp();
    if (this.#wire?.isOpen === true) this.#wire.send(batch);
  }

  takeParts(place: PlaceOfPart): void {
    this.#placeOfPart = place;
    this.#wire?.takeParts(place);
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#receiver = receiver;
    const early = this.#early;
    this.#early = [];
    for (const batch of early) receiver(batch);
  }

  poll(): readonly Batch[] {
    const batches = this.#wire?.poll() ?? [];
    for (const batch of batches) this.#count(batch);
    return batches;
  }

  drained(): Promise<void> {
    if (!this.isOpen || this.#kept.size === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  drainNow(until?: number): void {
    this.#wire?.drainNow(until);
  }

  /**
   * Under TLS nothing can be read or written synchronously: unsent data is lost, and the peer
   * learns that from the end of the process.
   */
  isHeardNow(): boolean {
    const wire = this.#wire;
    if (wire === undefined || !wire.hasFile || !this.#open) return true;
    wire.poll();
    return this.#kept.size === 0;
  }

  /**
   * Says goodbye at the end of a process, where nothing is closed any more. A socket takes as much
   * as fits into its buffers at once. Under TLS it does not while the last write is under way,
   * because its completion event never comes: then the goodbye goes over the heartbeat, where
   * nothing else is written.
   */
  sayGoodbyeNow(until: number): void {
    if (!this.#open) return;
    const goodbye = Uint8Array.of(words.goodbye);
    const wire = this.#wire;
    if (wire?.canWriteNow !== true) return this.heartbeat?.sendWord(goodbye);
    // With unread data here, TCP would make the peer drop the goodbye.
    wire.poll();
    wire.sendWord(goodbye);
    wire.drainNow(until);
  }

  /**
   * The peer holds a heartbeat now: a cut may last as long as the heartbeat, and a full time budget
   * after it.
   */
  heldBeside(): void {
    this.#isHeldBeside = true;
    if (this.#wire === undefined) this.#renew();
  }

  /** The heartbeat is gone, and the network that both used. */
  lostBeside(): void {
    this.#isHeldBeside = false;
    if (this.#wire === undefined) this.#renew();
    else this.cut();
  }

  #renew(): void {
    if (!this.isOpen) return;
    this.#patience.renew();
    this.#patience.run();
  }

  /**
   * Receives a word over the heartbeat.
   *
   * @throws RaySystemError on any word but goodbye
   */
  hearGoodbye(word: Uint8Array): void {
    if (word[0] !== words.goodbye || word.length !== 1) {
      throw new RaySystemError("unknown control word from peer");
    }
    void this.#finish("it ended the connection");
  }

  close(reason: DeathCause): void {
    if (!this.#open) return;
    // A cut link dials once more to say goodbye, if the peer knows it.
    this.#owesGoodbye = this.#wire === undefined && this.#attachedAt > 0;
    this.#wire?.sendWord(Uint8Array.of(words.goodbye));
    this.#end(reason);
  }

  /** The link ends with its connection, unless that was only cut. */
  #peerGone(cause: DeathCause): void {
    if (!this.#open) return;
    this.#gone = cause;
    if (this.#wire === undefined) return this.#end(cause);
    this.#goneTimer = setTimeout(() => this.#end(cause), this.#times.explainMs).unref();
  }

  #giveUp(): void {
    const { peer } = this.#options;
    const message = `${peer} has not acknowledged more than ${this.#maxUnreadBytes} bytes`;
    this.#end(brokenChannel(new RaySystemError(message)));
  }

  #end(reason: DeathCause): void {
    if (!this.#open) return;
    this.#open = false;
    this.#patience.stop();
    clearTimeout(this.#goneTimer);
    clearTimeout(this.#acknowledgeTimer);
    this.#wakeRedial?.();
    if (this.#owesGoodbye) deadline(this.#times.explainMs, () => this.#attempts.abort());
    else this.#attempts.abort();
    this.#wire?.close(reason);
    this.#kept.drain();
    this.#resolveClosed(reason);
    for (const waiter of this.#drainWaiters) waiter();
  }

  #arrived(batch: Batch): void {
    this.#count(batch);
    if (this.#receiver === undefined) this.#early.push(batch);
    else this.#receiver(batch);
  }

  /** Bytes came, perhaps in the middle of a big frame. */
  #heardBytes(): void {
    const now = performance.now();
    this.#heardAt = now;
    if (now - this.#saidAt >= sayMs) this.#say();
  }

  #count(batch: Batch): void {
    this.#received += 1;
    this.#unacknowledgedBytes += batch.bytes.length + (batch.part?.data.length ?? 0);
    for (const { byteLength } of batch.buffers) this.#unacknowledgedBytes += byteLength;
    const isMuch =
      this.#received - this.#acknowledged >= acknowledge.batches ||
      this.#unacknowledgedBytes >= acknowledge.bytes;
    if (isMuch) return this.#acknowledge();
    this.#acknowledgeTimer ??= setTimeout(() => this.#acknowledge(), acknowledge.ms).unref();
  }

  #acknowledge(): void {
    clearTimeout(this.#acknowledgeTimer);
    this.#acknowledgeTimer = undefined;
    if (this.#acknowledged !== this.#received) this.#say();
  }

  #say(): void {
    this.#saidAt = performance.now();
    this.#acknowledged = this.#received;
    this.#unacknowledgedBytes = 0;
    const word = Buffer.allocUnsafe(7);
    word[0] = words.received;
    word.writeUIntLE(this.#received, 1, 6);
    this.#wire?.sendWord(word);
  }

  /** @throws RaySystemError on an unknown word */
  #hear(word: Uint8Array): void {
    if (word[0] === words.ask && word.length === 1) return this.#say();
    if (word[0] === words.received && word.length === 7) {
      return this.#drop(Buffer.from(word).readUIntLE(1, 6));
    }
    this.hearGoodbye(word);
  }

  /** Drops the batches that the peer has acknowledged. */
  #drop(received: number): void {
    const sent = this.#keptFrom + this.#kept.size;
    if (!Number.isSafeInteger(received) || received < this.#keptFrom || received > sent) {
      throw new RaySystemError(
        `${this.#options.peer} acknowledged ${received} batches: it had ${this.#keptFrom} and was sent ${sent}`,
      );
    }
    for (; this.#keptFrom < received; this.#keptFrom++) {
      const batch = this.#kept.shift();
      if (batch !== undefined) this.#keptBytes -= unreadBytesOf(batch);
    }
    if (this.#kept.size > 0 || this.#drainWaiters.length === 0) return;
    const waiters = this.#drainWaiters;
    this.#drainWaiters = [];
    for (const waiter of waiters) waiter();
  }

  #cut(wire: SocketChannel, reason: DeathCause): void {
    if (!this.#open || wire !== this.#wire) return;
    this.#wire = undefined;
    // Malformed data would be no better over another connection.
    if (reason.kind === "channel-broken") return this.#end(reason);
    if (this.#gone !== undefined) return this.#end(this.#gone);
    this.#cuts += 1;
    this.#options.onCut?.();
    if (performance.now() - this.#attachedAt >= pauseMs.longest) this.#pauseMs = 0;
    this.#warnOfFlapping();
    if (this.#open) this.#patience.run();
    const { redial } = this.#options;
    if (redial !== undefined) void this.#redial(redial);
  }

  #warnOfFlapping(): void {
    const now = performance.now();
    this.#lastCuts = [...this.#lastCuts.filter((at) => now - at < flapping.ms), now];
    if (this.#lastCuts.length < flapping.cuts || now - this.#warnedAt < flapping.ms) return;
    this.#warnedAt = now;
    warn(
      `the connection to ${this.#options.peer} was cut ${this.#lastCuts.length} times within ${flapping.ms / 1000} s; nothing is lost, and everything takes longer`,
    );
  }

  /** Says how long the peer was unreachable, and why, if this side dialled. */
  #notReached(): string {
    const { peer } = this.#options;
    const message = `${peer} could not be reached for ${this.#times.reconnectTimeoutMs / 1000} s`;
    if (this.#failure === undefined) return message;
    const why = this.#failure.message.replace(`${peer} cannot be reached: `, "");
    return `${message}: ${why}`;
  }

  async #redial(redial: Redial): Promise<void> {
    for (;;) {
      if (this.#pauseMs > 0 && this.#open) await this.#pause(this.#pauseMs);
      const isLast = !this.#open;
      if (this.#wire !== undefined || !(this.isOpen || this.#owesGoodbye)) return;
      this.#pauseMs = Math.min(Math.max(pauseMs.first, 2 * this.#pauseMs), pauseMs.longest);
      try {
        const { signal } = this.#attempts;
        const resumed = await redial(this.#received, () => this.#patience.stop(), signal);
        if (this.#owesGoodbye) {
          resumed.wire.sendWord(Uint8Array.of(words.goodbye));
          return resumed.wire.close(replaced);
        }
        try {
          return this.attach(resumed);
        } catch (error) {
          resumed.wire.close(replaced);
          return this.#end(brokenChannel(error));
        }
      } catch (error) {
        if (isLast) return;
        this.#failure = error instanceof Error ? error : new Error(String(error));
        if (isFinal(error)) return void this.#finish(this.#failure.message, this.#failure);
        // The time budget of the first connection starts at its first failure.
        if (this.#open) this.#patience.run();
      }
    }
  }

  /** Random pauses spread the links that lost a peer together. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakeRedial = resolve;
    const timer = setTimeout(resolve, ms * (0.5 + Math.random())).unref();
    await promise;
    clearTimeout(timer);
  }

  /**
   * Gives up a peer that cannot be reached, if nothing arrives from it while its end is being
   * explained. Another cut meanwhile has its own time.
   */
  async #giveUpPeer(): Promise<void> {
    // The peer computes, and dials when it has time.
    if (this.#isHeldBeside && performance.now() - this.#heardAt < longestSilenceMs) {
      return this.#renew();
    }
    await this.#finish(this.#notReached(), this.#failure, () => this.#patience.isOver);
  }

  /** Ends the link with the explanation of the peer's end, for which it waits a limited time. */
  async #finish(
    message: string,
    error?: Error,
    isStillSo: () => boolean = () => true,
  ): Promise<void> {
    const { promise: late, resolve } = Promise.withResolvers<DeathCause>();
    let timer: NodeJS.Timeout | undefined;
    const cause: DeathCause = {
      kind: "unreachable",
      message,
      ...(error === undefined ? {} : { error }),
    };
    const wait = (): void => {
      timer = setTimeout(() => resolve(cause), this.#times.explainMs).unref();
    };
    const { whenExplainable } = this.#options;
    if (whenExplainable === undefined) wait();
    else void whenExplainable().then(wait, wait);
    const explained = await Promise.race([this.#options.explain(), late]).catch(() => cause);
    clearTimeout(timer);
    if (explained !== cause || isStillSo()) this.#end(explained);
  }
}

/** Whether the peer's answer was final: it would repeat it. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof LinkRefused ||
    error instanceof AuthenticationError ||
    error instanceof ProtocolVersionError
  );
}

const givenUp: DeathCause = { kind: "unreachable", message: "the connection broke" };
const replaced: DeathCause = { kind: "unreachable", message: "another connection took its place" };
