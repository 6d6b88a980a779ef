/**
 * Connections between hosts: one listens on a path of its own, the other dials it and says who it is.
 *
 * The first frame is a hello with the listener's token; until it is known to be right, frames are small, time is short and connections are few. The
 * listener answers before anything else is said. Whoever has the token may say anything that a session may say.
 */
import { timingSafeEqual } from "node:crypto";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Batch } from "../protocol/messages.ts";
import { type DeathCause, RaySystemError } from "../shared/errors.ts";
import type { Channel } from "./channel.ts";
import { type FrameLimits, peerLimits } from "./framing.ts";
import { SocketChannel } from "./socket.ts";

/** Where a host listens, and what opens it. */
export interface Address {
  readonly path: string;
  readonly token: string;
}

export interface Hello {
  readonly peerId: string;
  /** The request that this connection answers, if the listener asked for it. */
  readonly wayId: string | undefined;
}

export interface Listener {
  readonly address: AddressInfo | string | null;
  close(): void;
}

export interface ListenOptions {
  readonly address: Address;
  /** Why that peer is gone, asked when its connection closes. */
  readonly explain: (peerId: string) => Promise<DeathCause>;
  readonly onChannel: (channel: SocketChannel, hello: Hello) => void;
}

const helloLimits: FrameLimits = { maxBatchBytes: 4096, maxBuffers: 0, maxBufferBytes: 0 };
const helloMs = 5000;
const maxUnknown = 64;
const welcome: Batch = { bytes: Uint8Array.of(1), buffers: [] };

/** Resolves when it listens. Does not keep the process alive. */
export function listen(options: ListenOptions): Promise<Listener> {
  let unknown = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    if (unknown >= maxUnknown) {
      socket.destroy();
      return;
    }
    unknown += 1;
    void answer(socket, options).finally(() => (unknown -= 1));
  });
  server.unref();
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen(options.address.path, () =>
      resolve({ address: server.address(), close: () => void server.close() }),
    );
  });
}

async function answer(socket: Socket, options: ListenOptions): Promise<void> {
  let hello: Hello | undefined;
  const channel = new SocketChannel(socket, {
    peer: "a host that dialled",
    limits: helloLimits,
    explain: async () =>
      hello === undefined
        ? { kind: "unreachable", message: "it ended before it said who it is" }
        : options.explain(hello.peerId),
  });
  const timer = setTimeout(() => socket.destroy(), helloMs).unref();
  try {
    hello = readHello(await channel.next(), options.address.token);
    channel.setLimits(peerLimits);
    channel.send(welcome);
    options.onChannel(channel, hello);
  } catch {
    // Who does not know the token is told nothing.
    socket.destroy();
  } finally {
    clearTimeout(timer);
  }
}

/** @throws RaySystemError for anything but a hello with that token */
function readHello(batch: Batch, token: string): Hello {
  const refuse = (): never => {
    throw new RaySystemError("not a hello with the right token");
  };
  const hello = JSON.parse(Buffer.from(batch.bytes).toString()) as Partial<Hello & Address>;
  if (typeof hello !== "object" || hello === null) return refuse();
  if (typeof hello.token !== "string" || typeof hello.peerId !== "string") return refuse();
  const given = Buffer.from(hello.token);
  const wanted = Buffer.from(token);
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return refuse();
  return { peerId: hello.peerId, wayId: hello.wayId };
}

/** Rejects with RaySystemError when nobody listens there, or does not welcome us in time. */
export async function dial(
  address: Address,
  hello: Hello,
  peerId: string,
  explain: () => Promise<DeathCause>,
): Promise<Channel> {
  const socket = connect({ path: address.path });
  const failed = new Promise<never>((_, reject) => {
    socket.once("error", (error) =>
      reject(new RaySystemError(`${peerId} cannot be reached: ${error.message}`, { cause: error })),
    );
  });
  const channel = new SocketChannel(socket, { peer: peerId, explain });
  const timer = setTimeout(() => socket.destroy(), helloMs).unref();
  const bytes = Buffer.from(JSON.stringify({ token: address.token, ...hello }));
  try {
    channel.send({ bytes, buffers: [] });
    await Promise.race([channel.next(), failed]);
    return channel;
  } finally {
    clearTimeout(timer);
    failed.catch(() => undefined);
  }
}
