/**
 * The channel over a socket: unix sockets and inherited pipes between processes of one machine, and
 * TCP under links.
 *
 * Owner, with connect.ts, listen.ts and peer-probe.ts of transport/link/, of node:net. It does not
 * keep the process alive unless `keepsAlive` is set. A socket that closes does not say why:
 * `explain` does, within `explainMs`. When a write finds the peer gone, the data that the peer sent
 * before is still read.
 *
 * One write is under way at a time and the rest waits here, so that an ending process can still
 * send all of it (`drainNow`). Credit bounds the waiting data (rpc/session/session.ts). Past
 * `warnBytes`, and at every doubling, a warning names the peer that does not read; past
 * `maxUnreadBytes` the connection ends. It also ends for a peer that is too slow in the middle of a
 * frame (transport/socket/slow-peers.ts).
 */
import { readSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import type { Batch } from "../../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import { brokenChannel, type Channel, type PlaceOfPart, unreadByPeer } from "../channel.ts";
import { type Deadline, deadline } from "../deadline.ts";
import {
  type Frame,
  type FrameLimits,
  FrameReader,
  frameOf,
  peerLimits,
  wordFrame,
} from "./framing.ts";
import { FrameRate, type PeerLimits, peerPace, SlowFrameError } from "./slow-peers.ts";
import { SpinWait } from "../spin-wait.ts";

export interface SocketOptions {
  /** Returns the reason why the peer is gone; it is called when the socket closes. */
  readonly explain: () => Promise<DeathCause>;
  /** The name of the peer, for messages to people. */
  readonly peer: string;
  /** Whether the open socket keeps the process alive. Default false. */
  readonly keepsAlive?: boolean;
  readonly limits?: FrameLimits;
  /** The least speed of the peer. */
  readonly pace?: PeerLimits;
  /** The most bytes that may wait for the peer to read them. Default `maxUnreadBytes`. */
  readonly maxUnreadBytes?: number;
}

const explainMs = 5000;
/**
 * The time that a peer has to close its end, too, in ms. It is extended while the rest of the data
 * moves at the pace of its frames.
 */
const closeMs = 5000;
/** The most time without progress, in ms. */
const drainMs = 5000;
/** The most time without progress once other channels have used up the time, in ms. */
const lateDrainMs = 50;
const warnBytes = 256 * 1024 * 1024;
/**
 * The most bytes that may wait for a peer that does not read. Big buffers do not count, because
 * they exist anyway.
 */
export const maxUnreadBytes: number = 1024 ** 3;
/** Larger buffers are not counted. */
const bigBytes = 1024 * 1024;
/** Node reads this many bytes at once. */
const chunkBytes = 64 * 1024;
/** This thread reads this many more bytes synchronously before other sockets have their turn. */
const maxDirectBytes = 4 * 1024 * 1024;
/** A poll reads at most this many bytes. */
const maxPolledBytes = 64 * 1024 * 1024;
/** Says "I could not read what you sent"; no batch is empty. */
const unreadable: Batch = { bytes: new Uint8Array(0), buffers: [] };

/** Returns a socket that this process inherited. */
export function inheritedSocket(fd: number): Socket {
  return new Socket({ fd, readable: true, writable: true });
}

export class SocketChannel implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly #socket: Socket;
  readonly #peer: string;
  #explain: () => Promise<DeathCause>;
  readonly #reader: FrameReader;
  readonly #spinWait: SpinWait = new SpinWait();
  readonly #pace: PeerLimits;
  readonly #maxUnreadBytes: number;
  #frameRate: FrameRate | undefined;
  #silenceTimer: NodeJS.Timeout | undefined;
  readonly #resolveClosed: (reason: DeathCause) => void;
  #open = true;
  #hasPeer = true;
  #receiver: ((batch: Batch) => void) | undefined;
  #onWord: ((word: Uint8Array) => void) | undefined;
  #onBytes: (() => void) | undefined;
  /** Data that the system has, or has in part. */
  #writing: readonly Uint8Array[] = [];
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #unreadBytes = 0;
  #warnAt: number = warnBytes;
  #drainWaiters: (() => void)[] = [];

  constructor(socket: Socket, options: SocketOptions) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.closed = promise;
    this.#resolveClosed = resolve;
    this.#socket = socket;
    this.#peer = options.peer;
    this.#explain = options.explain;
    this.#pace = options.pace ?? peerPace;
    this.#maxUnreadBytes = options.maxUnreadBytes ?? maxUnreadBytes;
    this.#reader = new FrameReader(options.limits ?? peerLimits);
    tolerateFailedWrites(socket, (error) => this.#written(error));
    socket.on("data", (chunk: Buffer) => {
      if (!this.#open) return;
      this.#spinWait.end();
      this.#onBytes?.();
      this.#reader.push(chunk);
      let bytes = chunk.length;
      if (this.#receiver === undefined) socket.pause();
      else {
        this.#deliver();
        // A full chunk means that there is more.
        if (bytes === chunkBytes) bytes += this.#readDirectly();
      }
      if (!this.#reader.isBetweenFrames) this.#unfinished(bytes);
    });
    socket.pause();
    socket.on("end", () => socket.destroy());
    // The error of a broken socket says less than the reason why the peer is gone.
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.#written(new Error("closed"));
      if (this.#open)
        void explained(this.#explain, this.#peer).then((reason) => this.close(reason));
    });
    if (options.keepsAlive !== true) socket.unref();
  }

  get isOpen(): boolean {
    return this.#open && this.#hasPeer;
  }

  send(batch: Batch): void {
    if (!this.isOpen) throw new RaySystemError("the channel is closed");
    let pieces: readonly Uint8Array[];
    try {
      pieces = frameOf(batch);
    } catch (error) {
      return this.close(brokenChannel(error));
    }
    this.#post(pieces);
    this.#spinWait.begin();
  }

  /** Sends a control word to the other end of this connection, in order with the batches. */
  sendWord(word: Uint8Array): void {
    if (this.isOpen) this.#post([wordFrame(word)]);
  }

  /** Sets the receiver of control words; a connection without one ends at a word. */
  onWord(listener: (word: Uint8Array) => void): void {
    this.#onWord = listener;
  }

  /** Sets a listener for any arriving bytes, even in the middle of a frame. */
  onBytes(listener: () => void): void {
    this.#onBytes = listener;
  }

  takeParts(place: PlaceOfPart): void {
    this.#reader.placeOfPart = place;
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#receiver = receiver;
    this.#deliver();
    if (this.#open) this.#socket.resume();
  }

  /**
   * Whether the socket can be read and written outside the event loop: not under TLS, whose state
   * is Node's.
   */
  get hasFile(): boolean {
    return rawHandleOf(this.#socket)?.fd !== undefined;
  }

  /** Whether data leaves before the event loop goes on. */
  get canWriteNow(): boolean {
    return this.isOpen && (this.#writing.length === 0 || this.hasFile);
  }

  /** Reads the available data outside the event loop, which continues behind it. */
  poll(): Batch[] {
    const batches: Batch[] = [];
    const fd = rawHandleOf(this.#socket)?.fd;
    if (fd === undefined || fd < 0) return batches;
    try {
      let bytes = 0;
      for (let chunk = readNow(fd); chunk !== undefined; chunk = readNow(fd)) {
        this.#onBytes?.();
        this.#reader.push(chunk);
        for (let next = this.#reader.next(); next !== undefined; next = this.#reader.next()) {
          if (next.isWord === true) this.#hear(next.bytes);
          else if (saysUnreadable(next)) throw new RaySystemError("the other side gave up");
          else batches.push(next);
        }
        bytes += chunk.length;
        if (bytes >= maxPolledBytes) break;
      }
    } catch (error) {
      this.close(brokenChannel(error));
    }
    return batches;
  }

  /**
   * Returns the first batches one at a time, for a handshake; `onMessage` ends this mode. Rejects
   * when the channel closes first.
   */
  next(): Promise<Batch> {
    return new Promise((resolve, reject) => {
      void this.closed.then(({ message }) => reject(new RaySystemError(message)));
      this.onMessage((batch) => {
        this.#receiver = undefined;
        resolve(batch);
      });
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
    this.#hasPeer = false;
  }

  drained(): Promise<void> {
    if (this.#writing.length === 0 || !this.#hasPeer) return Promise.resolve();
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  drainNow(until: number = Infinity): void {
    if (this.#writing.length === 0 || !this.#hasPeer) return;
    this.#hasPeer = false;
    writeNow(this.#socket, this.#writing, this.#queue, until);
  }

  close(reason: DeathCause): void {
    if (!this.#open) return;
    this.#open = false;
    // The empty frame stops the peer from looking for the death of a live process.
    if (reason.kind === "channel-broken" && this.#hasPeer) this.#post(frameOf(unreadable));
    const rest = this.#queue;
    this.#queue = [];
    for (const piece of rest) this.#socket.write(piece);
    // The socket is read until the peer has closed, too: closing a socket with unread data makes
    // TCP drop what the peer has not read yet.
    this.#socket.resume();
    this.#socket.end();
    clearTimeout(this.#silenceTimer);
    this.#destroyLater();
    this.#resolveClosed(reason);
  }

  #deliver(): void {
    while (this.#open && this.#receiver !== undefined) {
      let batch: Frame | undefined;
      try {
        batch = this.#reader.next();
        if (batch?.isWord === true) {
          this.#hear(batch.bytes);
          continue;
        }
      } catch (error) {
        return this.close(brokenChannel(error));
      }
      if (batch === undefined) return;
      if (saysUnreadable(batch)) {
        return this.close(unreadByPeer);
      }
      this.#receiver(batch);
    }
  }

  /** Reads data of a big part into its destination without a copy. Returns the number of bytes. */
  #readDirectly(): number {
    const fd = rawHandleOf(this.#socket)?.fd;
    if (fd === undefined || fd < 0) return 0;
    let bytes = 0;
    while (this.#open && bytes < maxDirectBytes) {
      const place = this.#reader.gap(chunkBytes);
      if (place === undefined) break;
      const length = readInto(fd, place);
      this.#reader.filled(length);
      bytes += length;
      if (length > 0) this.#deliver();
      if (length < place.length) break;
    }
    return bytes;
  }

  /**
   * Destroys the socket after a while: a peer that never reads, or never closes, must not hold it
   * for ever.
   */
  #destroyLater(): void {
    const socket = this.#socket;
    if (socket.closed) return;
    let waiting = waitingBytesOf(socket);
    const look = (): void => {
      const taken = waiting - waitingBytesOf(socket);
      if (taken < (this.#pace.leastBytesPerSecond * closeMs) / 1000) return void socket.destroy();
      waiting -= taken;
      limit = deadline(closeMs, look);
    };
    let limit: Deadline = deadline(closeMs, look);
    socket.once("close", () => limit.end());
  }

  /** Handles a chunk that ended in the middle of a frame. */
  #unfinished(bytes: number): void {
    // Without a receiver the delay is this side's own.
    if (!this.#open || this.#receiver === undefined) return;
    this.#frameRate ??= new FrameRate(this.#pace);
    try {
      this.#frameRate.came(this.#reader.frames, bytes);
    } catch (error) {
      return this.close(brokenChannel(error));
    }
    this.#silenceTimer ??= setTimeout(() => this.#lookForSilence(), this.#pace.silentMs).unref();
  }

  /** One timer suffices while frames come in pieces. */
  #lookForSilence(): void {
    this.#silenceTimer = undefined;
    if (!this.#open || this.#reader.isBetweenFrames) return;
    const { silentMs } = this.#frameRate ?? { silentMs: 0 };
    const leftMs =
      this.#receiver === undefined ? this.#pace.silentMs : this.#pace.silentMs - silentMs;
    if (leftMs > 0) {
      this.#silenceTimer = setTimeout(() => this.#lookForSilence(), Math.ceil(leftMs)).unref();
      return;
    }
    // A thread that was held itself first reads what has arrived meanwhile.
    setImmediate(() => {
      const isSilent = (this.#frameRate?.silentMs ?? 0) >= this.#pace.silentMs;
      if (!isSilent) return this.#lookForSilence();
      this.close(brokenChannel(new SlowFrameError("a frame began and did not continue")));
    });
  }

  /** @throws RaySystemError where no words are expected */
  #hear(word: Uint8Array): void {
    if (this.#onWord === undefined) throw new RaySystemError("unexpected control word from peer");
    this.#onWord(word);
  }

  #post(pieces: readonly Uint8Array[]): void {
    if (this.#writing.length === 0) return this.#write(pieces);
    for (const piece of pieces) {
      this.#queue.push(piece);
      this.#queuedBytes += piece.length;
      if (piece.length <= bigBytes) this.#unreadBytes += piece.length;
    }
    if (this.#unreadBytes > this.#maxUnreadBytes && this.#open) return this.#giveUp();
    if (this.#queuedBytes <= this.#warnAt) return;
    this.#warnAt = 2 * this.#queuedBytes;
    const mebibytes = Math.round(this.#queuedBytes / 1024 ** 2);
    warn(`${mebibytes} MiB wait for ${this.#peer} to read them`);
  }

  /** Ends a connection whose peer does not read, to free the memory. */
  #giveUp(): void {
    const error = new RaySystemError(
      `more than ${this.#maxUnreadBytes} bytes wait for ${this.#peer} to read them`,
    );
    this.#queue = [];
    this.close(brokenChannel(error));
    this.#socket.destroy();
  }

  #write(pieces: readonly Uint8Array[]): void {
    this.#writing = pieces;
    if (pieces.length === 1) {
      this.#socket.write(pieces[0] as Uint8Array);
      return;
    }
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  /** The system has taken the data, or found that the peer is gone. */
  #written(error: Error | null | undefined): void {
    this.#writing = [];
    const pieces = this.#queue;
    if (pieces.length > 0) this.#queue = [];
    this.#queuedBytes = 0;
    this.#unreadBytes = 0;
    if (error) this.#hasPeer = false;
    else if (pieces.length > 0) return this.#write(pieces);
    this.#warnAt = warnBytes;
    const waiters = this.#drainWaiters;
    if (waiters.length === 0) return;
    this.#drainWaiters = [];
    for (const waiter of waiters) waiter();
  }
}

function saysUnreadable({ bytes, part }: Batch): boolean {
  return bytes.length === 0 && part === undefined;
}

/** Returns the bytes of a batch that count until it is read. */
export function unreadBytesOf({ bytes, buffers }: Batch): number {
  let size = bytes.length;
  for (const { byteLength } of buffers) if (byteLength <= bigBytes) size += byteLength;
  return size;
}

type Done = (error?: Error | null) => void;

/**
 * Keeps the stream alive after a failed write; its destruction would discard the peer's unread
 * data.
 */
function tolerateFailedWrites(socket: Socket, onDone: Done): void {
  const raw = socket as unknown as {
    _write: (chunk: unknown, encoding: unknown, done: Done) => void;
    _writev: (chunks: unknown, done: Done) => void;
  };
  const { _write: writeOne, _writev: writeMany } = raw;
  const tolerant =
    (done: Done): Done =>
    (error) => {
      done();
      onDone(error);
    };
  Object.assign(raw, {
    _write: (chunk: unknown, encoding: unknown, done: Done) =>
      writeOne.call(socket, chunk, encoding, tolerant(done)),
    _writev: (chunks: unknown, done: Done) => writeMany.call(socket, chunks, tolerant(done)),
  });
}

async function explained(explain: () => Promise<DeathCause>, peer: string): Promise<DeathCause> {
  const { promise: late, resolve } = Promise.withResolvers<DeathCause>();
  const message = `its connection to ${peer} ended`;
  const timer = setTimeout(() => resolve({ kind: "channel-broken", message }), explainMs);
  timer.unref();
  try {
    return await Promise.race([explain(), late]);
  } catch (error) {
    return { kind: "unreachable", message: `${message}: ${String(error)}` };
  } finally {
    clearTimeout(timer);
  }
}

interface Handle {
  readonly fd?: number;
  readonly writeQueueSize?: number;
}

/**
 * Returns the handle under Node's socket. It has no public name, and is the only way to the file
 * descriptor.
 */
function handleOf(socket: Socket): Handle | undefined {
  const { _handle: handle } = socket as unknown as { readonly _handle?: Handle | null };
  return handle ?? undefined;
}

/**
 * Returns the bytes that the system has not taken yet. It takes a piece bit by bit, which the
 * stream does not show.
 */
function waitingBytesOf(socket: Socket): number {
  return socket.writableLength + (handleOf(socket)?.writeQueueSize ?? 0);
}

/** Returns the handle if written bytes travel unchanged, which is not so under TLS. */
function rawHandleOf(socket: Socket): Handle | undefined {
  const { encrypted } = socket as { readonly encrypted?: boolean };
  return encrypted === true ? undefined : handleOf(socket);
}

/**
 * Returns the available data, or undefined if there is none or the peer is gone, which the event
 * loop finds later.
 */
function readNow(fd: number): Uint8Array | undefined {
  const chunk = Buffer.allocUnsafeSlow(chunkBytes);
  const length = readInto(fd, chunk);
  return length === 0 ? undefined : chunk.subarray(0, length);
}

/** Returns the number of bytes; 0 also if the peer is gone. */
function readInto(fd: number, place: Uint8Array): number {
  try {
    return readSync(fd, place);
  } catch {
    return 0;
  }
}

/** Writes the part of `writing` that the system does not have yet, and the queue, synchronously. */
function writeNow(
  socket: Socket,
  writing: readonly Uint8Array[],
  queue: readonly Uint8Array[],
  until: number,
): void {
  const handle = rawHandleOf(socket);
  if (handle?.fd === undefined || handle.fd < 0 || handle.writeQueueSize === undefined) return;
  const total = writing.reduce((sum, piece) => sum + piece.length, 0);
  let skip = total - handle.writeQueueSize;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (const piece of [...writing, ...queue]) {
    let at = Math.min(skip, piece.length);
    skip -= at;
    let since = performance.now();
    while (at < piece.length) {
      try {
        at += writeSync(handle.fd, piece, at);
        since = performance.now();
      } catch (error) {
        const isFull = (error as NodeJS.ErrnoException).code === "EAGAIN";
        const now = performance.now();
        const mostMs = now > until ? lateDrainMs : drainMs;
        if (!isFull || now - since > mostMs) return;
        Atomics.wait(pause, 0, 0, 1);
      }
    }
  }
}
