/**
 * The channel between threads of one process: a MessagePort, and a ring in shared memory for small
 * batches of each direction (shared-ring.ts).
 *
 * Owner of the data ports. It does not keep the process alive by itself; a caller that waits for an
 * answer does (`caller/waits/waiting-tasks.ts`). A port closes when its other end closes or its
 * thread dies. `explain` says why, because a port cannot know.
 */
import { availableParallelism } from "node:os";
import { type MessagePort, receiveMessageOnPort } from "node:worker_threads";
import { giveOut } from "../protocol/memory-pool.ts";
import type { Batch } from "../protocol/message.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import type { Endpoint } from "comlink";
import type { Listener } from "./endpoint.ts";
import { brokenChannel, type Channel, unreadByPeer } from "./channel.ts";
import { SharedRing } from "./shared-ring.ts";
import { SpinWait } from "./spin-wait.ts";
import { timers } from "../shared/machine/timers.ts";

const noBuffers: readonly SharedArrayBuffer[] = [];

/**
 * The messages of a port: a batch (its bytes alone if it has no buffers); the memory of a ring, in
 * which the sender of this message will look for batches; the order to look into the ring; or that
 * nothing more will be read.
 */
type PortMessage = Uint8Array | Batch | SharedArrayBuffer | typeof lookNow | null;

const lookNow = 0;

/** The batch after which a channel offers a ring: a channel of few batches does without one. */
const offeredAfter = 16;

/** Batches that are delivered in one turn: peers that are quick must not keep all else waiting. */
const mostAtOnce = 64;

/** A thread that stays awake there keeps its peer from working. */
const isOneCpu: boolean = availableParallelism() === 1;

type Arrived = { readonly message: PortMessage } | undefined;

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
  /** Undefined where both threads have to share one CPU. */
  readonly #spinWait: SpinWait | undefined;
  /** The ring that the peer writes and this side reads, and the other way round. */
  #incoming: SharedRing | undefined;
  #outgoing: SharedRing | undefined;
  /** Numbers of the next batch that is sent and received, by port or ring; they wrap around. */
  #sent = 0;
  #received = 0;
  /** A batch of the port that has its turn after those of the ring that were sent before it. */
  #ofPort: Batch | undefined;
  /** The peer reads nothing more; it has sent batches before it said so. */
  #peerStopped = false;
  #receiver: ((batch: Batch) => void) | undefined;
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
    this.#spinWait = isOneCpu
      ? undefined
      : new SpinWait({
          take: () => this.#take(),
          setLooking: (isLooking) => this.#incoming?.setLooking(isLooking),
        });
    void peerGone?.then(() => (this.#hasPeer = false));
    port.on("close", () => {
      while (this.#take());
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

  get sentClaims(): Int32Array | undefined {
    return this.#outgoing?.claims;
  }

  get receivedClaims(): Int32Array | undefined {
    return this.#incoming?.claims;
  }

  send(batch: Batch): void {
    if (!this.#open || !this.#hasPeer) throw new RaySystemError("the channel is closed");
    const number = this.#sent;
    if (!this.#sentByRing(number, batch)) post(this.#port, batch);
    // A message that could not be posted has no number.
    this.#sent = (number + 1) | 0;
    if (number >= offeredAfter && this.#incoming === undefined) this.#offerRing();
    this.#spinWait?.begin();
  }

  #sentByRing(number: number, batch: Batch): boolean {
    const ring = this.#outgoing;
    if (ring === undefined || batch.buffers.length > 0) return false;
    if (!ring.write(number, batch.bytes)) return false;
    if (ring.wakes()) this.#port.postMessage(lookNow);
    return true;
  }

  /** Only with a receiver: what is written must be read. */
  #offerRing(): void {
    if (this.#receiver === undefined) return;
    this.#incoming = new SharedRing();
    this.#port.postMessage(this.#incoming.buffer);
  }

  onMessage(receiver: (batch: Batch) => void): void {
    this.#receiver = receiver;
    this.#port.on("message", (message: PortMessage) => {
      // Left over where a receiver has thrown.
      this.#takeOfPort();
      if (!this.#open) return;
      this.#hear(message);
      this.#take();
      // The next message of the port may follow at once.
      this.#takeOfPort();
    });
    this.#port.unref();
  }

  /** Keeps what a message of the port says; `#next` returns its batch. */
  #hear(message: PortMessage): void {
    if (message instanceof Uint8Array) this.#ofPort = { bytes: message, buffers: noBuffers };
    else if (message instanceof SharedArrayBuffer) this.#outgoing = new SharedRing(message);
    else if (message === null) this.#peerStopped = true;
    else if (message === lookNow) this.#incoming?.wasWoken();
    else this.#ofPort = message;
  }

  /** The next batch in order, of those that are here without a look at the port. */
  #next(): Batch | undefined {
    const bytes = this.#incoming?.read(this.#received);
    const batch = bytes === undefined ? this.#ofPort : { bytes, buffers: noBuffers };
    if (batch === undefined) {
      if (this.#peerStopped) this.close(unreadByPeer);
      return undefined;
    }
    if (bytes === undefined) this.#ofPort = undefined;
    this.#received = (this.#received + 1) | 0;
    return batch;
  }

  /** Delivers what is here; returns whether anything was. */
  #take(): boolean {
    const receiver = this.#receiver;
    if (receiver === undefined) return false;
    let count = 0;
    try {
      while (this.#open && count < mostAtOnce) {
        const batch = this.#next();
        if (batch === undefined) return count > 0;
        count += 1;
        this.#spinWait?.end();
        receiver(batch);
        if (count === mostAtOnce) this.#takeLater();
      }
    } catch (error) {
      this.#takeLater();
      throw error;
    }
    return count > 0;
  }

  /** Delivers until the port's batch has had its turn. */
  #takeOfPort(): void {
    while (this.#ofPort !== undefined && this.#take());
  }

  #takeLater(): void {
    timers.setImmediate(() => this.#take());
  }

  poll(): readonly Batch[] {
    const batches: Batch[] = [];
    while (this.#open) {
      const batch = this.#next();
      if (batch !== undefined) {
        batches.push(batch);
        continue;
      }
      const arrived = receive(this.#port);
      if (arrived === undefined) break;
      this.#hear(arrived.message);
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

/** Its buffers are within reach of another thread from then on. */
function post(port: MessagePort, batch: Batch): void {
  const message = batch.buffers.length === 0 ? batch.bytes : batch;
  for (const memory of batch.buffers) giveOut(memory);
  if (batch.isOwn === true) port.postMessage(message, [batch.bytes.buffer as ArrayBuffer]);
  else port.postMessage(message);
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
