/**
 * `rayling cert`: makes the TLS certificates of machines.
 */
import { hostname, networkInterfaces } from "node:os";
import { CertificateError, makeCertificate } from "@rayling/cluster";
import { refusalOf } from "../cli-error.ts";
import { print } from "../output/formats.ts";
import type { FormatFlag } from "../output/formats.ts";

export interface CertOptions extends FormatFlag {
  readonly host: readonly string[];
  readonly authority?: string;
  readonly out?: string;
  readonly days: number;
}

export async function runCert({ host, format, ...options }: CertOptions): Promise<void> {
  const hosts = host.length > 0 ? host : namesOfThisMachine();
  try {
    const { folder, madeAuthority, validTo } = await makeCertificate({ ...options, hosts });
    const lines = [
      `${folder} has a certificate for ${hosts.join(", ")}, valid to ${validTo.toISOString().slice(0, 10)}.`,
      ...(madeAuthority
        ? ["Its authority is new: it does not trust certificates of another one."]
        : []),
      ...(options.out === undefined
        ? []
        : [
            "Copy the folder to that machine as ~/.rayling/tls, over a channel that nobody else can read.",
          ]),
    ];
    const answer = { folder, hosts, validTo: validTo.toISOString(), madeAuthority };
    await print(answer, format, () => lines);
  } catch (error) {
    throw refusalOf(error, [CertificateError]);
  }
}

function namesOfThisMachine(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const global = addresses.filter(({ address }) => !address.startsWith("fe80:"));
  return [...new Set([hostname(), "localhost", ...global.map(({ address }) => address)])];
}
