/**
 * Reads a socket: batches go to the one receiver, control words to the listener for words.
 */
import type { Socket } from "node:net";
import type { Batch } from "../../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { brokenChannel, type PlaceOfPart, unreadByPeer } from "../channel.ts";
import { FrameWatch } from "./frame-watch.ts";
import { type Frame, type FrameLimits, FrameReader } from "./framing.ts";
import { chunkBytes, fileOf, readInto, readNow } from "./raw-socket.ts";
import type { PeerLimits } from "./slow-peers.ts";

/** This thread reads this many more bytes synchronously before other sockets have their turn. */
const maxDirectBytes = 4 * 1024 * 1024;
/** A poll reads at most this many bytes. */
const maxPolledBytes = 64 * 1024 * 1024;

/** Says "I could not read what you sent"; no batch is empty. */
export const unreadable: Batch = { bytes: new Uint8Array(0), buffers: [] };

function saysUnreadable({ bytes, part }: Batch): boolean {
  return bytes.length === 0 && part === undefined;
}

export interface SocketReaderParts {
  readonly limits: FrameLimits;
  /** The least speed of the peer. */
  readonly rate: PeerLimits;
  /** Whether what arrives is still of use. */
  readonly isOpen: () => boolean;
  /** Called when the rest cannot be read, or the peer could not read what it got. */
  readonly onEnd: (reason: DeathCause) => void;
}

export class SocketReader {
  /** Takes control words; a connection without it ends at a word. */
  onWord: ((word: Uint8Array) => void) | undefined;
  /** Called when any bytes arrive, even in the middle of a frame. */
  onBytes: (() => void) | undefined;
  readonly #socket: Socket;
  readonly #parts: SocketReaderParts;
  readonly #frames: FrameReader;
  readonly #watch: FrameWatch;
  #receiver: ((batch: Batch) => void) | undefined;

  constructor(socket: Socket, parts: SocketReaderParts) {
    this.#socket = socket;
    this.#parts = parts;
    this.#frames = new FrameReader(parts.limits);
    this.#watch = new FrameWatch({
      rate: parts.rate,
      isUnderWay: () => {
        if (!parts.isOpen() || this.#frames.isBetweenFrames) return undefined;
        return this.#receiver === undefined ? "unread" : "read";
      },
      onSlow: (error) => parts.onEnd(brokenChannel(error)),
    });
  }

  set limits(limits: FrameLimits) {
    this.#frames.limits = limits;
  }

  set placeOfPart(place: PlaceOfPart) {
    this.#frames.placeOfPart = place;
  }

  /** Takes the next chunk of the socket, which is paused while there is no receiver. */
  arrived(chunk: Uint8Array): void {
    this.onBytes?.();
    this.#frames.push(chunk);
    let bytes = chunk.length;
    if (this.#receiver === undefined) this.#socket.pause();
    else {
      this.#deliver();
      // A full chunk means that there is more.
      if (bytes === chunkBytes) bytes += this.#readDirectly();
    }
    if (this.#frames.isBetweenFrames || !this.#parts.isOpen()) return;
    if (this.#receiver !== undefined) this.#watch.unfinished(this.#frames.frames, bytes);
  }

  /** Sets the one receiver; earlier batches have waited for it. */
  onMessage(receiver: (batch: Batch) => void): void {
    this.#receiver = receiver;
    this.#deliver();
    if (this.#parts.isOpen()) this.#socket.resume();
  }

  /** Hands over one batch; later ones wait for the next receiver. */
  onNext(receiver: (batch: Batch) => void): void {
    this.onMessage((batch) => {
      this.#receiver = undefined;
      receiver(batch);
    });
  }

  /** Reads the available data outside the event loop, which continues behind it. */
  poll(): Batch[] {
    const batches: Batch[] = [];
    const fd = fileOf(this.#socket);
    if (fd === undefined) return batches;
    try {
      let bytes = 0;
      for (let chunk = readNow(fd); chunk !== undefined; chunk = readNow(fd)) {
        this.onBytes?.();
        this.#frames.push(chunk);
        for (let next = this.#frames.next(); next !== undefined; next = this.#frames.next()) {
          if (next.isWord === true) this.#hear(next.bytes);
          else if (saysUnreadable(next)) throw new RaySystemError("the other side gave up");
          else batches.push(next);
        }
        bytes += chunk.length;
        if (bytes >= maxPolledBytes) break;
      }
    } catch (error) {
      this.#parts.onEnd(brokenChannel(error));
    }
    return batches;
  }

  end(): void {
    this.#watch.end();
  }

  #deliver(): void {
    while (this.#receiver !== undefined && this.#parts.isOpen()) {
      let batch: Frame | undefined;
      try {
        batch = this.#frames.next();
        if (batch?.isWord === true) {
          this.#hear(batch.bytes);
          continue;
        }
      } catch (error) {
        return this.#parts.onEnd(brokenChannel(error));
      }
      if (batch === undefined) return;
      if (saysUnreadable(batch)) return this.#parts.onEnd(unreadByPeer);
      this.#receiver(batch);
    }
  }

  /** Reads data of a big part into its destination without a copy. Returns the number of bytes. */
  #readDirectly(): number {
    const fd = fileOf(this.#socket);
    if (fd === undefined) return 0;
    let bytes = 0;
    while (bytes < maxDirectBytes && this.#parts.isOpen()) {
      const place = this.#frames.gap(chunkBytes);
      if (place === undefined) break;
      const length = readInto(fd, place);
      this.#frames.filled(length);
      bytes += length;
      if (length > 0) this.#deliver();
      if (length < place.length) break;
    }
    return bytes;
  }

  /** @throws RaySystemError where no words are expected */
  #hear(word: Uint8Array): void {
    if (this.onWord === undefined) throw new RaySystemError("unexpected control word from peer");
    this.onWord(word);
  }
}
