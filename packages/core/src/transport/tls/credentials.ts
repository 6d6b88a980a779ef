/**
 * What a machine shows of itself where TLS is spoken, and whom it believes.
 *
 * They are renewed in place, so that whoever holds them listens and dials with the newest; who looks for new ones is credential-watch.
 */
import { X509Certificate } from "node:crypto";

/** What a machine shows of itself, and by whom others must be vouched for. All of it PEM. There is one for all who use it, until `renew` changes it. */
export interface Credentials {
  /** Certificates of the authorities whose certificates are believed. */
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/** From now on, whoever holds these shows and believes those. */
export function renew(credentials: Credentials, { ca, cert, key }: Credentials): void {
  Object.assign(credentials, { ca, cert, key });
}

export function isSame(one: Credentials, other: Credentials): boolean {
  return one.ca === other.ca && one.cert === other.cert && one.key === other.key;
}

/** The names and addresses that a certificate is for. */
export function namesOf({ cert }: Credentials): string[] {
  return [
    ...(new X509Certificate(cert).subjectAltName ?? "").matchAll(/(?:DNS|IP Address):([^,\s"]+)/g),
  ].map(([, name]) => name as string);
}
