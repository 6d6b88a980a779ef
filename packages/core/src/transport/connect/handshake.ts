/**
 * The handshake of two runtimes over a socket: both prove that they have the token, and neither
 * sends it.
 *
 *     dialler                                     listener
 *        hello { version, nonce, who and what for }  -->
 *                                      <--  challenge { version, nonce }
 *        proof = HMAC(token, "dialler" both)         -->
 *                                      <--  welcome { proof = HMAC(token, "listener" both), ... }
 *
 * Until the proof is verified, frames are small, time is short, connections are few, and nothing is
 * kept for the peer. A peer of another version learns that; a peer with the wrong token gets the
 * empty frame that means "I could not read you". A connection that ends without it proves nothing
 * about the token: the listener had no room or no time, and the dialler may come again.
 */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { AuthenticationError, ProtocolVersionError, RaySystemError } from "../../shared/errors.ts";
import type { Batch } from "../../protocol/message.ts";
import type { FrameLimits } from "../socket/framing.ts";
import { SlowFrameError } from "../socket/slow-peers.ts";
import { unreadByPeer } from "../channel.ts";
import type { SocketChannel } from "../socket/socket.ts";

/** Increases with every change that two versions would not understand of each other. */
export const protocolVersion = 11;

/** Limits for frames before the peer is known. */
export const helloLimits: FrameLimits = { maxBatchBytes: 4096, maxBuffers: 0, maxBufferBytes: 0 };

/** The time from the connection to the welcome, on both sides, in ms. */
export const handshakeMs = 5000;

/** The connection ended in the middle of the handshake without a refusal. */
export class TurnedAwayError extends RaySystemError {}

type Plain = Readonly<Record<string, unknown>>;

/**
 * Proves that this side has the token. Resolves with the listener's answer. Rejects with
 * AuthenticationError, ProtocolVersionError or TurnedAwayError.
 */
export async function introduce(
  channel: SocketChannel,
  token: string,
  hello: Plain,
  peer: string,
): Promise<Plain> {
  const own = packed({ version: protocolVersion, nonce: newNonce(), ...hello });
  channel.send(own);
  const theirs = await firstAnswer(channel, peer);
  const challenge = read(theirs);
  if (challenge["version"] !== protocolVersion) {
    throw new ProtocolVersionError(peer, protocolVersion, challenge["version"]);
  }
  channel.send({ bytes: proofOf("dialler", token, own, theirs), buffers: [] });
  const { proof, ...rest } = read(await lastAnswer(channel, peer));
  const wanted = proofOf("listener", token, own, theirs);
  if (typeof proof !== "string" || !isEqual(Buffer.from(proof, "base64"), wanted)) {
    throw new AuthenticationError(peer);
  }
  return rest;
}

async function firstAnswer(channel: SocketChannel, peer: string): Promise<Batch> {
  try {
    return await channel.next();
  } catch (cause) {
    const why =
      "it speaks TLS (raylings://), has too many waiting connections, or is no rayling listener";
    const Kind = (await howEnded(channel)) === "cut" ? TurnedAwayError : RaySystemError;
    throw new Kind(`${peer} ended the connection without an answer: ${why}`, { cause });
  }
}

async function lastAnswer(channel: SocketChannel, peer: string): Promise<Batch> {
  try {
    return await channel.next();
  } catch (cause) {
    if ((await howEnded(channel)) === "refused") throw new AuthenticationError(peer, cause);
    throw new TurnedAwayError(`${peer} ended the connection before it identified itself`, {
      cause,
    });
  }
}

/**
 * Says how a handshake failed: the peer refused, the peer's data was malformed, or the connection
 * was cut.
 */
async function howEnded(channel: SocketChannel): Promise<"refused" | "unreadable" | "cut"> {
  const reason = await channel.closed;
  if (reason === unreadByPeer) return "refused";
  const isSlow = reason.error instanceof SlowFrameError;
  return reason.kind === "channel-broken" && !isSlow ? "unreadable" : "cut";
}

export interface Introduced {
  readonly hello: Plain;
  /** Ends the handshake with the listener's answer to the dialler. */
  readonly welcome: (answer: Plain) => void;
}

/** Runs the listener's side. Rejects when the dialler does not have the token. */
export async function receive(channel: SocketChannel, token: string): Promise<Introduced> {
  const theirs = await channel.next();
  const hello = read(theirs);
  const own = packed({ version: protocolVersion, nonce: newNonce() });
  channel.send(own);
  if (hello["version"] !== protocolVersion) {
    throw new ProtocolVersionError("a dialler", protocolVersion, hello["version"]);
  }
  const { bytes } = await channel.next();
  if (!isEqual(bytes, proofOf("dialler", token, theirs, own))) {
    throw new AuthenticationError("a dialler");
  }
  return {
    hello,
    welcome(answer) {
      const proof = proofOf("listener", token, theirs, own).toString("base64");
      channel.send(packed({ ...answer, proof }));
    },
  };
}

export function newToken(): string {
  return randomBytes(32).toString("base64url");
}

function newNonce(): string {
  return randomBytes(32).toString("base64");
}

function proofOf(side: "dialler" | "listener", token: string, hello: Batch, own: Batch): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(hello.bytes.length);
  return createHmac("sha256", token)
    .update(`rayling ${side} `)
    .update(length)
    .update(hello.bytes)
    .update(own.bytes)
    .digest();
}

function isEqual(given: Uint8Array, wanted: Uint8Array): boolean {
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function packed(value: Plain): Batch {
  return { bytes: Buffer.from(JSON.stringify(value)), buffers: [] };
}

/** @throws RaySystemError for data that is no object */
function read({ bytes }: Batch): Plain {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(bytes).toString());
  } catch (cause) {
    throw new RaySystemError("not a handshake", { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new RaySystemError("not a handshake");
  }
  // Without a prototype, names that the peer chooses reach nothing else.
  return Object.assign(Object.create(null) as Plain, value);
}
