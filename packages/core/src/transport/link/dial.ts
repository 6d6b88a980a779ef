/**
 * Dials a listener (transport/link/listen.ts): makes one connection, or a link that outlives its
 * connections.
 *
 * Both sides prove that they have the listener's token (transport/link/handshake.ts) before they
 * say anything else. A peer that has the token may send every message of a session.
 */
import { connect, type Socket } from "node:net";
import {
  CertificateError,
  type DeathCause,
  type RayError,
  RaySystemError,
} from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { type Address, cutOff, type Hello, keepAlive, type NetworkSettings } from "../address.ts";
import { answerTimes } from "./answer-times.ts";
import type { Channel } from "../channel.ts";
import type { Credentials } from "../tls/credentials.ts";
import { type Deadline, deadline, Patience } from "../deadline.ts";
import { sayGoodbyeAtExit } from "../exit-message.ts";
import { peerLimits } from "../socket/framing.ts";
import { handshakeMs, introduce, TurnedAwayError } from "./handshake.ts";
import { type HeartbeatWay, holdHeartbeat } from "./heartbeat.ts";
import { isFinal, Link, LinkRefused, type Redial, standardTimes } from "./link.ts";
import { PeerLostError, provesLoss, watchMachine } from "./peer-probe.ts";
import { SocketChannel } from "../socket/socket.ts";
import { explainTls, secureSocket } from "../tls/tls.ts";

export interface DialOptions {
  /** The name of the listener, for messages to people. */
  readonly peerId: string;
  /**
   * Returns the reason why the peer is gone. It is called when a connection closes, and at once for
   * a link.
   */
  readonly explain: () => Promise<DeathCause>;
  readonly network?: NetworkSettings;
  /**
   * Whether the peer runs user code. Such a peer may answer late, so it is awaited as long as its
   * machine can be reached. Default: 5 s suffice.
   */
  readonly mayBeBusy?: boolean;
  /**
   * Delays the time to explain the loss of a link's peer until it settles. Default: that time
   * begins at once.
   */
  readonly whenExplainable?: () => Promise<unknown>;
  /** Called when the connection of a link is cut without a reason. */
  readonly onCut?: () => void;
  /** Whether a link says goodbye at the end of this process, if it is not closed before. */
  readonly endsWithProcess?: boolean;
}

/**
 * Dials a listener. Rejects with RaySystemError when nobody listens there, and with
 * AuthenticationError or ProtocolVersionError when the listener refuses this side.
 */
export async function dial(address: Address, hello: Hello, options: DialOptions): Promise<Channel> {
  if ("path" in address.place) return dialOnce(address, hello, options);
  return dialLink(address, hello, options);
}

/** Makes a link with its first connection. Rejects as `dial` does. */
export async function dialLink(
  address: Address,
  hello: Hello,
  options: DialOptions,
): Promise<Link> {
  const linkId = newId("way");
  const redial = wires(async () => address, { ...hello, linkId }, options);
  const gone = new AbortController();
  const { explainMs } = { ...standardTimes, ...options.network };
  const isGone = (): void => void deadline(explainMs, () => gone.abort());
  // A failed explanation says nothing.
  options.explain().then(isGone, () => undefined);
  const first = await insist(
    (onReached) => redial(0, onReached, gone.signal),
    options,
    gone.signal,
  );
  const link = linkBy(redial, options);
  link.attach(first);
  if (options.endsWithProcess === true) sayGoodbyeAtExit(link);
  void holdHeartbeat(
    link,
    heartbeatWay(async () => address, hello, linkId, options),
  );
  return link;
}

/** Makes one connection without a link: it ends when it is cut. Rejects as `dial` does. */
export async function dialOnce(
  address: Address,
  hello: Hello,
  options: DialOptions,
): Promise<Channel> {
  return (await insist(() => connectTo(address, { ...hello }, options), options)).channel;
}

/**
 * Makes a link to a peer that will soon be dialled; sent data waits until then. It ends when
 * `explain` says that the peer will never exist.
 */
export function dialLater(
  address: () => Promise<Address>,
  hello: Hello,
  options: DialOptions,
): Link {
  const linkId = newId("way");
  const redial = wires(address, { ...hello, linkId }, options);
  const link = linkBy(redial, options);
  link.begin();
  void holdHeartbeat(link, heartbeatWay(address, hello, linkId, options));
  return link;
}

function linkBy(
  redial: Redial,
  { peerId: peer, explain, whenExplainable, network, onCut }: DialOptions,
): Link {
  return new Link({
    peer,
    explain,
    whenExplainable,
    redial,
    ...(onCut && { onCut }),
    ...network,
  });
}

/**
 * Pauses between attempts after a listener turned this side away, in ms; they double up to the
 * longest. An existing link reconnects by itself (transport/link/link.ts).
 */
const insistMs = { first: 50, longest: 500, agent: 2000, host: standardTimes.reconnectTimeoutMs };

