/** Where an agent is, as people write it: `rayling://token@host:port`, and `raylings://` where it speaks TLS. */
import { type Address, type NodeRefusal, RayError } from "@rayling/core/cluster";

export const standardPort = 6399;

/** An address that is none, or an agent that does not answer there. Code "NODE_ADDRESS". */
export class NodeAddressError extends RayError implements NodeRefusal {
  readonly address: string;
  /** Nobody was reached there, or who was takes nobody now; otherwise something is wrong with the address, or with who dials it. */
  readonly mayComeLater: boolean;
  /** @param address without its token */
  constructor(address: string, message: string, cause?: unknown, mayComeLater = false) {
    super("NODE_ADDRESS", `${address}: ${message}`, { cause });
    this.address = address;
    this.mayComeLater = mayComeLater;
  }
}

/** @throws NodeAddressError for what is none */
export function parseAddress(
  text: string,
): Address & { readonly place: { host: string; port: number } } {
  let url: URL;
  try {
    url = new URL(text);
  } catch (error) {
    throw new NodeAddressError(redacted(text), `is no address, ${form}`, error);
  }
  if (!/^raylings?:$/.test(url.protocol) || url.hostname === "") {
    throw new NodeAddressError(redacted(text), `is no address, ${form}`);
  }
  if (url.username === "") {
    throw new NodeAddressError(
      redacted(text),
      "has no token: the agent prints its whole address when it starts",
    );
  }
  let token: string;
  try {
    token = decodeURIComponent(url.username);
  } catch (error) {
    throw new NodeAddressError(redacted(text), "has a token that is not percent-encoded", error);
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? standardPort : Number(url.port);
  return {
    place: { host, port },
    token,
    isSecure: url.protocol === "raylings:",
  };
}

export function formatAddress(address: Address, host: string, port: number): string {
  const { token, isSecure } = address;
  const scheme = isSecure === true ? "raylings" : "rayling";
  const name = host.includes(":") ? `[${host}]` : host;
  return `${scheme}://${encodeURIComponent(token)}@${name}:${port}`;
}

/** Without the token, for messages. */
export function redacted(text: string): string {
  return text.replace(/\/\/.*@/s, "//");
}

const form = "rayling://token@host:port, or raylings:// for TLS";
