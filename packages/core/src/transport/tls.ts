/**
 * TLS between machines: both sides show a certificate of the same authority, and the one that is dialled must be who it was dialled as.
 *
 * Owner of node:tls. What goes wrong is told with what to do about it: certificates fail for few reasons, and OpenSSL names them for experts.
 */
import { existsSync, readFileSync } from "node:fs";
import { createPrivateKey, X509Certificate } from "node:crypto";
import type { Server, Socket } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { connect, createServer, type SecureContextOptions, type TLSSocket } from "node:tls";
import { CertificateError } from "../shared/errors.ts";
import { type Deadline, deadline } from "./deadline.ts";

/** What a machine shows of itself, and by whom others must be vouched for. All of it PEM. */
export interface Credentials {
  /** Certificates of the authorities whose certificates are believed. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Where they are: three files, or a folder with `ca.pem`, `cert.pem` and `key.pem`, as `rayling cert` makes it. */
export type CredentialFiles =
  | string
  | { readonly ca: string; readonly cert: string; readonly key: string };

/** Where `rayling cert` puts them, and where they are looked for when they are needed and nobody says where they are. */
export const defaultCredentialFolder: string = join(homedir(), ".rayling", "tls");

/**
 * Those that are named, or that the environment variable RAYLING_TLS names; where they are needed, those of the standard folder, if there are some.
 *
 * @throws CertificateError
 */
export function findCredentials(
  source: CredentialFiles | undefined,
  isNeeded: boolean,
): Credentials | undefined {
  const named = source ?? process.env["RAYLING_TLS"] ?? "";
  if (named !== "") return readCredentials(named);
  if (!isNeeded || !existsSync(join(defaultCredentialFolder, "cert.pem"))) return undefined;
  return readCredentials(defaultCredentialFolder);
}

/** @throws CertificateError that names the file which cannot be used */
export function readCredentials(source: CredentialFiles): Credentials {
  const files =
    typeof source === "string"
      ? {
          ca: join(source, "ca.pem"),
          cert: join(source, "cert.pem"),
          key: join(source, "key.pem"),
        }
      : source;
  const credentials = { ca: read(files.ca), cert: read(files.cert), key: read(files.key) };
  checkAge(
    files.ca,
    parse(files.ca, () => new X509Certificate(credentials.ca)),
  );
  const cert = parse(files.cert, () => new X509Certificate(credentials.cert));
  checkAge(files.cert, cert);
  const key = parse(files.key, () => createPrivateKey(credentials.key));
  if (!cert.checkPrivateKey(key)) {
    throw new CertificateError(files.key, `is not the key of ${files.cert}`);
  }
  return credentials;
}

/** The names and addresses that a certificate is for. */
export function namesOf({ cert }: Credentials): string[] {
  return [
    ...(new X509Certificate(cert).subjectAltName ?? "").matchAll(/(?:DNS|IP Address):([^,\s"]+)/g),
  ].map(([, name]) => name as string);
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const hint =
      (error as NodeJS.ErrnoException).code === "ENOENT" ? ": rayling cert makes it" : "";
    throw new CertificateError(path, `cannot be read (${(error as Error).message})${hint}`, error);
  }
}

function parse<T>(path: string, make: () => T): T {
  try {
    return make();
  } catch (error) {
    throw new CertificateError(
      path,
      `is not what it should be: ${(error as Error).message}`,
      error,
    );
  }
}

function checkAge(path: string, { validFromDate, validToDate }: X509Certificate): void {
  const now = new Date();
  if (validToDate < now) {
    throw new CertificateError(
      path,
      `expired on ${validToDate.toISOString()}: rayling cert makes a new one`,
    );
  }
  if (validFromDate > now) {
    throw new CertificateError(
      path,
      `is valid from ${validFromDate.toISOString()} on, and the clock of this machine says ${now.toISOString()}: set the clock`,
    );
  }
}

function options({ ca, cert, key }: Credentials): SecureContextOptions {
  return { ca, cert, key, minVersion: "TLSv1.3" };
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
  server.prependListener("connection", (socket: Socket) => {
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
