/**
 * TLS between machines: both sides show a certificate of one authority, and the dialled machine
 * must have the dialled name. Both sides use the current content of the credentials, which may have
 * been renewed.
 *
 * Owner of node:tls. Its errors say what to do: certificates fail for few reasons, and OpenSSL
 * names them for experts.
 */
import type { LookupFunction, Server, Socket } from "node:net";
import {
  connect,
  createSecureContext,
  createServer,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import { type Credentials, isSame } from "./credentials.ts";
import { type Deadline, deadline } from "../deadline.ts";
import { asError } from "../../shared/errors/thrown.ts";

function options({ ca, cert, key }: Credentials): SecureContextOptions {
  return { ca, cert, key, minVersion: "TLSv1.3" };
}

/**
 * Returns OpenSSL's objection to the credentials, such as a short key or an outdated signature
 * algorithm; undefined if there is none.
 */
export function whyUnusable(credentials: Credentials): string | undefined {
  try {
    createSecureContext(options(credentials));
    return undefined;
  } catch (error) {
    return asError(error).message;
  }
}

/** Whether the system probes connections, and after which delay in ms. */
interface KeepAlive {
  readonly keepAlive: boolean;
  readonly keepAliveInitialDelay: number;
}

export interface SecureServerOptions extends KeepAlive {
  readonly credentials: Credentials;
  /** The time that a peer has to show a certificate, in ms. */
  readonly handshakeMs: number;
  /** Called for a socket that has connected and shown no certificate yet. */
  readonly enter: (socket: Socket) => void;
  /** Called when such a socket has shown a certificate, or has gone. */
  readonly leave: (socket: Socket) => void;
  readonly onSocket: (socket: Socket) => void;
}

/** Returns a server that passes on only sockets with a certificate of the trusted authority. */
export function secureServer(settings: SecureServerOptions): Server {
  const { credentials, handshakeMs, enter, leave, onSocket, ...keepAlive } = settings;
  // Node does not say which socket is under a secure one; both have the same remote address.
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
    // Node's own limit does not consider whether this thread could have listened.
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

interface TcpPlace {
  readonly host: string;
  readonly port: number;
  readonly lookup?: LookupFunction;
}

/** Returns a socket that is still connecting: "secureConnect" or "error" follows. */
export function secureSocket(place: TcpPlace & KeepAlive, credentials: Credentials): TLSSocket {
  const { keepAlive, keepAliveInitialDelay, ...target } = place;
  // Set here, NODE_TLS_REJECT_UNAUTHORIZED=0 does not change it.
  return connect({ ...options(credentials), ...target, rejectUnauthorized: true })
    .setNoDelay(true)
    .setKeepAlive(keepAlive, keepAliveInitialDelay);
}

/** Returns what to do about a connection that TLS refused; undefined if TLS did not refuse it. */
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
    return "its certificate comes from another authority than that of this machine: both need the same ca.pem";
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
