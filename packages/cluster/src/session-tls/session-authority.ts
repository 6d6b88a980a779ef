/**
 * The authority of one session: its machines trust each other by certificates of it. Its key never
 * leaves this process, and no key of a machine leaves that machine.
 */
import { createPublicKey, generateKeyPairSync, type KeyObject, randomUUID } from "node:crypto";
import type { Credentials } from "@rayling/core/cluster";
import { certificateOf } from "./certificate.ts";

/** A key of a machine: it stays there, and its public half travels. */
export interface MachineKey {
  /** PEM. */
  readonly privateKey: string;
  /** PEM. */
  readonly publicKey: string;
}

/** Makes a key. */
export function makeMachineKey(): MachineKey {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return { privateKey: pemOf(privateKey), publicKey: String(publicKey.export(spki)) };
}

/** Returns a certificate that stands for itself, and its key: peers know it by its fingerprint. */
export function selfSigned(hosts: readonly string[]): Omit<Credentials, "ca"> {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const name = "rayling gateway";
  const cert = certificateOf({ name, hosts, publicKey, issuer: { name, privateKey } });
  return { cert, key: pemOf(privateKey) };
}

/** Certifies the machines of a session. */
export class SessionAuthority {
  /** The certificate of the authority, as PEM. */
  readonly ca: string;
  readonly #name: string = `rayling session ${randomUUID().slice(0, 8)}`;
  readonly #privateKey: KeyObject;

  constructor() {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    this.#privateKey = privateKey;
    this.ca = this.#certify(this.#name, undefined, publicKey);
  }

  /**
   * Returns the certificate of a machine, as PEM.
   *
   * @param hosts names and addresses by which others reach it
   * @param publicKey as PEM
   */
  certify(hosts: readonly string[], publicKey: string): string {
    return this.#certify(hosts[0] ?? "rayling", hosts, createPublicKey(publicKey));
  }

  /** Returns credentials of this process. */
  own(): Credentials {
    const { privateKey, publicKey } = makeMachineKey();
    return { ca: this.ca, cert: this.certify(["rayling-driver"], publicKey), key: privateKey };
  }

  #certify(name: string, hosts: readonly string[] | undefined, publicKey: KeyObject): string {
    const issuer = { name: this.#name, privateKey: this.#privateKey };
    return certificateOf({ name, hosts, publicKey, issuer });
  }
}

const spki = { type: "spki", format: "pem" } as const;

function pemOf(privateKey: KeyObject): string {
  return String(privateKey.export({ type: "pkcs8", format: "pem" }));
}
