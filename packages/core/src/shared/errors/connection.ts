/** Errors of connections between machines, and of those who may not make one. */
import { RayError } from "./base.ts";

/** The other side does not have the token that this one has, or the connection ended before it proved that it has. Code "AUTHENTICATION". */
export class AuthenticationError extends RayError {
  readonly peer: string;
  constructor(peer: string, cause?: unknown) {
    super("AUTHENTICATION", `${peer} did not accept the token, or has another one`, { cause });
    this.peer = peer;
  }
}

/** The other side speaks another version of the protocol: both need the same release. Code "PROTOCOL_VERSION". */
export class ProtocolVersionError extends RayError {
  readonly peer: string;
  readonly own: number;
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

/** A certificate, key or authority that cannot be used. Code "CERTIFICATE". */
export class CertificateError extends RayError {
  /** The file, or who showed it. */
  readonly source: string;
  constructor(source: string, message: string, cause?: unknown) {
    super("CERTIFICATE", `${source} ${message}`, { cause });
    this.source = source;
  }
}
