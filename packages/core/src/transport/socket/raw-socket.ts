/**
 * Node's sockets below their public interface: the file under a socket, reads and writes outside
 * the event loop, and writes that may fail.
 */
import { readSync, writeSync } from "node:fs";
import type { Socket } from "node:net";
import { clockMs } from "../../shared/clock.ts";
import { codeOf } from "../../shared/errors/thrown.ts";
import { type Deadline, deadline } from "../deadline.ts";

/** Node reads this many bytes at once. */
export const chunkBytes: number = 64 * 1024;
/**
 * The time that a peer has to close its end, too, in ms. It is extended while the rest of the data
 * moves at the pace of its frames.
 */
const closeMs = 5000;
/** The most time without progress, in ms. */
const drainMs = 5000;
/** The most time without progress once other channels have used up the time, in ms. */
const lateDrainMs = 50;

/** A socket with the parts of Node's sockets that have no public name. */
interface RawSocket extends Socket {
  /** The only way to the file descriptor. */
  readonly _handle?: Handle | null;
  /** Present under TLS. */
  readonly encrypted?: boolean;
}

interface Handle {
  readonly fd?: number;
  readonly writeQueueSize?: number;
}

function handleOf({ _handle: handle }: RawSocket): Handle | undefined {
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
function rawHandleOf(socket: RawSocket): Handle | undefined {
  return socket.encrypted === true ? undefined : handleOf(socket);
}

/**
 * Returns the file descriptor of a socket that can be read and written outside the event loop.
 * Under TLS that cannot be, because its state is Node's.
 */
export function fileOf(socket: Socket): number | undefined {
  const fd = rawHandleOf(socket)?.fd;
  return fd === undefined || fd < 0 ? undefined : fd;
}

/** Whether written bytes travel unchanged. */
export function hasFile(socket: Socket): boolean {
  return rawHandleOf(socket)?.fd !== undefined;
}

/**
 * Returns the available data, or undefined if there is none or the peer is gone, which the event
 * loop finds later.
 */
export function readNow(fd: number): Uint8Array | undefined {
  const chunk = Buffer.allocUnsafeSlow(chunkBytes);
  const length = readInto(fd, chunk);
  return length === 0 ? undefined : chunk.subarray(0, length);
}

/** Returns the number of bytes; 0 also if the peer is gone. */
export function readInto(fd: number, place: Uint8Array): number {
  try {
    return readSync(fd, place);
  } catch {
    return 0;
  }
}

/** Writes the part of `writing` that the system does not have yet, and the queue, synchronously. */
export function writeNow(
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
    let since = clockMs();
    while (at < piece.length) {
      try {
        at += writeSync(handle.fd, piece, at);
        since = clockMs();
      } catch (error) {
        const isFull = codeOf(error) === "EAGAIN";
        const now = clockMs();
        const mostMs = now > until ? lateDrainMs : drainMs;
        if (!isFull || now - since > mostMs) return;
        Atomics.wait(pause, 0, 0, 1);
      }
    }
  }
}

/**
 * Destroys an ended socket after a while: a peer that never reads, or never closes, must not hold
 * it for ever.
 */
export function destroyLater(socket: Socket, leastBytesPerSecond: number): void {
  if (socket.closed) return;
  let waiting = waitingBytesOf(socket);
  const look = (): void => {
    const taken = waiting - waitingBytesOf(socket);
    if (taken < (leastBytesPerSecond * closeMs) / 1000) return void socket.destroy();
    waiting -= taken;
    limit = deadline(closeMs, look);
  };
  let limit: Deadline = deadline(closeMs, look);
  socket.once("close", () => limit.end());
}

type Done = (error?: Error | null) => void;

interface Chunk {
  readonly chunk: unknown;
  readonly encoding: BufferEncoding;
}

/** The functions by which a stream of Node writes. */
interface Writes {
  readonly _write: (chunk: unknown, encoding: BufferEncoding, done: Done) => void;
  readonly _writev?: (chunks: Chunk[], done: Done) => void;
}

/**
 * Keeps the stream alive after a failed write; its destruction would discard the peer's unread
 * data.
 */
export function tolerateFailedWrites(socket: Writes, onDone: Done): void {
  const { _write: writeOne, _writev: writeMany } = socket;
  const tolerant =
    (done: Done): Done =>
    (error) => {
      done();
      onDone(error);
    };
  const tolerantWrites: Writes = {
    _write: (chunk, encoding, done) => writeOne.call(socket, chunk, encoding, tolerant(done)),
    _writev: (chunks, done) => writeMany?.call(socket, chunks, tolerant(done)),
  };
  Object.assign(socket, tolerantWrites);
}