/**
 * Retries when it is turned away, until its pauses use up the time that the peer is given. A busy
 * peer may be away as long as an existing link's peer may: a peer that was reached and does not
 * answer yet is busy, and that time does not count.
 *
 * @param over aborted when the peer is gone
 */
async function insist<T>(
  attempt: (onReached: () => void) => Promise<T>,
  { mayBeBusy, network, peerId }: DialOptions,
  over?: AbortSignal,
): Promise<T> {
  const isPatient = mayBeBusy === true && over !== undefined;
  const mostMs =
    mayBeBusy === true ? (network?.reconnectTimeoutMs ?? insistMs.host) : insistMs.agent;
  const patience = new Patience(mostMs, () => undefined);
  const onReached = (): void => patience.stop();
  let pausedMs = 0;
  patience.run();
  try {
    for (let ms = insistMs.first; ; ms = Math.min(2 * ms, insistMs.longest)) {
      try {
        return await attempt(onReached);
      } catch (error) {
        if (over?.aborted === true) throw new RaySystemError(`${peerId} is gone`, { cause: error });
        const mayPass = isPatient ? !isFinal(error) : error instanceof TurnedAwayError;
        const isSpent = isPatient ? patience.isOver : pausedMs >= mostMs;
        if (!mayPass || isSpent) throw error;
      }
      patience.run();
      // Random pauses spread the diallers that were turned away together.
      const pauseMs = ms * (0.5 + Math.random());
      pausedMs += pauseMs;
      await new Promise<void>((resolve) => deadline(pauseMs, resolve));
    }
  } finally {
    patience.stop();
  }
}

/** Returns the functions that make and judge a link's heartbeat. */
function heartbeatWay(
  address: () => Promise<Address>,
  { peerId }: Hello,
  linkId: string,
  options: DialOptions,
): HeartbeatWay {
  const hello = { peerId, heartbeatOf: linkId };
  const quiet = { ...options, explain: async () => cutOff };
  return {
    dial: async (signal) => {
      const place = await address();
      const { channel, welcome } = await firstOf(
        (own, isReached) => connectTo(place, hello, { ...quiet, signal: own }, isReached),
        busyWith(options, () => undefined),
        signal,
      );
      if (welcome["isUnknown"] !== true) return channel;
      channel.close(cutOff);
      // The link's next connection gets this error, too, and ends the link.
      throw new PeerLostError(`${options.peerId} has ended the connection`);
    },
    // The link may soon need it for a goodbye.
    isWantedAtOnce: options.endsWithProcess === true,
    watch: (onLost) => watchMachine(address, onLost),
    isLoss: (error) => error instanceof PeerLostError,
  };
}

/**
 * Returns undefined for a peer that is never busy: its total time is limited, whether it is reached
 * or not.
 */
function busyWith({ mayBeBusy, network }: DialOptions, onReached: () => void): Busy | undefined {
  if (mayBeBusy !== true) return undefined;
  const { reconnectTimeoutMs } = { ...standardTimes, ...network };
  return { onReached, times: answerTimes(reconnectTimeoutMs) };
}

/** Makes the connections of one link, one after the other. */
function wires(
  address: () => Promise<Address>,
  hello: Hello & { readonly linkId: string },
  options: DialOptions,
): Redial {
  let isNew = true;
  return async (received, onReached, over) => {
    const quiet = { ...options, explain: async () => cutOff };
    const said = { ...hello, ...(isNew ? {} : { received }) };
    const place = await address();
    const { channel, welcome } = await firstOf(
      (signal, isReached) => connectTo(place, said, { ...quiet, signal }, isReached),
      busyWith(options, onReached),
      over,
    );
    if (welcome["isUnknown"] === true) {
      channel.close(cutOff);
      throw new LinkRefused(`${options.peerId} has ended the connection`);
    }
    isNew = false;
    return { wire: channel, received: (welcome["received"] as number | undefined) ?? 0 };
  };
}

/** The delay between the starts of two attempts, in ms. */
const hedgeMs = 800;

/** The state of attempts to reach a peer that may be busy. */
interface Busy {
  readonly onReached: () => void;
  /** Times that a reached peer has to answer before another connection is tried, in ms. */
  readonly times: Iterator<number, never>;
}

/**
 * Returns the first of several connections that is made: an attempt that begins while the network
 * is away may hang, even when the network is back. Rejects with the last attempt's error when none
 * is under way, and when an attempt has used all of the time. For a peer that may be busy, an
 * attempt that reaches it replaces the earlier ones and has no time limit.
 */
