/**
 * Who listens, on a path of its machine or on a port, and lets in those who have its token.
 *
 * They prove it (transport/link/handshake.ts) before anything else is said; until then they are few, and have little time. On a path a channel is its connection;
 * on a port it is a link, which its dialler names, and names again with every further connection. Where the listener has credentials, all of that is said under TLS.
 */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { AuthenticationError, type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { type Address, cutOff, type Hello, keepAlive, type NetworkSettings } from "../address.ts";
import { brokenChannel, type Channel } from "../channel.ts";
import { deadline } from "../deadline.ts";
import { type FrameLimits, peerLimits } from "../framing.ts";
import { handshakeMs, helloLimits, receive } from "./handshake.ts";
import { watchHeartbeat, watchSilence } from "./heartbeat.ts";
import { Link } from "./link.ts";
import type { PeerLimits } from "../slow-peers.ts";
import { SocketChannel } from "../socket.ts";
import { secureServer } from "../tls/tls.ts";

export interface Listener {
  /** Where it listens: with the port that it was given. */
  readonly address: AddressInfo | string | null;
  close(): void;
}

export interface ListenOptions {
  readonly address: Address;
  /** Why that peer is gone, asked when its connection closes, and of a link at once. */
  readonly explain: (peerId: string) => Promise<DeathCause>;
  readonly onChannel: (channel: Channel, hello: Hello) => void;
  /** Of frames of a peer that has the token. Default: peerLimits. */
  readonly limits?: FrameLimits;
  /** Of those who have not proved yet that they have the token. */
  readonly unknown?: UnknownLimits;
  /** How slow the others may be. */
  readonly pace?: PeerLimits;
  /** With credentials, it listens for TLS; not on a path. */
  readonly network?: NetworkSettings;
}

/** So many may wait for a thread that computes; systems have limits of their own (Linux: net.core.somaxconn, 4,096). Behind them nobody is heard. */
const backlog = 4096;

export interface UnknownLimits {
  /** How many there may be. Default 256. */
  readonly most: number;
  /** How long they have. Default 5,000. */
  readonly ms: number;
}

const standardUnknown: UnknownLimits = { most: 256, ms: handshakeMs };

/** Resolves when it listens. Does not keep the process alive. */
export function listen(options: ListenOptions): Promise<Listener> {
  const { most, ms: unknownMs } = options.unknown ?? standardUnknown;
  const unknown = new Set<Socket>();
  const links = new Map<string, Link>();
  const enter = (socket: Socket): void => {
    // A full house is no closed one: who only holds a place loses it to who comes.
    const last = unknown.size < most ? undefined : lastWelcome(unknown);
    if (last !== undefined && unknown.delete(last)) last.destroy();
    unknown.add(socket);
  };
  const onSocket = (socket: Socket): void => {
    enter(socket);
    void answer(socket, options, links).finally(() => unknown.delete(socket));
  };
  const { credentials } = options.network ?? {};
  const leave = (socket: Socket): void => void unknown.delete(socket);
  const server =
    credentials === undefined
      ? createServer({ noDelay: true, ...keepAlive }, onSocket)
      : secureServer({ ...keepAlive, credentials, handshakeMs: unknownMs, enter, leave, onSocket });
  server.unref();
  return new Promise((resolve, reject) => {
    server.on("error", reject);
    server.listen({ ...options.address.place, backlog }, () =>
      resolve({ address: server.address(), close: () => void server.close() }),
    );
  });
}

/** The oldest of those from where most of them come. */
function lastWelcome(sockets: ReadonlySet<Socket>): Socket | undefined {
  const counts = new Map<string | undefined, number>();
  for (const { remoteAddress } of sockets) {
    counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1);
  }
  const most = Math.max(...counts.values());
  return [...sockets].find(({ remoteAddress }) => counts.get(remoteAddress) === most);
}

async function answer(
  socket: Socket,
  options: ListenOptions,
  links: Map<string, Link>,
): Promise<void> {
  let peer: string | undefined;
  const channel = new SocketChannel(socket, {
    peer: "a host that dialled",
    limits: helloLimits,
    ...(options.pace === undefined ? {} : { pace: options.pace }),
    explain: async () =>
      peer === undefined
        ? { kind: "unreachable", message: "it ended before it said who it is" }
        : options.explain(peer),
  });
  const { ms } = options.unknown ?? standardUnknown;
  const limit = deadline(ms, () => socket.destroy());
  try {
    const { hello, welcome } = await receive(channel, options.address.token);
    const { peerId, wayId, linkId, received, heartbeatOf } = hello;
    if (typeof peerId !== "string" || (wayId !== undefined && typeof wayId !== "string")) {
      throw new RaySystemError("not a hello");
    }
    if (typeof heartbeatOf === "string") {
      const link = links.get(JSON.stringify([peerId, heartbeatOf]));
      channel.explainBy(async () => cutOff);
      if (link?.isOpen !== true) {
        welcome({ isUnknown: true });
        return channel.close(cutOff);
      }
      welcome({});
      return watchHeartbeat(link, channel);
    }
    channel.setLimits(options.limits ?? peerLimits);
    if (typeof linkId !== "string") {
      peer = peerId;
      welcome({});
      return options.onChannel(channel, { peerId, wayId });
    }
    channel.explainBy(async () => cutOff);
    const key = JSON.stringify([peerId, linkId]);
    const known = links.get(key);
    if (typeof received === "number") {
      if (known?.isOpen !== true) {
        welcome({ isUnknown: true });
        return channel.close(cutOff);
      }
      // In one turn: nothing arrives over the last connection after it is said how much has.
      welcome({ received: known.received });
      return known.attach({ wire: channel, received });
    }
    if (known !== undefined) {
      // The dialler did not hear that it was welcome.
      welcome({ received: known.received });
      return known.attach({ wire: channel, received: 0 });
    }
    const link = new Link({
      peer: peerId,
      explain: () => options.explain(peerId),
      ...options.network,
    });
    links.set(key, link);
    void link.closed.then(() => links.delete(key));
    void watchSilence(link);
    welcome({});
    link.attach({ wire: channel, received: 0 });
    options.onChannel(link, { peerId, wayId });
  } catch (error) {
    // Who does not know the token hears that it was of no use, and nothing else.
    if (error instanceof AuthenticationError) await dismissed(channel, socket, error);
    else socket.destroy();
  } finally {
    limit.end();
  }
}

/** Resolves when it has gone: until then it has its place. */
function dismissed(channel: SocketChannel, socket: Socket, error: Error): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) return resolve();
    socket.once("close", () => resolve());
    channel.close(brokenChannel(error));
  });
}
