/**
 * Listens on a path of this machine or on a port, and admits peers that have the token.
 *
 * Peers prove that (transport/connect/handshake.ts) before they say anything else; until then they
 * are few and have little time. On a path a channel is its connection. On a port a channel is a
 * link, which the dialler names with each of its connections. With credentials everything is said
 * under TLS.
 */
import { type AddressInfo, createServer, type Socket } from "node:net";
import { AuthenticationError, type DeathCause, RaySystemError } from "../../shared/errors.ts";
import { type Address, cutOff, type Hello, keepAlive, type NetworkSettings } from "../address.ts";
import { brokenChannel, type Channel } from "../channel.ts";
import { deadline } from "../deadline.ts";
import { type FrameLimits, peerLimits } from "../socket/framing.ts";
import { handshakeMs, helloLimits, receive } from "../connect/handshake.ts";
import { hearNothing, replaced } from "./dialled-heartbeat.ts";
import { watchHeartbeat, watchSilence } from "./heartbeat.ts";
import { Link } from "./link.ts";
import type { PeerLimits } from "../socket/slow-peers.ts";
import { SocketChannel } from "../socket/socket.ts";
import { secureServer } from "../tls/tls.ts";

export interface Listener {
  /** The address, with the assigned port. */
  readonly address: AddressInfo | string | null;
  close(): void;
}

export interface ListenOptions {
  readonly address: Address;
  /**
   * Returns the reason why that peer is gone. It is called when a connection closes, and at once
   * for a link.
   */
  readonly explain: (peerId: string) => Promise<DeathCause>;
  readonly onChannel: (channel: Channel, hello: Hello) => void;
  /** Limits for frames of a peer that has the token. Default: peerLimits. */
  readonly limits?: FrameLimits;
  /** Limits for peers that have not proved yet that they have the token. */
  readonly unknown?: UnknownLimits;
  /** The least speed of a peer. */
  readonly rate?: PeerLimits;
  /** With credentials the listener speaks TLS; a path ignores them. */
  readonly network?: NetworkSettings;
}

/**
 * The most connections that may wait for a busy thread; systems have limits of their own (Linux:
 * net.core.somaxconn, 4,096). Further ones get no answer.
 */
const backlog = 4096;

export interface UnknownLimits {
  /** The most unproved peers. Default 256. */
  readonly most: number;
  /** The time that each of them has, in ms. Default 5,000. */
  readonly ms: number;
}

const standardUnknown: UnknownLimits = { most: 256, ms: handshakeMs };

/** Resolves when it listens. Does not keep the process alive. */
export function listen(options: ListenOptions): Promise<Listener> {
  const { most, ms: unknownMs } = options.unknown ?? standardUnknown;
  const unknown = new Set<Socket>();
  const reception = new Reception(options);
  const enter = (socket: Socket): void => {
    // When all places are taken, a newcomer replaces a peer that only holds one.
    const last = unknown.size < most ? undefined : lastWelcome(unknown);
    if (last !== undefined && unknown.delete(last)) last.destroy();
    unknown.add(socket);
  };
  const onSocket = (socket: Socket): void => {
    enter(socket);
    void reception.answer(socket).finally(() => unknown.delete(socket));
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
    // In a worker of node:cluster the primary would listen for all of its workers.
    server.listen({ ...options.address.place, backlog, exclusive: true }, () =>
      resolve({ address: server.address(), close: () => void server.close() }),
    );
  });
}

/** Returns the oldest socket of the address that has the most of them. */
function lastWelcome(sockets: ReadonlySet<Socket>): Socket | undefined {
  const counts = new Map<string | undefined, number>();
  for (const { remoteAddress } of sockets) {
    counts.set(remoteAddress, (counts.get(remoteAddress) ?? 0) + 1);
  }
  const most = Math.max(...counts.values());
  return [...sockets].find(({ remoteAddress }) => counts.get(remoteAddress) === most);
}

/** A connection whose peer has proved that it has the token. */
interface Arrival {
  readonly channel: SocketChannel;
  readonly peerId: string;
  readonly welcome: (answer: Readonly<Record<string, unknown>>) => void;
}

/** Admits the peers of one listener, and knows the links that they have made. */
class Reception {
  readonly #options: ListenOptions;
  /** Links by their peer and the id that it has given them. */
  readonly #links: Map<string, Link> = new Map();
  /** Heartbeats of links whose first connection is still to come. */
  readonly #early: Map<string, SocketChannel> = new Map();

  constructor(options: ListenOptions) {
    this.#options = options;
  }

