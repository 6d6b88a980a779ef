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
import { brokenChannel, type Channel } from "./channel.ts";
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
  const { promise: closed, resolve } = Promise.withResolvers<DeathCause>();
  const spinWait = new SpinWait();
  let open = true;
  let hasPeer = true;
  void peerGone?.then(() => (hasPeer = false));
  const end = (reason: DeathCause): void => {
    if (!open) return;
    open = false;
    // The null message stops the peer from looking for the death of a live thread.
    if (reason.kind === "channel-broken") port.postMessage(null);
    port.close();
    resolve(reason);
  };
  port.on("close", () => {
    if (open)
      void explain().then(end, (error: unknown) =>
        end({ kind: "unreachable", message: String(error) }),
      );
  });
  // A message that cannot be read is lost, and so is the order of later ones.
  port.on("messageerror", (error) => end(brokenChannel(error)));
  const read = (data: Uint8Array | Batch): Batch =>
    data instanceof Uint8Array ? { bytes: data, buffers: noBuffers } : data;
  const unreadable = (): void =>
    end({ kind: "channel-broken", message: "the other side could not read what was sent" });
  return {
    get isOpen() {
      return open && hasPeer;
    },
    closed,
    close: end,
    // A port delivers posted messages even if its thread ends.
    drained: () => Promise.resolve(),
    drainNow: () => undefined,
    send(batch) {
      if (!open || !hasPeer) throw new RaySystemError("the channel is closed");
      port.postMessage(batch.buffers.length === 0 ? batch.bytes : batch);
      spinWait.begin();
    },
    poll() {
      const batches: Batch[] = [];
      for (let next = receive(port); next !== undefined; next = receive(port)) {
        if (next.message === null) {
          unreadable();
          break;
        }
        batches.push(read(next.message));
      }
      return batches;
    },
    onMessage(receiver) {
      port.on("message", (data: Uint8Array | Batch | null) => {
        if (!open) return;
        spinWait.end();
        if (data === null) return unreadable();
        receiver(read(data));
      });
      port.unref();
    },
  };
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
