/**
 * The TLS credentials of a machine: what it shows, and which authorities it trusts.
 *
 * They are renewed in place, so that every holder listens and dials with the newest;
 * credential-watch looks for new ones.
 */
import { X509Certificate } from "node:crypto";

/**
 * The certificate and key that a machine shows, and the authorities that must vouch for its peers,
 * all as PEM. All users share one object, which `renew` changes.
 */
export interface Credentials {
  /** Certificates of the trusted authorities. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** Replaces the content of the credentials for all of their holders. */
export function renew(credentials: Credentials, { ca, cert, key }: Credentials): void {
  Object.assign(credentials, { ca, cert, key });
}

export function isSame(one: Credentials, other: Credentials): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key;
}

/** Returns the names and addresses that a certificate is for. */
export function namesOf({ cert }: Credentials): string[] {
  return [
    ...(new X509Certificate(cert).subjectAltName ?? "").matchAll(/(?:DNS|IP Address):([^,\s"]+)/g),
  ].map(([, name]) => name as string);
}
