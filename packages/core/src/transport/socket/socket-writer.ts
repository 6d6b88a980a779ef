/**
 * Data on its way to the peer of a socket. One write is under way at a time and the rest waits
 * here, so that an ending process can still send all of it (`drainNow`).
 *
 * Past `warnBytes`, and at every doubling, a warning names the peer that does not read.
 */
import type { Socket } from "node:net";
import type { Batch } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { warn } from "../../shared/text/warning.ts";
import { hasFile, tolerateFailedWrites, writeNow } from "./raw-socket.ts";

const warnBytes = 256 * 1024 * 1024;
/** Larger buffers are not counted as unread: they exist anyway. */
const bigBytes = 1024 * 1024;

/** Returns the bytes of a batch that count until it is read. */
export function unreadBytesOf({ bytes, buffers }: Batch): number {
  let size = bytes.length;
  for (const { byteLength } of buffers) if (byteLength <= bigBytes) size += byteLength;
  return size;
}

export interface SocketWriterParts {
  /** The name of the peer, for messages to people. */
  readonly peer: string;
  /** The most bytes that may wait for the peer to read them. */
  readonly maxUnreadBytes: number;
  /** Called when more bytes wait. */
  readonly onOverfull: (error: RaySystemError) => void;
}

export class SocketWriter {
  readonly #socket: Socket;
  readonly #parts: SocketWriterParts;
  #hasPeer = true;
  /** Data that the system has, or has in part. */
  #writing: readonly Uint8Array[] = [];
  #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  #unreadBytes = 0;
  #warnAt: number = warnBytes;
  #drainWaiters: (() => void)[] = [];

  constructor(socket: Socket, parts: SocketWriterParts) {
    this.#socket = socket;
    this.#parts = parts;
    tolerateFailedWrites(socket, (error) => this.#written(error));
    socket.on("close", () => this.#written(new Error("closed")));
  }

  /** False when a write found that the peer is gone, or `peerGone` said so. */
  get hasPeer(): boolean {
    return this.#hasPeer;
  }

  /** Whether data leaves before the event loop goes on. */
  get canWriteNow(): boolean {
    return this.#writing.length === 0 || hasFile(this.#socket);
  }

  peerGone(): void {
    this.#hasPeer = false;
  }

  post(pieces: readonly Uint8Array[]): void {
    if (this.#writing.length === 0) return this.#write(pieces);
    for (const piece of pieces) {
      this.#queue.push(piece);
      this.#queuedBytes += piece.length;
      if (piece.length <= bigBytes) this.#unreadBytes += piece.length;
    }
    const { peer, maxUnreadBytes } = this.#parts;
    if (this.#unreadBytes > maxUnreadBytes) {
      const message = `more than ${maxUnreadBytes} bytes wait for ${peer} to read them`;
      return this.#parts.onOverfull(new RaySystemError(message));
    }
    if (this.#queuedBytes <= this.#warnAt) return;
    this.#warnAt = 2 * this.#queuedBytes;
    warn(`${Math.round(this.#queuedBytes / 1024 ** 2)} MiB wait for ${peer} to read them`);
  }

  /** Leaves the waiting data to the socket, which is about to end. */
  end(): void {
    const rest = this.#queue;
    this.#queue = [];
    for (const piece of rest) this.#socket.write(piece);
  }

  /** Drops the waiting data. */
  drop(): void {
    this.#queue = [];
  }

  drained(): Promise<void> {
    if (this.#writing.length === 0 || !this.#hasPeer) return Promise.resolve();
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  drainNow(until: number): void {
    if (this.#writing.length === 0 || !this.#hasPeer) return;
    this.#hasPeer = false;
    writeNow(this.#socket, this.#writing, this.#queue, until);
  }

  #write(pieces: readonly Uint8Array[]): void {
    this.#writing = pieces;
    const [only] = pieces;
    if (only !== undefined && pieces.length === 1) {
      this.#socket.write(only);
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
