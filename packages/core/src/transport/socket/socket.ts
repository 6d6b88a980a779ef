/**
 * The channel over a socket: unix sockets and inherited pipes between processes of one machine, and
 * TCP under links.
 *
 * Owner, with transport/connect/ and transport/link/listen.ts, of node:net. It does not keep the
 * process alive unless `keepsAlive` is set. A socket that closes does not say why: `explain` does,
 * within `explainMs`. When a write finds the peer gone, the data that the peer sent before is still
 * read.
 *
 * Credit bounds the data that waits for the peer (rpc/session/session.ts); past `maxUnreadBytes`
 * the connection ends. It also ends for a peer that is too slow in the middle of a frame
 * (transport/socket/slow-peers.ts).
 */
import { Socket } from "node:net";
import type { Batch } from "../../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { brokenChannel, type Channel, type PlaceOfPart } from "../channel.ts";
import { SpinWait } from "../spin-wait.ts";
import { type FrameLimits, frameOf, peerLimits, wordFrame } from "./framing.ts";
import { destroyLater, hasFile } from "./raw-socket.ts";
import { type PeerLimits, peerRate } from "./slow-peers.ts";
import { SocketReader, unreadable } from "./socket-reader.ts";
import { SocketWriter } from "./socket-writer.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface SocketOptions {
  /** Returns the reason why the peer is gone; it is called when the socket closes. */
  readonly explain: () => Promise<DeathCause>;
  /** The name of the peer, for messages to people. */
  readonly peer: string;
  /** Whether the open socket keeps the process alive. Default false. */
  readonly keepsAlive?: boolean;
  readonly limits?: FrameLimits;
  /** The least speed of the peer. */
  readonly rate?: PeerLimits;
  /** The most bytes that may wait for the peer to read them. Default `maxUnreadBytes`. */
  readonly maxUnreadBytes?: number;
}

const explainMs = 5000;
/**
 * The most bytes that may wait for a peer that does not read. Big buffers do not count, because
 * they exist anyway.
 */
export const maxUnreadBytes: number = 1024 ** 3;

/** Returns a socket that this process inherited. */
export function inheritedSocket(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: true });
}

export class SocketChannel implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly #socket: Socket;
  readonly #reader: SocketReader;
  readonly #writer: SocketWriter;
  readonly #spinWait: SpinWait = new SpinWait();
  readonly #rate: PeerLimits;
  readonly #resolveClosed: (reason: DeathCause) => void;
  #explain: () => Promise<DeathCause>;
  #open = true;
  #hasEnded = false;

  constructor(socket: Socket, options: SocketOptions) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    this.#socket = socket;
    this.#explain = options.explain;
    const { peer, rate = peerRate, limits = peerLimits } = options;
    this.#rate = rate;
    this.#writer = new SocketWriter(socket, {
      peer,
      maxUnreadBytes: options.maxUnreadBytes ?? maxUnreadBytes,
      onOverfull: (error) => this.#giveUp(error),
    });
    this.#reader = new SocketReader(socket, {
      limits,
      rate,
      isOpen: () => this.#open,
      onEnd: (reason) => this.close(reason),
    });
    socket.on("data", (chunk: Buffer) => {
      if (!this.#open) return;
      this.#spinWait.end();
      this.#reader.arrived(chunk);
    });
    socket.pause();
    socket.on("end", () => {
      this.#hasEnded = true;
      socket.destroy();
    });
    // The error of a broken socket says less than the reason why the peer is gone.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      if (this.#open) void explained(this.#explain, peer).then((reason) => this.close(reason));
    });
    if (options.keepsAlive !== true) socket.unref();
  }

  get isOpen(): boolean {
    return this.#open && this.#writer.hasPeer;
  }

  /** Whether the peer has ended the connection, or its process has: the network has not. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  send(batch: Batch): void {
    if (!this.isOpen) throw new RaySystemError("the channel is closed");
    let pieces: readonly Uint8Array[];
    try {
      pieces = frameOf(batch);
    } catch (error) {
      return this.close(brokenChannel(error));
    }
    this.#writer.post(pieces);
    this.#spinWait.begin();
  }

  /** Sends a control word to the other end of this connection, in order with the batches. */
  sendWord(word: Uint8Array): void {
    if (this.isOpen) this.#writer.post([wordFrame(word)]);
  }

  /** Sets the receiver of control words; a connection without one ends at a word. */
  onWord(listener: (word: Uint8Array) => void): void {
    this.#reader.onWord = listener;
  }

  /** Sets a listener for any arriving bytes, even in the middle of a frame. */
  onBytes(listener: () => void): void {
    this.#reader.onBytes = listener;
  }

  takeParts(place: PlaceOfPart): void {
    this.#reader.placeOfPart = place;
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#reader.onMessage(receiver);
  }

  /**
   * Whether the socket can be read and written outside the event loop: not under TLS, whose state
   * is Node's.
   */
  get hasFile(): boolean {
    return hasFile(this.#socket);
  }

  /** Whether data leaves before the event loop goes on. */
  get canWriteNow(): boolean {
    return this.isOpen && this.#writer.canWriteNow;
  }

  /** Reads the available data outside the event loop, which continues behind it. */
  poll(): Batch[] {
    return this.#reader.poll();
  }

  /**
   * Returns the first batches one at a time, for a handshake; `onMessage` ends this mode. Rejects
   * when the channel closes first.
   */
  next(): Promise<Batch> {
    return new Promise((resolve, reject) => {
      void this.closed.then(({ message }) => reject(new RaySystemError(message)));
      this.#reader.onNext(resolve);
    });
  }

  /** Replaces the function that explains why the peer is gone. */
  explainBy(explain: () => Promise<DeathCause>): void {
    this.#explain = explain;
  }

  /** Changes the limits for frames. */
  setLimits(limits: FrameLimits): void {
    this.#reader.limits = limits;
  }

  /** The peer has ended: nothing more is sent to it, and its last data is still read. */
  peerGone(): void {
    this.#writer.peerGone();
  }

  drained(): Promise<void> {
    return this.#writer.drained();
  }

  drainNow(until: number = Infinity): void {
    this.#writer.drainNow(until);
  }

  close(reason: DeathCause): void {
    if (!this.#open) return;
    this.#open = false;
    const isBroken = reason.kind === "channel-broken" && this.#writer.hasPeer;
    // The empty frame stops the peer from looking for the death of a live process.
    if (isBroken) this.#writer.post(frameOf(unreadable));
    this.#writer.end();
    // The socket is read until the peer has closed, too: closing a socket with unread data makes
    // TCP drop what the peer has not read yet.
    this.#socket.resume();
    this.#socket.end();
    this.#reader.end();
    destroyLater(this.#socket, this.#rate.leastBytesPerSecond);
    this.#resolveClosed(reason);
  }

  /** Ends a connection whose peer does not read, to free the memory. */
  #giveUp(error: RaySystemError): void {
    if (!this.#open) return;
    this.#writer.drop();
    this.close(brokenChannel(error));
    this.#socket.destroy();
  }
}

async function explained(explain: () => Promise<DeathCause>, peer: string): Promise<DeathCause> {
  const { promise: late, resolve } = Promise.withResolvers<DeathCause>();
  const message = `its connection to ${peer} ended`;
  const timer = timers.setTimeout(() => resolve({ kind: "channel-broken", message }), explainMs);
  timer.unref();
  try {
    return await Promise.race([explain(), late]);
  } catch (error) {
    return { kind: "unreachable", message: `${message}: ${String(error)}` };
  } finally {
    timers.clearTimeout(timer);
  }
}
