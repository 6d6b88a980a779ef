/**
 * Who dials: one connection, or a link that outlives its connections, to somebody who listens (transport/link/listen.ts).
 *
 * Both prove that they have the listener's token (transport/link/handshake.ts) before anything else is said. Whoever has the token may say anything that a
 * session may say.
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
import { peerLimits } from "../framing.ts";
import { handshakeMs, introduce, TurnedAwayError } from "./handshake.ts";
import { type HeartbeatWay, holdHeartbeat } from "./heartbeat.ts";
import { isFinal, Link, LinkRefused, type Redial, standardTimes } from "./link.ts";
import { PeerLostError, provesLoss, watchMachine } from "./peer-probe.ts";
import { SocketChannel } from "../socket.ts";
import { explainTls, secureSocket } from "../tls/tls.ts";

export interface DialOptions {
  /** Who listens there, for messages to people. */
  readonly peerId: string;
  /** Why it is gone, asked when the connection closes, and of a link at once. */
  readonly explain: () => Promise<DeathCause>;
  readonly network?: NetworkSettings;
  /** It runs what users write, and is waited for as long as its machine can be reached: a thread that computes answers later. Default: 5 s are enough. */
  readonly mayBeBusy?: boolean;
  /** Asked when the peer of a link is lost: the time that it has to be explained begins when this settles. Default: at once. */
  readonly whenExplainable?: () => Promise<unknown>;
  /** The connection of a link was cut, and nobody said why. */
  readonly onCut?: () => void;
  /** A link says goodbye at the end of this process, if it is not closed before. */
  readonly endsWithProcess?: boolean;
}

/** Rejects with RaySystemError when nobody listens there, with AuthenticationError or ProtocolVersionError when it does not welcome us. */
export async function dial(address: Address, hello: Hello, options: DialOptions): Promise<Channel> {
  if ("path" in address.place) return dialOnce(address, hello, options);
  return dialLink(address, hello, options);
}

/** A link, whose first connection is there. Rejects as `dial` does. */
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
  // Who cannot say why says nothing.
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

/** One connection and no link: it ends when it is cut. Rejects as `dial` does. */
export async function dialOnce(
  address: Address,
  hello: Hello,
  options: DialOptions,
): Promise<Channel> {
  return (await insist(() => connectTo(address, { ...hello }, options), options)).channel;
}

/** A link to somebody who can be dialled soon: what is sent until then waits. It ends when `explain` says that it never will be. */
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

/** Between attempts of somebody who lost its place; doubles up to the longest. A link that is there comes again by itself (transport/link/link.ts). */
const insistMs = { first: 50, longest: 500, agent: 2000, host: standardTimes.reconnectTimeoutMs };

/**
 * As often as it is turned away, until it has paused for as long as there is patience with the other side. A way to somebody who may be busy may be away for as long as
 * one that was there before: who was reached and does not answer yet is busy, and that time does not count.
 *
 * @param over nobody is there any more
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
      // Not the same for all who were turned away.
      const pauseMs = ms * (0.5 + Math.random());
      pausedMs += pauseMs;
      await new Promise<void>((resolve) => deadline(pauseMs, resolve));
    }
  } finally {
    patience.stop();
  }
}

/** How the heartbeat of a link is made. */
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
      // Its next connection hears so, too, and ends the link.
      throw new PeerLostError(`${options.peerId} has ended the connection`);
    },
    // It may be needed for a goodbye soon.
    isWantedAtOnce: options.endsWithProcess === true,
    watch: (onLost) => watchMachine(address, onLost),
    isLoss: (error) => error instanceof PeerLostError,
  };
}

/** Undefined of somebody who never is: it has so much time in all, whether it is reached or not. */
function busyWith({ mayBeBusy, network }: DialOptions, onReached: () => void): Busy | undefined {
  if (mayBeBusy !== true) return undefined;
  const { reconnectTimeoutMs } = { ...standardTimes, ...network };
  return { onReached, times: answerTimes(reconnectTimeoutMs) };
}

/** Connections of one link, one after the other. */
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

/** Between the beginnings of two. */
const hedgeMs = 800;

/** What is known of somebody who may be busy. */
interface Busy {
  readonly onReached: () => void;
  /** How long it has to answer, once it is reached, before another connection is tried. */
  readonly times: Iterator<number, never>;
}

/**
 * The first connection that is made, of several: one that is begun while the way is away may wait for ever, or for long, when it is back. Rejects with what the last
 * one says when none is under way, and when one has had all the time that there is. Of somebody who may be busy, one that is reached takes the place of those before it,
 * and has time without end.
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
    // The system there has taken what is said, and answers probes, whether or not its thread listens; when it does not any more, the connection ends.
    if (!mayBeBusy) {
      limit = deadline(handshakeMs, () => giveUp(new Error(`it did not answer within ${seconds}`)));
    }
    onReached();
  });
  try {
    // Nothing is said to somebody who is not yet known to be the right one.
    if (address.isSecure === true) await secured(socket);
    // A connection that is not made needs no long explanation.
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
  /** It is not wanted any more. */
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
    // As the other kind, which its channel lets go of.
    return secureSocket({ ...place, ...keepAlive }, credentials).unref();
  }
  throw new CertificateError(
    "this machine",
    `has no certificate to show to ${peerId}, which is reached over TLS: rayling cert makes one, and init takes it as option tls`,
  );
}

/** Resolves when the other side is known to be who it was dialled as. */
function secured(socket: Socket): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("close", () => reject(new RaySystemError("the connection was cut")));
  });
}

/** @param isMade the connection was there */
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
