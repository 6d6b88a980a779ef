/**
 * comlink over a channel: its messages, which are plain data, packed by msgpackr (never structured clone, which must not read what a socket brings).
 *
 * One endpoint serves both directions: comlink tells requests from answers. It listens from the moment that something is exposed or asked, so that
 * nothing is heard before there is somebody to answer. SharedArrayBuffers inside a message travel beside it, as the buffers of its batch.
 * What is said after the channel closed is dropped, as a closed port does; whoever waits for an answer watches the channel.
 */
import type { Endpoint } from "comlink";
import { addExtension, Packr } from "msgpackr/pack";
import { checkDepth } from "../protocol/values/depth.ts";
import type { Batch } from "../protocol/message.ts";
import { RaySystemError } from "../shared/errors.ts";
import { brokenChannel, type Channel } from "./channel.ts";

const packr: Packr = new Packr({ structuredClone: true, useRecords: true, copyBuffers: true });

/** Of the message that is being packed or unpacked: that is synchronous. */
let buffers: SharedArrayBuffer[] = [];

addExtension({
  Class: SharedArrayBuffer,
  // "S"; a number of msgpack's range for applications that msgpackr does not use itself.
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

/** What comlink would do for the other side, and nobody here asks for. */
const refused: ReadonlySet<unknown> = new Set(["GET", "SET", "CONSTRUCT", "ENDPOINT"]);

/**
 * Only methods of what was exposed may be called, by their names: comlink itself would follow any path, to `constructor.constructor` as well.
 *
 * @throws RaySystemError for anything else
 */
function checkRequest(data: unknown): void {
  const { type, path } = (data ?? {}) as { readonly type?: unknown; readonly path?: unknown };
  if (refused.has(type)) throw new RaySystemError(`a request to ${String(type)}`);
  if (type !== "APPLY") return;
  const [name, ...rest] = Array.isArray(path) ? (path as readonly unknown[]) : [];
  if (typeof name !== "string" || rest.length > 0 || name in Object.prototype) {
    throw new RaySystemError("a call of what is no method");
  }
}

export function channelEndpoint(channel: Channel): Endpoint {
  const listeners = new Set<Listener>();
  // comlink keeps an endpoint until nobody has what it made over it, which what listens there may have, or the reason why the channel closed.
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
