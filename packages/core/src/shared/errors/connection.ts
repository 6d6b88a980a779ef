/**
 * Errors of connections between machines: a peer that may not connect, or that speaks another
 * version.
 */
import { RayError } from "./base.ts";

/**
 * The peer does not have this side's token, or the connection ended before the peer proved that it
 * has it. Code "AUTHENTICATION".
 */
export class AuthenticationError extends RayError {
  /** The address or the id of the other side. */
  readonly peer: string;
  constructor(peer: string, cause?: unknown) {
    super("AUTHENTICATION", `${peer} did not accept the token, or has another one`, { cause });
    this.peer = peer;
  }
}

/**
 * The peer speaks another version of the protocol; both sides need the same release. Code
 * "PROTOCOL_VERSION".
 */
export class ProtocolVersionError extends RayError {
  /** The address or the id of the other side. */
  readonly peer: string;
  /** The version of this side. */
  readonly own: number;
  /** The version of the other side. */
  readonly theirs: unknown;
  constructor(peer: string, own: number, theirs: unknown) {
    const other = typeof theirs === "number" ? `version ${theirs}` : "no version";
    super(
      "PROTOCOL_VERSION",
      `${peer} speaks ${other} of the protocol and this side version ${own}: install the same release on both`,
    );
    this.peer = peer;
    this.own = own;
    this.theirs = theirs;
  }
}

/** A certificate, a key or an authority cannot be used. Code "CERTIFICATE". */
export class CertificateError extends RayError {
  /** The file, or the peer that showed the certificate. */
  readonly source: string;
  constructor(source: string, message: string, cause?: unknown) {
    super("CERTIFICATE", `${source} ${message}`, { cause });
    this.source = source;
  }
}