  /** Resolves when the peer is admitted or dismissed. */
  async answer(socket: Socket): Promise<void> {
    const { address, rate, unknown = standardUnknown } = this.#options;
    const channel = new SocketChannel(socket, {
      peer: "a host that dialled",
      limits: helloLimits,
      ...(rate === undefined ? {} : { rate }),
      explain: async () => unidentified,
    });
    const limit = deadline(unknown.ms, () => socket.destroy());
    try {
      const { hello, welcome } = await receive(channel, address.token);
      this.#admit(channel, hello, welcome);
    } catch (error) {
      // A peer without the token learns that it failed, and nothing else.
      if (error instanceof AuthenticationError) await dismissed(channel, socket, error);
      else socket.destroy();
    } finally {
      limit.end();
    }
  }

  /** @throws RaySystemError for a malformed hello */
  #admit(
    channel: SocketChannel,
    { peerId, wayId, linkId, received, heartbeatOf, isNew }: Readonly<Record<string, unknown>>,
    welcome: Arrival["welcome"],
  ): void {
    if (typeof peerId !== "string" || (wayId !== undefined && typeof wayId !== "string")) {
      throw new RaySystemError("not a hello");
    }
    const arrival = { channel, peerId, welcome };
    if (typeof heartbeatOf === "string") {
      return this.#hold(arrival, heartbeatOf, isNew === true);
    }
    channel.setLimits(this.#options.limits ?? peerLimits);
    if (typeof linkId !== "string") {
      channel.explainBy(() => this.#options.explain(peerId));
      welcome({});
      return this.#options.onChannel(channel, { peerId, wayId });
    }
    channel.explainBy(async () => cutOff);
    const key = keyOf(peerId, linkId);
    const known = this.#links.get(key);
    if (typeof received === "number" && known?.isOpen !== true) return refuse(arrival);
    // Without a count, the dialler of a known link did not receive its welcome.
    if (known !== undefined)
      return resume(arrival, known, typeof received === "number" ? received : 0);
    const heartbeat = this.#early.get(key);
    if (heartbeat?.isOpen !== true) return refuse(arrival, { isUnheld: true });
    this.#early.delete(key);
    watchHeartbeat(this.#begin(arrival, key, wayId), heartbeat);
  }

  /** Takes the connection as the heartbeat of a link, which may be about to begin. */
  #hold(arrival: Arrival, linkId: string, isNew: boolean): void {
    const { channel, peerId, welcome } = arrival;
    const key = keyOf(peerId, linkId);
    const link = this.#links.get(key);
    channel.explainBy(async () => cutOff);
    if (link?.isOpen === true) {
      welcome({});
      return watchHeartbeat(link, channel);
    }
    if (!isNew) return refuse(arrival);
    welcome({});
    hearNothing(channel);
    this.#early.get(key)?.close(replaced);
    this.#early.set(key, channel);
    void channel.closed.then(() => {
      if (this.#early.get(key) === channel) this.#early.delete(key);
    });
  }

  /** Takes the connection as the first one of a new link. */
  #begin({ channel, peerId, welcome }: Arrival, key: string, wayId: string | undefined): Link {
    const { explain, network, onChannel } = this.#options;
    const link = new Link({ peer: peerId, explain: () => explain(peerId), ...network });
    this.#links.set(key, link);
    void link.closed.then(() => this.#links.delete(key));
    void watchSilence(link);
    welcome({});
    link.attach({ wire: channel, received: 0 });
    onChannel(link, { peerId, wayId });
    return link;
  }
}

function keyOf(peerId: string, linkId: string): string {
  return JSON.stringify([peerId, linkId]);
}

/** Says that there is no such link, or no longer, or no heartbeat beside it. */
function refuse({ channel, welcome }: Arrival, why: Refusal = { isUnknown: true }): void {
  welcome(why);
  channel.close(cutOff);
}

type Refusal = { readonly isUnknown: true } | { readonly isUnheld: true };

/** Goes on with a link over the connection, if there is a heartbeat beside it. */
function resume(arrival: Arrival, link: Link, received: number): void {
  const { channel, welcome } = arrival;
  if (!link.connection.isHeldBeside) {
    link.connection.turnedAway();
    return refuse(arrival, { isUnheld: true });
  }
  // Both happen in one turn: nothing arrives over the last connection after the count is sent.
  welcome({ received: link.receipts.count });
  link.attach({ wire: channel, received });
}

const unidentified: DeathCause = {
  kind: "unreachable",
  message: "it ended before it identified itself",
};

/** Resolves when the socket has closed: until then it keeps its place. */
function dismissed(channel: SocketChannel, socket: Socket, error: Error): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) return resolve();
    socket.once("close", () => resolve());
    channel.close(brokenChannel(error));
  });
}
