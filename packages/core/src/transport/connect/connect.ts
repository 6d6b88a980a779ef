/**
 * One attempt to connect to a listener, up to its welcome (transport/connect/handshake.ts).
 */
import { connect, type Socket } from "node:net";
import {
  CertificateError,
  type DeathCause,
  type RayError,
  RaySystemError,
} from "../../shared/errors.ts";
import { reasonOf } from "../../shared/errors/thrown.ts";
import { type Address, cutOff, keepAlive, type NetworkSettings } from "../address.ts";
import { deadline } from "../deadline.ts";
import { peerLimits } from "../socket/framing.ts";
import { SocketChannel } from "../socket/socket.ts";
import type { Credentials } from "../tls/credentials.ts";
import { explainTls, secureSocket } from "../tls/tls.ts";
import { handshakeMs, introduce, TurnedAwayError } from "./handshake.ts";
import { isLookingUp, joinedLookup } from "./name-lookup.ts";
import { PeerLostError, provesLoss } from "./peer-probe.ts";

/** The peer of a connection. */
export interface PeerOptions {
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
}

export interface ConnectOptions extends PeerOptions {
  /** Aborted when the connection is no longer wanted. */
  readonly signal?: AbortSignal;
}

export interface Connected {
  readonly channel: SocketChannel;
  readonly welcome: Readonly<Record<string, unknown>>;
}

/** @param onReached called when the peer's machine has accepted the connection */
export async function connectTo(
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
    giveUp(new Error(`${silenceOf(address)} within ${seconds}`)),
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

function silenceOf({ place }: Address): string {
  const isNaming = "host" in place && isLookingUp(place.host);
  return isNaming ? "the address of its name is not found" : "nothing is heard from there";
}

const seconds = `${handshakeMs / 1000} s`;

function socketTo(
  { place, isSecure }: Address,
  peerId: string,
  credentials: Credentials | undefined,
): Socket {
  if (isSecure !== true || "path" in place)
    return connect({ ...place, lookup: joinedLookup, noDelay: true, ...keepAlive });
  if (credentials !== undefined) {
    // Other sockets are unref'ed by their channel, so this one is unref'ed, too.
    return secureSocket({ ...place, lookup: joinedLookup, ...keepAlive }, credentials).unref();
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
  const message = `${peerId} cannot be reached: ${reasonOf(failure)}`;
  if (provesLoss(failure, isMade)) return new PeerLostError(message, { cause: failure });
  const isReset = failure.code === "ECONNRESET" || failure.code === "EPIPE";
  const Kind = isMade && isReset ? TurnedAwayError : RaySystemError;
  return new Kind(message, { cause: failure });
}
