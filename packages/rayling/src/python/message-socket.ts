/**
 * One Python process, over a socket: messages that come together leave together. Nothing is sent
 * to a process that has gone.
 */

import type { Socket } from "node:net";
import { frameOf, framesOf, messageOf } from "./messages.ts";
import { FrameReader } from "./wire/frames.ts";

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
    if (this.#socket.writable) this.#write(frameOf(message));
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
    if (rows.length === 0 || !this.#socket.writable) return;
    for (const frame of framesOf(rows)) this.#write(frame);
  }

  #write(frame: readonly Uint8Array[]): void {
    for (const part of frame) this.#socket.write(part);
  }
}