function firstOf(
  attempt: (signal: AbortSignal, isReached: () => void) => Promise<Connected>,
  busy: Busy | undefined,
  over: AbortSignal,
): Promise<Connected> {
  return new Promise((resolve, reject) => {
    const underWay = new Set<AbortController>();
    let reached: AbortController | undefined;
    let next: Deadline | undefined;
    const beginIn = (ms: number): void => {
      next?.end();
      next = deadline(ms, begin);
    };
    const giveUpOthers = (but?: AbortController): void => {
      for (const other of underWay) {
        if (other === but) continue;
        underWay.delete(other);
        other.abort();
      }
    };
    const end = (): void => {
      next?.end();
      over.removeEventListener("abort", onOver);
    };
    const onOver = (): void => {
      end();
      giveUpOthers();
      reject(new RaySystemError("the connection is not wanted any more"));
    };
    const begin = (): void => {
      const own = new AbortController();
      underWay.add(own);
      const sinceMs = performance.now();
      beginIn(hedgeMs);
      const isReached = (): void => {
        if (busy === undefined || !underWay.has(own)) return;
        reached = own;
        giveUpOthers(own);
        beginIn(busy.times.next().value);
        busy.onReached();
      };
      attempt(own.signal, isReached).then(
        (connected) => {
          if (!underWay.has(own)) return connected.channel.close(cutOff);
          end();
          giveUpOthers(own);
          resolve(connected);
        },
        (error: Error) => {
          if (!underWay.delete(own)) return;
          if (reached === own) reached = undefined;
          const isLate = performance.now() - sinceMs >= handshakeMs;
          if (reached !== undefined || (underWay.size > 0 && !isLate)) return;
          end();
          giveUpOthers();
          reject(error);
        },
      );
    };
    if (over.aborted) return onOver();
    over.addEventListener("abort", onOver);
    begin();
  });
}

interface Connected {
  readonly channel: SocketChannel;
  readonly welcome: Readonly<Record<string, unknown>>;
}

async function connectTo(
  address: Address,
  hello: Readonly<Record<string, unknown>>,
  { peerId, explain, network, mayBeBusy = false, signal }: ConnectOptions,
  onReached: () => void = () => undefined,
): Promise<Connected> {
  const socket = socketTo(address, peerId, network?.credentials);
  let failure: Error | undefined;
  socket.once("error", (error) => (failure = error));
  const giveUp = (error: Error): void => void socket.destroy(error);
  const onAbort = (): void => giveUp(new Error("it is not wanted any more"));
  if (signal?.aborted === true) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  let isMade = false;
  let limit = deadline(handshakeMs, () =>
    giveUp(new Error(`nothing is heard from there within ${seconds}`)),
  );
  socket.once("connect", () => {
    isMade = true;
    limit.end();
    // The peer's system accepts data and answers probes whether or not its thread listens; when it
    // stops, the connection ends.
    if (!mayBeBusy) {
      limit = deadline(handshakeMs, () => giveUp(new Error(`it did not answer within ${seconds}`)));
    }
    onReached();
  });
  try {
    // Nothing is sent before the peer has proved its identity.
    if (address.isSecure === true) await secured(socket);
    // A connection that fails needs no explanation.
    const channel = new SocketChannel(socket, { peer: peerId, explain: async () => cutOff });
    const welcome = await introduce(channel, address.token, hello, peerId);
    channel.setLimits(peerLimits);
    channel.explainBy(explain);
    return { channel, welcome };
  } catch (cause) {
    socket.destroy();
    throw failure === undefined ? cause : unreached(address, peerId, failure, isMade);
  } finally {
    limit.end();
    signal?.removeEventListener("abort", onAbort);
  }
}

interface ConnectOptions extends DialOptions {
  /** Aborted when the connection is no longer wanted. */
  readonly signal?: AbortSignal;
}

const seconds = `${handshakeMs / 1000} s`;

function socketTo(
  { place, isSecure }: Address,
  peerId: string,
  credentials: Credentials | undefined,
): Socket {
  if (isSecure !== true || "path" in place)
    return connect({ ...place, noDelay: true, ...keepAlive });
  if (credentials !== undefined) {
    // Other sockets are unref'ed by their channel, so this one is unref'ed, too.
    return secureSocket({ ...place, ...keepAlive }, credentials).unref();
  }
  throw new CertificateError(
    "this machine",
    `has no certificate to show to ${peerId}, which is reached over TLS: rayling cert makes one, and init takes it as option tls`,
  );
}

/** Resolves when TLS has verified the identity of the peer. */
function secured(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("close", () => reject(new RaySystemError("the connection was cut")));
  });
}

/** @param isMade whether the connection was established before it failed */
function unreached(
  { place }: Address,
  peerId: string,
  failure: NodeJS.ErrnoException,
  isMade: boolean,
): RayError {
  const why = "host" in place ? explainTls(failure, place.host) : undefined;
  if (why !== undefined) return new CertificateError(peerId, `cannot be reached: ${why}`, failure);
  const message = `${peerId} cannot be reached: ${failure.message}`;
  if (provesLoss(failure, isMade)) return new PeerLostError(message, { cause: failure });
  const isReset = failure.code === "ECONNRESET" || failure.code === "EPIPE";
  const Kind = isMade && isReset ? TurnedAwayError : RaySystemError;
  return new Kind(message, { cause: failure });
}
