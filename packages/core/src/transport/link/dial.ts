/**
 * Dials a listener (transport/link/listen.ts): makes one connection, or a link that outlives its
 * connections.
 *
 * Both sides prove that they have the listener's token (transport/connect/handshake.ts) before they
 * say anything else. A peer that has the token may send every message of a session.
 */
import { RaySystemError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { pause } from "../../shared/machine/timers.ts";
import { type Address, cutOff, type Hello } from "../address.ts";
import type { Channel } from "../channel.ts";
import { TimeLimit } from "../deadline.ts";
import { sayGoodbyeAtExit } from "../exit-goodbye.ts";
import { type Connected, connectTo, type PeerOptions } from "../connect/connect.ts";
import { answerTimes, type Attempts, type Busy, firstOf } from "../connect/first-connection.ts";
import { TurnedAwayError } from "../connect/handshake.ts";
import { isLookingUp } from "../connect/name-lookup.ts";
import { DialledHeartbeat } from "./dialled-heartbeat.ts";
import { endSilence } from "./heartbeat.ts";
import { Link, standardTimes } from "./link.ts";
import { isFinal, LinkRefused, type Redial, type Resumed } from "./redialler.ts";
import { PeerLostError } from "../connect/peer-probe.ts";

export interface DialOptions extends PeerOptions {
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
  const makers = makersOf(async () => address, { ...hello, linkId: newId("way") }, options);
  const gone = new AbortController();
  // A peer that is gone has nothing to say; a failed explanation says nothing.
  options.explain().then(
    () => gone.abort(),
    () => undefined,
  );
  const attempt = (onReached: () => void): Promise<Resumed> =>
    makers.redial(0, onReached, gone.signal);
  const first = await insist(attempt, options, gone.signal).catch((error: unknown) => {
    makers.heartbeat.end();
    throw error;
  });
  const link = linkBy(makers, options);
  link.attach(first);
  if (options.endsWithProcess === true) sayGoodbyeAtExit(link);
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
  const link = linkBy(makersOf(address, { ...hello, linkId: newId("way") }, options), options);
  link.connection.begin();
  return link;
}

function linkBy(
  makers: Makers,
  { peerId: peer, explain, whenExplainable, network, onCut }: DialOptions,
): Link {
  const own = onCut && { onCut };
  const link = new Link({ peer, explain, whenExplainable, ...makers, ...own, ...network });
  void endSilence(link, makers.heartbeat);
  return link;
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
  const timeLimit = new TimeLimit(mostMs, () => undefined);
  const onReached = (): void => timeLimit.stop();
  let pausedMs = 0;
  timeLimit.run();
  try {
    for (let ms = insistMs.first; ; ms = Math.min(2 * ms, insistMs.longest)) {
      try {
        return await attempt(onReached);
      } catch (error) {
        if (over?.aborted === true) throw new RaySystemError(`${peerId} is gone`, { cause: error });
        const mayPass = isPatient ? !isFinal(error) : error instanceof TurnedAwayError;
        const isSpent = isPatient ? timeLimit.isOver : pausedMs >= mostMs;
        if (!mayPass || isSpent) throw error;
      }
      timeLimit.run();
      // Random pauses spread the diallers that were turned away together.
      const pauseMs = ms * (0.5 + Math.random());
      pausedMs += pauseMs;
      await pause(pauseMs, { ref: false, ...(over && { signal: over }) });
    }
  } finally {
    timeLimit.stop();
  }
}

function attemptsAt(
  address: Address,
  hello: Readonly<Record<string, unknown>>,
  options: PeerOptions,
): Attempts {
  const { place } = address;
  return {
    attempt: (signal, isReached) => connectTo(address, hello, { ...options, signal }, isReached),
    isNaming: () => "host" in place && isLookingUp(place.host),
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

/** The listener has no heartbeat of the link: the dialler's has lost its other end. */
class UnheldError extends TurnedAwayError {}

/** The makers of one link's connections. */
interface Makers {
  readonly redial: Redial;
  readonly heartbeat: DialledHeartbeat;
}

/**
 * Makes the connections of one link, one after the other, and its heartbeat before them: without it
 * the listener would not notice that the network is gone.
 */
function makersOf(
  address: () => Promise<Address>,
  hello: Hello & { readonly linkId: string },
  options: DialOptions,
): Makers {
  const { peerId } = options;
  const quiet = { ...options, explain: async () => cutOff };
  let isNew = true;
  const connected = async (said: Said, onReached: () => void, over: AbortSignal): Made => {
    const busy = busyWith(options, onReached);
    const made = await firstOf(attemptsAt(await address(), said, quiet), busy, over);
    if (made.welcome["isUnknown"] !== true) return made;
    made.channel.close(cutOff);
    throw new LinkRefused(`${peerId} has ended the connection`);
  };
  const heartbeat = new DialledHeartbeat({
    dial: async (onReached, over) => {
      const said = { peerId: hello.peerId, heartbeatOf: hello.linkId, isNew };
      return (await connected(said, onReached, over)).channel;
    },
    isLoss: (error) => error instanceof PeerLostError || error instanceof LinkRefused,
  });
  const attempt: Redial = async (received, onReached, over) => {
    await heartbeat.need(onReached, over);
    const said = { ...hello, ...(isNew ? {} : { received }) };
    const { channel, welcome } = await connected(said, onReached, over);
    if (welcome["isUnheld"] === true) {
      channel.close(cutOff);
      throw new UnheldError(`${peerId} has lost the connection beside this one`);
    }
    isNew = false;
    const has = welcome["received"];
    return { wire: channel, received: typeof has === "number" ? has : 0 };
  };
  const redial: Redial = (...args) =>
    attempt(...args).catch((error: unknown) => {
      if (!(error instanceof UnheldError)) throw error;
      heartbeat.refused();
      return attempt(...args);
    });
  return { redial, heartbeat };
}

type Said = Readonly<Record<string, unknown>>;
type Made = Promise<Connected>;
