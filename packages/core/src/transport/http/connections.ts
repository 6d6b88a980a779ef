/**
 * The connections of an HTTP endpoint, oldest first: it counts the requests under way on each, and
 * picks the one to cut when there are too many.
 *
 * A connection that has shown no token yet is the first to go, then an idle one. So held
 * connections keep no client out.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Connection {
  /** Whether the guard has let a request of it pass. */
  isKnown: boolean;
  /** Whether the current answer is its last. Its later bytes are not read as requests. */
  isEnding: boolean;
  /** The number of requests that it has sent. */
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

  /** Cuts one idle connection. Returns whether there was one. */
  cutOne(): boolean {
    const idle = [...this.#all].filter(([, { underWay }]) => underWay.size === 0);
    const [socket] = idle.find(([, { isKnown }]) => !isKnown) ?? idle[0] ?? [];
    if (socket === undefined) return false;
    this.#cut(socket);
    return true;
  }

  /** Lets each connection end after its pending answers. */
  endBehindAnswers(): void {
    for (const { underWay } of this.#all.values()) {
      for (const response of underWay.values()) {
        if (!response.headersSent) response.setHeader("connection", "close");
      }
    }
  }

  /** Cuts all idle connections. */
  cutIdle(): void {
    for (const [socket, { underWay }] of this.#all) if (underWay.size === 0) this.#cut(socket);
  }

  /** Cuts connections whose request has not arrived. */
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
