/**
 * A small certificate authority for the machines of one user. All of them trust `ca.pem`;
 * `ca-key.pem` signs certificates and stays where it was made. Each machine has a certificate with
 * its names, which it shows as an agent and as a driver.
 */
import { createPrivateKey, type KeyObject, randomUUID, X509Certificate } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import type { generate as Generate } from "selfsigned";
import { CertificateError, certificatesIn, defaultCredentialFolder } from "@rayling/core/cluster";
import { whyNotImported } from "./needed-package.ts";

/** Where certificates are stored, and how long they are valid. */
export interface CertificateOptions {
  /** The folder of the authority, which is made if there is none. Default: `~/.rayling/tls`. */
  readonly authority?: string;
  /**
   * The folder for the machine's certificate, with `ca.pem`: the files that the machine needs.
   * Default: the authority's folder.
   */
  readonly out?: string;
  /** Names and addresses by which others reach the machine: at least one. */
  readonly hosts: readonly string[];
  /** The validity in days. Default 365. */
  readonly days?: number;
}

/** A certificate of a machine, as written to its folder. */
export interface MadeCertificate {
  /** The folder with `ca.pem`, `cert.pem` and `key.pem`. */
  readonly folder: string;
  /** Whether the authority is new too. */
  readonly madeAuthority: boolean;
  /** The end of the certificate's validity, not after the authority's. */
  readonly validTo: Date;
}

const dayMs = 86_400_000;
/** The clocks of two machines always differ a little. */
const skewMs = 3_600_000;
const authorityDays = 3650;

interface KeyAndCertificate {
  readonly key: string;
  readonly cert: string;
}

/**
 * Makes a certificate for a machine; it replaces an existing one. Rejects with CertificateError.
 */
export async function makeCertificate(options: CertificateOptions): Promise<MadeCertificate> {
  const { authority: home = defaultCredentialFolder(), hosts, days = 365 } = options;
  const folder = options.out ?? home;
  const [first] = hosts;
  if (first === undefined) {
    throw new CertificateError("a certificate", "needs at least one host");
  }
  for (const host of hosts) checkHost(host);
  const { isNew, believed, ...authority } = await authorityIn(home);
  const until = new Date(Date.now() + days * dayMs);
  const { validToDate } = new X509Certificate(authority.cert);
  const validTo = validToDate < until ? validToDate : until;
  const machine = await signed(first, validTo, authority, [
    { name: "basicConstraints", cA: false, critical: true },
    { name: "keyUsage", digitalSignature: true, critical: true },
    { name: "extKeyUsage", serverAuth: true, clientAuth: true },
    {
      name: "subjectAltName",
      altNames: hosts.map((host) =>
        isIP(host) === 0 ? { type: 2 as const, value: host } : { type: 7 as const, ip: host },
      ),
    },
  ]);
  await write(folder, "ca.pem", believed);
  await write(folder, "key.pem", machine.key);
  await write(folder, "cert.pem", machine.cert);
  return { folder, madeAuthority: isNew, validTo };
}

/** @throws CertificateError for what no certificate can match */
function checkHost(host: string): void {
  if (isIP(host) !== 0 || /^(?:\*\.)?[\w-]+(?:\.[\w-]+)*$/.test(host)) return;
  const meant = meantBy(host);
  const hint = meant === "" ? "" : `; perhaps ${meant} is meant`;
  throw new CertificateError(
    `the host ${JSON.stringify(host)}`,
    `is neither a name nor an address, without a scheme and a port${hint}`,
  );
}

/** Returns the hosts in what was given as one, "" if none can be found. */
function meantBy(text: string): string {
  const parts = text.split(/[\s,;]+/).map((part) => {
    const place = part.replace(/^\w+:\/\/(?:[^@/]*@)?/, "").replace(/\/.*$/, "");
    return /^\[(.*)\](?::\d+)?$/.exec(place)?.[1] ?? place.replace(/:\d+$|\.$/, "");
  });
  return parts.filter((part) => part !== "").join(" and ");
}

interface Authority extends KeyAndCertificate {
  /** The content of the folder's `ca.pem`: this authority, and perhaps others. */
  readonly believed: string;
  readonly isNew: boolean;
}

async function authorityIn(folder: string): Promise<Authority> {
  const certFile = join(folder, "ca.pem");
  const [cert, key] = await Promise.all([
    readIfThere(certFile),
    readIfThere(join(folder, "ca-key.pem")),
  ]);
  if (cert !== undefined && key !== undefined) {
    const own = ownAuthority(certFile, cert, key);
    const { validToDate } = own;
    if (validToDate > new Date())
      return { cert: own.toString(), key, believed: cert, isNew: false };
    throw new CertificateError(
      certFile,
      `expired on ${validToDate.toISOString()}: remove it and ca-key.pem, and make new certificates for all machines`,
    );
  }
  if (cert !== undefined) {
    throw new CertificateError(
      certFile,
      "has no ca-key.pem beside it: certificates are made where the authority is, or with another --authority",
    );
  }
  // The name is unique: OpenSSL finds the signing authority in a bundle by its name.
  const name = `rayling ${randomUUID().slice(0, 8)}`;
  const made = await signed(name, new Date(Date.now() + authorityDays * dayMs), undefined, [
    { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
    { name: "keyUsage", keyCertSign: true, cRLSign: true, critical: true },
  ]);
  await write(folder, "ca-key.pem", made.key);
  await write(folder, "ca.pem", made.cert);
  return { ...made, believed: made.cert, isNew: true };
}

/** Returns the certificate of this authority; the file may contain further trusted ones. */
function ownAuthority(path: string, text: string, key: string): X509Certificate {
  const certificates = certificatesIn(path, text);
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch (error) {
    const message = `has a ca-key.pem beside it that is no key: ${(error as Error).message}`;
    throw new CertificateError(path, message, error);
  }
  const own = certificates.find((one) => one.checkPrivateKey(privateKey));
  if (own !== undefined) return own;
  throw new CertificateError(path, "has no certificate whose key is the ca-key.pem beside it");
}

type Extensions = NonNullable<NonNullable<Parameters<typeof Generate>[1]>["extensions"]>;

async function signed(
  commonName: string,
  notAfterDate: Date,
  ca: KeyAndCertificate | undefined,
  extensions: Extensions,
): Promise<KeyAndCertificate> {
  const generate = await generator();
  const made = await generate([{ name: "commonName", value: commonName }], {
    keyType: "ec",
    curve: "P-256",
    algorithm: "sha256",
    notBeforeDate: new Date(Date.now() - skewMs),
    notAfterDate,
    extensions,
    ...(ca === undefined ? {} : { ca }),
  });
  return { key: made.private, cert: made.cert };
}

async function generator(): Promise<typeof Generate> {
  try {
    return (await import("selfsigned")).generate;
  } catch (error) {
    throw whyNotImported(
      "selfsigned",
      error,
      (problem, cause) => new CertificateError("making a certificate", problem, cause),
    );
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CertificateError(path, `cannot be read: ${(error as Error).message}`, error);
  }
}

/**
 * Writes a file. A line break at its end lets two files concatenate to a bundle. A rename never
 * shows a reader half of the file.
 */
async function write(folder: string, name: string, content: string): Promise<void> {
  const path = join(folder, name);
  const draft = `${path}.${randomUUID()}`;
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(draft, `${content.trimEnd()}\n`, { flag: "wx", mode: 0o600 });
    await rename(draft, path);
  } catch (error) {
    throw new CertificateError(path, `cannot be written: ${(error as Error).message}`, error);
  }
}
