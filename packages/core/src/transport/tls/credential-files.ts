/**
 * The files of a machine's TLS credentials: their places, and what is wrong with them. TLS accepts
 * all credentials that this module has read.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { CertificateError } from "../../shared/errors.ts";
import { homeFolder, inHome } from "../../shared/machine/home-folder.ts";
import type { Credentials } from "./credentials.ts";
import { whyUnusable } from "./tls.ts";
import { asError, codeOf } from "../../shared/errors/thrown.ts";
import { present } from "../../shared/errors/internal.ts";

/**
 * Paths of credentials: three files, or a folder with `ca.pem`, `cert.pem` and `key.pem`, as
 * `rayling cert` makes it.
 */
export type CredentialFiles =
  | string
  | { readonly ca: string; readonly cert: string; readonly key: string };

/** The paths of the three files. */
export type CredentialPaths = Exclude<CredentialFiles, string>;

/**
 * Returns the folder that `rayling cert` writes to, the default place of needed credentials.
 *
 * @throws RaySystemError for a user without a home folder
 */
export function defaultCredentialFolder(): string {
  return inHome("the folder of certificates", ".rayling", "tls");
}

/** Credentials, and the files that they come from. */
export interface FoundCredentials {
  readonly paths: CredentialPaths;
  readonly credentials: Credentials;
}

/**
 * Returns the credentials of `source`, or of the environment variable RAYLING_TLS. If they are
 * needed and not named, it looks in the default folder.
 *
 * @throws CertificateError
 */
export function findCredentials(
  source: CredentialFiles | undefined,
  isNeeded: boolean,
): FoundCredentials | undefined {
  const named = source ?? process.env["RAYLING_TLS"] ?? "";
  if (named === "" && !(isNeeded && areInDefaultFolder())) return undefined;
  const paths = pathsOf(named === "" ? defaultCredentialFolder() : named);
  return { paths, credentials: readCredentials(paths) };
}

function areInDefaultFolder(): boolean {
  return homeFolder() !== undefined && existsSync(join(defaultCredentialFolder(), "cert.pem"));
}

/** Makes the paths absolute: a later reader may have another working directory. */
function pathsOf(source: CredentialFiles): CredentialPaths {
  const of = (name: keyof CredentialPaths): string =>
    resolve(typeof source === "string" ? join(source, `${name}.pem`) : source[name]);
  return { ca: of("ca"), cert: of("cert"), key: of("key") };
}

/** @throws CertificateError that names the file which cannot be used */
export function readCredentials(paths: CredentialPaths): Credentials {
  const credentials = { ca: read(paths.ca), cert: read(paths.cert), key: read(paths.key) };
  const authorities = certificatesIn(paths.ca, credentials.ca);
  // When one authority replaces another, the old one may stay until its last certificate has
  // expired.
  const authority = authorities.find((one) => whyUnfit(one) === undefined) ?? authorities[0];
  const [cert] = certificatesIn(paths.cert, credentials.cert);
  checkAge(paths.ca, present(authority, "certificate in the file"), newAuthority);
  checkAge(paths.cert, present(cert, "certificate in the file"), newCertificate);
  const key = parse(paths.key, () => createPrivateKey(credentials.key));
  if (cert?.checkPrivateKey(key) !== true) {
    throw new CertificateError(paths.key, `is not the key of ${paths.cert}`);
  }
  const why = whyUnusable(credentials);
  if (why !== undefined) throw new CertificateError(paths.cert, `is refused by TLS: ${why}`);
  return credentials;
}

/** The end of a file's validity, and what to do about it. */
export interface Expiry {
  readonly path: string;
  readonly end: Date;
  readonly fix: string;
}

/** Returns the expiry of the certificate, and that of the last authority. */
export function expiriesOf({ paths, credentials }: FoundCredentials): Expiry[] {
  const { validToDate } = new X509Certificate(credentials.cert);
  const authorities = certificatesIn(paths.ca, credentials.ca).map((one) => one.validToDate);
  const last = new Date(Math.max(...authorities.map((date) => date.getTime())));
  return [
    { path: paths.cert, end: validToDate, fix: newCertificate },
    { path: paths.ca, end: last, fix: newAuthority },
  ];
}

const newCertificate = "rayling cert makes a new one";
const newAuthority =
  "remove it and ca-key.pem where they were made, and make new certificates for all machines with rayling cert";

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const hint = codeOf(error) === "ENOENT" ? ": rayling cert makes it" : "";
    throw new CertificateError(path, `cannot be read (${asError(error).message})${hint}`, error);
  }
}

/**
 * Returns all certificates in a text, at least one. OpenSSL would skip those behind one that it
 * cannot read.
 *
 * @throws CertificateError that names the file
 */
export function certificatesIn(path: string, text: string): X509Certificate[] {
  if (/-----END [A-Z0-9 ]+-----[^\S\n]*-----BEGIN/.test(text)) {
    throw new CertificateError(
      path,
      "has a certificate that begins on the line on which another ends: put a line break before each -----BEGIN CERTIFICATE-----",
    );
  }
  const begun = text.match(/-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/g) ?? [];
  const whole = text.match(/-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[^-]*-----END \1-----/g) ?? [];
  if (begun.length === 0) {
    throw new CertificateError(path, "is invalid: it contains no PEM certificate");
  }
  if (whole.length !== begun.length) {
    throw new CertificateError(
      path,
      `is truncated: ${begun.length} certificates begin, and ${whole.length} end`,
    );
  }
  return whole.map((one, index) =>
    parse(
      path,
      () => new X509Certificate(one),
      whole.length === 1 ? "" : ` in its certificate ${index + 1} of ${whole.length}`,
    ),
  );
}

function parse<T>(path: string, make: () => T, where = ""): T {
  try {
    return make();
  } catch (error) {
    throw new CertificateError(path, `is invalid${where}: ${asError(error).message}`, error);
  }
}

function checkAge(path: string, cert: X509Certificate, fix: string): void {
  const why = whyUnfit(cert, fix);
  if (why !== undefined) throw new CertificateError(path, why);
}

function whyUnfit(
  { validFromDate, validToDate }: X509Certificate,
  fix = "",
  now: Date = new Date(),
): string | undefined {
  if (validToDate < now) return `expired on ${validToDate.toISOString()}: ${fix}`;
  if (validFromDate > now) {
    return `is valid from ${validFromDate.toISOString()} on, and the clock of this machine says ${now.toISOString()}: set the clock`;
  }
  return undefined;
}
