/**
 * The connections of an HTTP endpoint, oldest first: how many requests each has under way, and which one goes when there are too many.
 *
 * A connection that has shown no token yet is the first to go, then one that does nothing. So nobody keeps others out by holding connections open.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Connection {
  /** The guard has let a request of it pass. */
  isKnown: boolean;
  /** The current answer is its last. Nothing more that it sends is read as a request. */
  isEnding: boolean;
  /** Requests that it has sent. */
  requests: number;
  /** Requests without a whole answer, each with its response. */
  readonly underWay: Map<IncomingMessage, ServerResponse>;
}

export class Connections {
  readonly #all: Map<Socket, Connection> = new Map();

  get size(): number {
    return this.#all.size;
  }

  add(socket: Socket): void {
    this.#all.set(socket, { isKnown: false, isEnding: false, requests: 0, underWay: new Map() });
    socket.once("close", () => this.#all.delete(socket));
  }

  /** Returns undefined for a connection that was cut, or never taken. */
  of(socket: Socket): Connection | undefined {
    return this.#all.get(socket);
  }

  /** Cuts one that has nothing under way. Returns whether there was one. */
  cutOne(): boolean {
    const idle = [...this.#all].filter(([, { underWay }]) => underWay.size === 0);
    const [socket] = idle.find(([, { isKnown }]) => !isKnown) ?? idle[0] ?? [];
    if (socket === undefined) return false;
    this.#cut(socket);
    return true;
  }

  /** Each connection ends behind the answer that it waits for. */
  endBehindAnswers(): void {
    for (const { underWay } of this.#all.values()) {
      for (const response of underWay.values()) {
        if (!response.headersSent) response.setHeader("connection", "close");
      }
    }
  }

  /** Cuts those that have nothing under way. */
  cutIdle(): void {
    for (const [socket, { underWay }] of this.#all) if (underWay.size === 0) this.#cut(socket);
  }

  /** Cuts those whose request has not arrived. */
  cutUnsent(): void {
    for (const [socket, { underWay }] of this.#all) {
      if ([...underWay.keys()].some(({ complete }) => !complete)) this.#cut(socket);
    }
  }

  cutAll(): void {
    for (const socket of this.#all.keys()) this.#cut(socket);
  }

  #cut(socket: Socket): void {
    this.#all.delete(socket);
    socket.destroy();
  }
}
