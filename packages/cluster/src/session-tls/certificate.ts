/**
 * X.509 certificates for as long as a session lasts (RFC 5280): of an authority, and of what it
 * vouches for. Keys are of the curve P-256. Certificates that stay on a machine are made in
 * certificates.ts.
 */
import { createHash, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { bitString, element, integer, objectId, octetString, sequence, time, yes } from "./der.ts";

const ecdsaWithSha256 = sequence(objectId("1.2.840.10045.4.3.2"));

/** The clocks of two machines always differ a little. */
const skewMs = 3_600_000;
/** Longer than sessions last. */
const validMs = 90 * 86_400_000;

/** The content of a certificate. */
export interface CertificateContent {
  /** A name for people. */
  readonly name: string;
  /** Names and addresses of the machine; undefined: it is of an authority. */
  readonly hosts: readonly string[] | undefined;
  /** The key that it is about. */
  readonly publicKey: KeyObject;
  /** The name and the key of the authority. */
  readonly issuer: { readonly name: string; readonly privateKey: KeyObject };
}

/** Returns the certificate as PEM. */
export function certificateOf(content: CertificateContent): string {
  const { name, publicKey, issuer } = content;
  const now = Date.now();
  const serial = randomBytes(16);
  const body = sequence(
    element(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ecdsaWithSha256,
    nameOf(issuer.name),
    sequence(time(new Date(now - skewMs)), time(new Date(now + validMs))),
    nameOf(name),
    publicKey.export({ type: "spki", format: "der" }),
    element(0xa3, sequence(...extensionsOf(content))),
  );
  const signature = sign("sha256", body, issuer.privateKey);
  const der = sequence(body, ecdsaWithSha256, bitString(signature));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

function nameOf(commonName: string): Buffer {
  const text = element(0x0c, Buffer.from(commonName));
  return sequence(element(0x31, sequence(objectId("2.5.4.3"), text)));
}

function extensionsOf({ hosts, publicKey }: CertificateContent): Buffer[] {
  const spki = publicKey.export({ type: "spki", format: "der" });
  const keyId = createHash("sha1").update(spki).digest();
  const own = extension("2.5.29.14", false, octetString(keyId));
  if (hosts === undefined) {
    return [
      extension("2.5.29.19", true, sequence(yes, integer(Buffer.from([0])))),
      // keyCertSign
      extension("2.5.29.15", true, bitString(Buffer.from([0x04]), 2)),
      own,
    ];
  }
  const names = hosts.map((host) =>
    isIP(host) === 0 ? element(0x82, Buffer.from(host)) : element(0x87, addressOf(host)),
  );
  return [
    extension("2.5.29.19", true, sequence()),
    // digitalSignature
    extension("2.5.29.15", true, bitString(Buffer.from([0x80]), 7)),
    extension(
      "2.5.29.37",
      false,
      sequence(objectId("1.3.6.1.5.5.7.3.1"), objectId("1.3.6.1.5.5.7.3.2")),
    ),
    extension("2.5.29.17", false, sequence(...names)),
    own,
  ];
}

function extension(id: string, isCritical: boolean, value: Buffer): Buffer {
  return sequence(objectId(id), ...(isCritical ? [yes] : []), octetString(value));
}

function addressOf(host: string): Buffer {
  if (isIP(host) === 4) return Buffer.from(host.split(".").map(Number));
  const [head = "", tail] = host.split("::");
  const groups = (text: string): string[] => (text === "" ? [] : text.split(":"));
  const [first, last] = [groups(head), groups(tail ?? "")];
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  const all = [...first, ...Array<string>(zeros).fill("0"), ...last];
  return Buffer.from(all.map((one) => one.padStart(4, "0")).join(""), "hex");
}
