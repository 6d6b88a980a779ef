/**
 * A channel that outlives its connections, for peers on other machines.
 *
 * Both sides count batches. What was sent is kept until the other side says that it has it; after a cut, the side that dialled dials again, each says
 * how much it has, and the rest is sent once more: nothing is lost, nothing comes twice. A peer that cannot be reached for `reconnectTimeoutMs` is
 * lost, and so is one of which is known otherwise that it is gone (`explain`). One that was reached and does not answer yet is busy: its time does not
 * count, nor does that of a dialler that has a connection beside the link, for half an hour. Connections that break before anything came over them save nobody: their cuts count together.
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
import { maxUnreadBytes, type SocketChannel, unreadBytesOf } from "../socket.ts";

/** A connection over which a link goes on, and how much of ours the peer has. */
export interface Resumed {
  readonly wire: SocketChannel;
  readonly received: number;
}

export interface LinkTimes {
  /** How long a cut may last. Default 30,000. */
  readonly reconnectTimeoutMs?: number;
  /** How long a lost peer has to be explained, and what it sent last to arrive. Default 5,000. */
  readonly explainMs?: number;
}

export interface LinkOptions extends LinkTimes {
  /** Who is at the other end, for messages to people. */
  readonly peer: string;
  /** Resolves when the peer is known to be gone; may never do. */
  readonly explain: () => Promise<DeathCause>;
  /** Asked when the peer is lost: the time that it has to be explained begins when this settles. Default: at once. */
  readonly whenExplainable?: (() => Promise<unknown>) | undefined;
  /**
   * Makes a new connection, saying how much of the peer's is here; `onReached` is called when the peer's machine has taken it, which answers when it can.
   * The side that was dialled has none: it waits. Rejects with LinkRefused when there is nothing to go on with.
   */
  readonly redial?: Redial;
  /** Its connection was cut, and nobody said why. */
  readonly onCut?: () => void;
  /** What may be sent that the peer does not say it has, without big buffers. Default `maxUnreadBytes` of socket.ts. */
  readonly maxUnreadBytes?: number;
}

/** Rejects when it is not wanted any more. */
export type Redial = (
  received: number,
  onReached: () => void,
  signal: AbortSignal,
) => Promise<Resumed>;

/** The peer answered, and knows nothing of the link any more. */
export class LinkRefused extends RaySystemError {}

export const standardTimes: Required<LinkTimes> = { reconnectTimeoutMs: 30_000, explainMs: 5000 };
/** The first pause behind a connection that was of no use; doubles up to the longest: a way that is there for a second is found. */
const pauseMs = { first: 50, longest: 500 };
/** So many cuts within that time are worth a warning, once for as long. */
const flapping = { cuts: 5, ms: 60_000 };
/** Whoever receives something says so at least as often. */
const sayMs = 1000;
/** A dialler that says nothing for so long, though its machine answers, is gone: it asks every few seconds unless its thread is held. */
export const longestSilenceMs: number = 30 * 60 * 1000;
/** What has arrived is acknowledged after so many batches or bytes, or so many ms. */
const acknowledge = { batches: 64, bytes: 256 * 1024, ms: 50 };

const words = { received: 1, goodbye: 2, ask: 3 } as const;

