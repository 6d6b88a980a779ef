/**
 * comlink over a channel: msgpackr packs its messages, which are plain data (never structured
 * clone, which must not read data from a socket).
 *
 * One endpoint serves both directions: comlink tells requests from answers. It listens from the
 * first expose or request on, so that no message arrives before its receiver exists.
 * SharedArrayBuffers inside a message travel beside it, as the buffers of its batch. Messages after
 * the end of the channel are dropped, as by a closed port; a caller that waits for an answer
 * watches the channel.
 */
import type { Endpoint } from "comlink";
import { addExtension, Packr } from "msgpackr/pack";
import { checkDepth } from "../protocol/values/depth.ts";
import type { Batch } from "../protocol/message.ts";
import { RaySystemError } from "../shared/errors.ts";
import { brokenChannel, type Channel } from "./channel.ts";

const packr: Packr = new Packr({ structuredClone: true, useRecords: true, copyBuffers: true });

/** The buffers of the message that is being packed or unpacked, which is synchronous. */
let buffers: SharedArrayBuffer[] = [];

addExtension({
  Class: SharedArrayBuffer,
  // "S", a number of msgpack's application range that msgpackr does not use.
  type: 0x53,
  write: (buffer: SharedArrayBuffer) => {
    const known = buffers.indexOf(buffer);
    return known >= 0 ? known : buffers.push(buffer) - 1;
  },
  read: (index: unknown) => {
    const buffer = typeof index === "number" ? buffers[index] : undefined;
    if (buffer === undefined) throw new RaySystemError(`buffer ${String(index)} did not arrive`);
    return buffer;
  },
});

export type Listener = (event: { readonly data: unknown }) => void;

/** Requests that comlink would serve but no runtime sends. */
const refused: ReadonlySet<unknown> = new Set(["GET", "SET", "CONSTRUCT", "ENDPOINT"]);

/**
 * Allows only calls of exposed methods by name: comlink itself would follow any path, even
 * `constructor.constructor`.
 *
 * @throws RaySystemError for any other request
 */
function checkRequest(data: unknown): void {
  const { type, path }: { readonly type?: unknown; readonly path?: unknown } = data ?? {};
  if (refused.has(type))
    throw new RaySystemError(`request to ${String(type)} refused: only calls are allowed`);
  if (type !== "APPLY") return;
  const [name, ...rest]: readonly unknown[] = Array.isArray(path) ? path : [];
  if (typeof name !== "string" || rest.length > 0 || name in Object.prototype) {
    throw new RaySystemError("call refused: the peer names no exposed method");
  }
}

export function channelEndpoint(channel: Channel): Endpoint {
  const listeners = new Set<Listener>();
  // comlink keeps an endpoint as long as its proxies live. A listener or the channel's close reason
  // may hold a proxy, so both are released here.
  let open: Channel | undefined = channel;
  void channel.closed.then(() => {
    listeners.clear();
    open = undefined;
  });
  const receive = (batch: Batch): void => {
    let data: unknown;
    try {
      buffers = [...batch.buffers];
      checkDepth(batch.bytes, 0, batch.bytes.length);
      data = packr.unpack(batch.bytes);
    } catch (error) {
      return open?.close(brokenChannel(error));
    } finally {
      buffers = [];
    }
    try {
      checkRequest(data);
      for (const listener of listeners) listener({ data });
    } catch (error) {
      open?.close(brokenChannel(error));
    }
  };
  let isStarted = false;
  const endpoint: Pick<Endpoint, "postMessage" | "start"> & {
    readonly addEventListener: (type: string, listener: unknown) => void;
    readonly removeEventListener: (type: string, listener: unknown) => void;
  } = {
    start() {
      if (isStarted) return;
      isStarted = true;
      open?.onMessage(receive);
    },
    postMessage(message: unknown) {
      if (open?.isOpen !== true) return;
      try {
        const bytes = packr.pack(message);
        open.send({ bytes, buffers });
      } finally {
        buffers = [];
      }
    },
    addEventListener: (_type, listener) => void listeners.add(listener as Listener),
    removeEventListener: (_type, listener) => void listeners.delete(listener as Listener),
  };
  return endpoint;
}
