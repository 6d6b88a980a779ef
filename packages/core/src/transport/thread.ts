/**
 * The channel between threads of one process: a MessagePort.
 *
 * Owner of the data ports. It does not keep the process alive by itself; a caller that waits for an
 * answer does (`caller/waits/waiting.ts`). A port closes when its other end closes or its thread
 * dies. `explain` says why, because a port cannot know.
 */
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import type { Batch } from "../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import type { Endpoint } from "comlink";
import type { Listener } from "./endpoint.ts";
import { brokenChannel, type Channel, unreadByPeer } from "./channel.ts";
import { SpinWait } from "./spin-wait.ts";

const noBuffers: readonly SharedArrayBuffer[] = [];

type Arrived = { readonly message: Uint8Array | Batch | null } | undefined;

const receive: (port: MessagePort) => Arrived = receiveMessageOnPort;

/**
 * @param explain returns the reason why the peer is gone; it is called when the port closes
 * @param peerGone resolves when the peer is known to be gone before the port closes: nothing more
 * is sent, and the peer's last data is still read
 */
export function threadChannel(
  port: MessagePort,
  explain: () => Promise<DeathCause>,
  peerGone?: Promise<unknown>,
): Channel {
  return new ThreadChannel(port, explain, peerGone);
}

class ThreadChannel implements Channel {
  readonly closed: Promise<DeathCause>;
  readonly #port: MessagePort;
  readonly #resolveClosed: (reason: DeathCause) => void;
  readonly #spinWait: SpinWait = new SpinWait();
  #open = true;
  #hasPeer = true;

  constructor(
    port: MessagePort,
    explain: () => Promise<DeathCause>,
    peerGone: Promise<unknown> | undefined,
  ) {
    const { promise, resolve } = Promise.withResolvers<DeathCause>();
    this.closed = promise;
    this.#port = port;
    this.#resolveClosed = resolve;
    void peerGone?.then(() => (this.#hasPeer = false));
    port.on("close", () => {
      if (!this.#open) return;
      explain().then(
        (reason) => this.close(reason),
        (error: unknown) => this.close({ kind: "unreachable", message: String(error) }),
      );
    });
    // A message that cannot be read is lost, and so is the order of later ones.
    port.on("messageerror", (error) => this.close(brokenChannel(error)));
  }

  get isOpen(): boolean {
    return this.#open && this.#hasPeer;
  }

  send(batch: Batch): void {
    if (!this.#open || !this.#hasPeer) throw new RaySystemError("the channel is closed");
    this.#port.postMessage(batch.buffers.length === 0 ? batch.bytes : batch);
    this.#spinWait.begin();
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#port.on("message", (data: Uint8Array | Batch | null) => {
      if (!this.#open) return;
      this.#spinWait.end();
      if (data === null) return this.close(unreadByPeer);
      receiver(batchOf(data));
    });
    this.#port.unref();
  }

  poll(): readonly Batch[] {
    const batches: Batch[] = [];
    for (let next = receive(this.#port); next !== undefined; next = receive(this.#port)) {
      if (next.message === null) {
        this.close(unreadByPeer);
        break;
      }
      batches.push(batchOf(next.message));
    }
    return batches;
  }

  /** A port delivers posted messages even if its thread ends. */
  drained(): Promise<void> {
    return Promise.resolve();
  }

  drainNow(): void {}

  close(reason: DeathCause): void {
    if (!this.#open) return;
    this.#open = false;
    // The null message stops the peer from looking for the death of a live thread.
    if (reason.kind === "channel-broken") this.#port.postMessage(null);
    this.#port.close();
    this.#resolveClosed(reason);
  }
}

/** A batch without buffers is posted as its bytes. */
function batchOf(data: Uint8Array | Batch): Batch {
  return data instanceof Uint8Array ? { bytes: data, buffers: noBuffers } : data;
}

export interface PortEndpoint extends Endpoint {
  /** Receives the peer's last messages, which a closed port would drop, and closes the port. */
  end(): void;
}

/**
 * Runs comlink over a port. A port has the methods that comlink wants, but its events are web
 * events, for which Node loads its HTTP client in every thread.
 */
export function portEndpoint(port: MessagePort): PortEndpoint {
  const heard = new Map<Listener, (data: unknown) => void>();
  // comlink keeps an endpoint as long as its proxies live. A caller that waits for an answer may
  // hold a proxy, so the listeners are removed here.
  port.on("close", () => {
    for (const hear of heard.values()) port.off("message", hear);
    heard.clear();
  });
  const endpoint: Pick<PortEndpoint, "start" | "end"> & {
    readonly postMessage: (message: unknown, transfer?: readonly unknown[]) => void;
    readonly addEventListener: (type: string, listener: unknown) => void;
    readonly removeEventListener: (type: string, listener: unknown) => void;
  } = {
    start: () => port.start(),
    end() {
      for (let next = receive(port); next !== undefined; next = receive(port)) {
        for (const hear of heard.values()) hear(next.message);
      }
      port.close();
    },
    postMessage: (message, transfer) => port.postMessage(message, transfer as never),
    addEventListener: (_type, listener) => {
      const hear = (data: unknown): void => (listener as Listener)({ data });
      heard.set(listener as Listener, hear);
      port.on("message", hear);
    },
    removeEventListener: (_type, listener) => {
      const hear = heard.get(listener as Listener);
      if (hear !== undefined) port.off("message", hear);
      heard.delete(listener as Listener);
    },
  };
  return endpoint;
}
