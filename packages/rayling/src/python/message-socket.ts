/**
 * One Python process, over a socket: messages that come together leave together. Nothing is sent
 * to a process that has gone. A message is a frame `[isTagged, message]`.
 */

import type { Socket } from "node:net";
import { encodeFrame, type Frame, FrameError, FrameReader } from "./wire/frames.ts";
import { decode, encode } from "./wire/values.ts";

export interface SocketListener {
  /** Throws for a message that is none of the protocol's: the socket is closed then. */
  readonly onMessage: (message: unknown) => void;
  /** Called once, however the process ended. */
  readonly onClose: () => void;
}

export class MessageSocket {
  readonly #socket: Socket;
  #rows: unknown[] = [];

  constructor(socket: Socket, listener: SocketListener) {
    this.#socket = socket;
    const reader = new FrameReader((frame) => listener.onMessage(messageOf(frame)));
    socket.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      }
    });
    // The other side has closed or was killed: "close" follows.
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") console.error(error);
    });
    socket.on("close", () => listener.onClose());
  }

  /** Sends a message of its own. */
  send(message: object): void {
    this.#write(message);
  }

  /** Sends it in one list with all others of this turn of the event loop. */
  sendRow(row: unknown): void {
    if (this.#rows.length === 0) setImmediate(() => this.#sendRows());
    this.#rows.push(row);
  }

  /** Closes when what was sent is with the operating system. */
  end(): void {
    this.#sendRows();
    this.#socket.end();
  }

  #sendRows(): void {
    const rows = this.#rows;
    this.#rows = [];
    if (rows.length > 0) this.#write(rows);
  }

  #write(message: unknown): void {
    if (!this.#socket.writable) return;
    const { value, isTagged, buffers } = encode(message);
    for (const part of encodeFrame([isTagged, value], buffers)) this.#socket.write(part);
  }
}

function messageOf({ head, buffers }: Frame): unknown {
  if (!Array.isArray(head) || head.length !== 2) throw new FrameError("a message was expected");
  const [isTagged, value]: unknown[] = head;
  return isTagged === true ? decode(value, buffers) : value;
}