export class Link implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly #options: LinkOptions;
  readonly #resolveClosed: (reason: DeathCause) => void;
  readonly #times: Required<LinkTimes>;
  readonly #maxUnreadBytes: number;
  #open = true;
  /** It is gone; what it sent last may still arrive. */
  #gone: DeathCause | undefined;
  #wire: SocketChannel | undefined;
  #receiver: ((batch: Batch) => void) | undefined;
  #placeOfPart: PlaceOfPart | undefined;
  /** Arrived before anybody received. */
  #early: Batch[] = [];
  /** Sent, and not known to have arrived. */
  readonly #kept: Fifo<Batch> = new Fifo();
  /** Number of the first of those. */
  #keptFrom = 0;
  /** What they take, without big buffers. */
  #keptBytes = 0;
  #received = 0;
  #acknowledged = 0;
  #unacknowledgedBytes = 0;
  #acknowledgeTimer: NodeJS.Timeout | undefined;
  /** How long it may be cut: runs while it is, and its peer is not reached. */
  readonly #patience: Patience;
  #attachedAt = 0;
  /** When something came last. */
  #heardAt = 0;
  /** When this side said last how much it has. */
  #saidAt = 0;
  /** Why the last attempt to reach it failed. */
  #failure: Error | undefined;
  /** Before the next attempt. */
  #pauseMs = 0;
  /** It was closed while it was cut. */
  #owesGoodbye = false;
  /** Of its attempts to be connected. */
  readonly #attempts: AbortController = new AbortController();
  #goneTimer: NodeJS.Timeout | undefined;
  #wakeRedial: (() => void) | undefined;
  #cuts = 0;
  /** When the last ones were, as far back as is looked. */
  #lastCuts: number[] = [];
  #warnedAt = -Infinity;
  #drainWaiters: (() => void)[] = [];
  /** The connection beside it (transport/link/heartbeat.ts), while it is there, of the side that dialled. */
  heartbeat: SocketChannel | undefined;
  /** Of the side that was dialled: its peer proved itself over a connection beside it, which is there. */
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
      // Who cannot say why says nothing; the connection tells.
      () => undefined,
    );
  }

  get isOpen(): boolean {
    return this.#open && this.#gone === undefined;
  }

  /** How many of the peer's batches are here. */
  get received(): number {
    return this.#received;
  }

  /** How often its connection was cut. */
  get cuts(): number {
    return this.#cuts;
  }

  /** When something was heard of the peer last, as of performance.now(). */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** How long a cut may last. */
  get reconnectTimeoutMs(): number {
    return this.#times.reconnectTimeoutMs;
  }

  /** Whether there is a connection, be it a dead one: one that cannot be written to any more may never say that it has ended. */
  get isAttached(): boolean {
    return this.#wire !== undefined;
  }

  /** Asks the peer to say something. */
  ask(): void {
    this.#wire?.sendWord(Uint8Array.of(words.ask));
  }

  /** Goes on over that connection. @throws RaySystemError when the peer has more than was sent, or less than it said before */
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

  /** Makes its first connection, of one that has none yet. */
  begin(): void {
    const { redial } = this.#options;
    if (redial !== undefined) void this.#redial(redial);
  }

  /** Gives up its connection, over which nothing comes any more, as is known otherwise: it goes on over the next one. */
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

  /** Under TLS nothing can be read or written here: what has not left is lost, and told so by the end of its process. */
  isHeardNow(): boolean {
    const wire = this.#wire;
    if (wire === undefined || !wire.hasFile || !this.#open) return true;
    wire.poll();
    return this.#kept.size === 0;
  }

  /**
   * At the end of a process, where nothing is closed any more. A socket takes what fits into its buffers at once. Under TLS it does not while the last write is under way, whose end nobody hears
   * any more: the goodbye goes over the heartbeat then, where nothing is ever written.
   */
  sayGoodbyeNow(until: number): void {
    if (!this.#open) return;
    const goodbye = Uint8Array.of(words.goodbye);
    const wire = this.#wire;
    if (wire?.canWriteNow !== true) return this.heartbeat?.sendWord(goodbye);
    // With something unread, TCP would make the other side drop it.
    wire.poll();
    wire.sendWord(goodbye);
    wire.drainNow(until);
  }

  /** Its peer proved itself over another connection: a cut may last as long as that is there, and then as long as at its beginning. */
  heldBeside(): void {
    this.#isHeldBeside = true;
    if (this.#wire === undefined) this.#renew();
  }

  /** That connection is gone, and so is the way that both had. */
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

  /** What the other side says beside it. @throws RaySystemError on what is no goodbye */
  hearGoodbye(word: Uint8Array): void {
    if (word[0] !== words.goodbye || word.length !== 1) {
      throw new RaySystemError("an unknown word");
    }
    void this.#finish("it ended the connection");
  }

  close(reason: DeathCause): void {
    if (!this.#open) return;
    // Cut as it is, it dials once more to say so, if the other side knows it.
    this.#owesGoodbye = this.#wire === undefined && this.#attachedAt > 0;
    this.#wire?.sendWord(Uint8Array.of(words.goodbye));
    this.#end(reason);
  }

  /** Its connection ends with it, unless that is cut as well. */
  #peerGone(cause: DeathCause): void {
    if (!this.#open) return;
    this.#gone = cause;
    if (this.#wire === undefined) return this.#end(cause);
    this.#goneTimer = setTimeout(() => this.#end(cause), this.#times.explainMs).unref();
  }

  #giveUp(): void {
    const { peer } = this.#options;
    const message = `${peer} does not say that it has what was sent, more than ${this.#maxUnreadBytes} bytes`;
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

  /** In the middle of something big, perhaps. */
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

  /** @throws RaySystemError on what is no word */
  #hear(word: Uint8Array): void {
    if (word[0] === words.ask && word.length === 1) return this.#say();
    if (word[0] === words.received && word.length === 7) {
      return this.#drop(Buffer.from(word).readUIntLE(1, 6));
    }
    this.hearGoodbye(word);
  }

  /** The peer has so many. */
  #drop(received: number): void {
    const sent = this.#keptFrom + this.#kept.size;
    if (!Number.isSafeInteger(received) || received < this.#keptFrom || received > sent) {
      throw new RaySystemError(
        `${this.#options.peer} says that it has ${received} batches: it had ${this.#keptFrom} and was sent ${sent}`,
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
    // What cannot be read is no better over another connection.
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

  /** For how long, and why, if this side dialled. */
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
        // The first connection has its limit from the first failure on.
        if (this.#open) this.#patience.run();
      }
    }
  }

  /** Not the same for all who lost the same peer. */
  async #pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wakeRedial = resolve;
    const timer = setTimeout(resolve, ms * (0.5 + Math.random())).unref();
    await promise;
    clearTimeout(timer);
  }

  /** It cannot be reached: if nothing was heard of it until its end could be explained, it is lost. Another cut meanwhile has its own time. */
  async #giveUpPeer(): Promise<void> {
    // It computes, and dials when it has time.
    if (this.#isHeldBeside && performance.now() - this.#heardAt < longestSilenceMs) {
      return this.#renew();
    }
    await this.#finish(this.#notReached(), this.#failure, () => this.#patience.isOver);
  }

  /** It is lost; why is asked, for a while. */
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

/** It answered, and will say the same the next time. */
export function isFinal(error: unknown): boolean {
  return (
    error instanceof LinkRefused ||
    error instanceof AuthenticationError ||
    error instanceof ProtocolVersionError
  );
}

const givenUp: DeathCause = { kind: "unreachable", message: "the connection broke" };
const replaced: DeathCause = { kind: "unreachable", message: "another connection took its place" };
