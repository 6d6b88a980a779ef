/**
 * TLS between machines: both sides show a certificate of the same authority, and the one that is dialled must be who it was dialled as. What is shown and
 * believed is what the credentials are at that moment: they may have been renewed.
 *
 * Owner of node:tls. What goes wrong is told with what to do about it: certificates fail for few reasons, and OpenSSL names them for experts.
 */
import type { Server, Socket } from "node:net";
import {
  connect,
  createSecureContext,
  createServer,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import { type Credentials, isSame } from "./credentials.ts";
import { type Deadline, deadline } from "../deadline.ts";

function options({ ca, cert, key }: Credentials): SecureContextOptions {
  return { ca, cert, key, minVersion: "TLSv1.3" };
}

/** What OpenSSL has against them: a key that is too short, a signature that is no longer believed. */
export function whyUnusable(credentials: Credentials): string | undefined {
  try {
    createSecureContext(options(credentials));
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Whether the system probes connections, and after how long. */
interface KeepAlive {
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelay: number;
}

export interface SecureServerOptions extends KeepAlive {
  readonly credentials: Credentials;
  /** How long somebody may take to show a certificate. */
  readonly handshakeMs: number;
  /** Somebody connected who has still to show one. */
  readonly enter: (socket: Socket) => void;
  /** Who has, or has gone. */
  readonly leave: (socket: Socket) => void;
  readonly onSocket: (socket: Socket) => void;
}

/** A server that gives out sockets of those only who have a certificate of the same authority. */
export function secureServer(settings: SecureServerOptions): Server {
  const { credentials, handshakeMs, enter, leave, onSocket, ...keepAlive } = settings;
  // Node does not say over which socket a secure one speaks; both have the same other end.
  const unknown = new Map<string, { readonly socket: Socket; readonly limit: Deadline }>();
  const known = (name: string): void => {
    const one = unknown.get(name);
    unknown.delete(name);
    one?.limit.end();
    if (one !== undefined) leave(one.socket);
  };
  const server = createServer({
    ...options(credentials),
    requestCert: true,
    rejectUnauthorized: true,
    // Its own limit does not ask whether this thread could have listened.
    handshakeTimeout: 2 ** 31 - 1,
    noDelay: true,
    ...keepAlive,
  });
  let shown = { ...credentials };
  server.prependListener("connection", (socket: Socket) => {
    if (!isSame(shown, credentials)) {
      shown = { ...credentials };
      server.setSecureContext(options(shown));
    }
    const name = nameOf(socket);
    unknown.set(name, { socket, limit: deadline(handshakeMs, () => socket.destroy()) });
    enter(socket);
    socket.once("close", () => known(name));
  });
  server.on("secureConnection", (socket) => {
    known(nameOf(socket));
    onSocket(socket);
  });
  server.on("tlsClientError", (_, socket: TLSSocket) => socket.destroy());
  return server;
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Not connected yet: "secureConnect" follows, or "error". */
export function secureSocket(
  place: { readonly host: string; readonly port: number } & KeepAlive,
  credentials: Credentials,
): TLSSocket {
  const { keepAlive, keepAliveInitialDelay, ...target } = place;
  // Said here, NODE_TLS_REJECT_UNAUTHORIZED=0 does not change it.
  return connect({ ...options(credentials), ...target, rejectUnauthorized: true })
    .setNoDelay(true)
    .setKeepAlive(keepAlive, keepAliveInitialDelay);
}

/** What to do about a connection that TLS did not let through. Undefined if it was not that. */
export function explainTls(error: NodeJS.ErrnoException, host: string): string | undefined {
  const { code = "" } = error;
  if (code === "CERT_HAS_EXPIRED")
    return "its certificate has expired: make it a new one with rayling cert";
  if (code === "CERT_NOT_YET_VALID") {
    return "its certificate is not valid yet, by the clock of this machine: set the clocks";
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    return `its certificate is not for ${host}: name it as the certificate does, or make one with rayling cert --host ${host}`;
  }
  if (/^(DEPTH_ZERO_SELF_SIGNED|SELF_SIGNED_CERT|UNABLE_TO_|CERT_SIGNATURE)/.test(code)) {
    return "its certificate is of another authority than the one of this machine: both need the same ca.pem";
  }
  if (/^ERR_SSL_.*ALERT_/.test(code)) {
    return `it did not accept the certificate of this machine (${code
      .replace(/^.*ALERT_/, "")
      .toLowerCase()
      .replaceAll("_", " ")}): both need certificates of the same ca.pem that are still valid`;
  }
  if (code.startsWith("ERR_SSL_")) {
    return "it does not speak TLS: its address is rayling://, not raylings://, or it is no agent";
  }
  return undefined;
}
