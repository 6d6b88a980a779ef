/**
 * The address of an agent as people write it: `rayling://token@host:port`, and `raylings://` for an
 * agent that speaks TLS.
 */
import { type Address, RayError } from "@rayling/core/cluster";

export const standardPort = 6399;

/** A malformed address, or an agent that does not answer there. Code "NODE_ADDRESS". */
export class NodeAddressError extends RayError {
  /** The address without its token. */
  readonly address: string;
  /** @param address without its token */
  constructor(address: string, message: string, cause?: unknown) {
    super("NODE_ADDRESS", `${address}: ${message}`, { cause });
    this.address = address;
  }
}

/** An address as `parseAddress` returns it. */
export type NodeAddress = Address & { readonly place: { host: string; port: number } };

/**
 * @throws NodeAddressError for a malformed address. It has no cause, because the error of the URL
 * parser contains the whole text.
 */
export function parseAddress(text: string): NodeAddress {
  const url = URL.parse(text);
  const isComplete =
    url !== null &&
    /^raylings?:$/.test(url.protocol) &&
    url.hostname !== "" &&
    url.password === "" &&
    /^\/?$/.test(url.pathname) &&
    url.search === "" &&
    url.hash === "";
  if (!isComplete) throw new NodeAddressError(redacted(text), `is not of the form ${form}`);
  if (url.username === "") {
    throw new NodeAddressError(
      redacted(text),
      "has no token: the agent prints its whole address when it starts",
    );
  }
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? standardPort : Number(url.port);
  return {
    place: { host, port },
    token: decoded(url.username, text),
    isSecure: url.protocol === "raylings:",
  };
}

function decoded(token: string, text: string): string {
  try {
    return decodeURIComponent(token);
  } catch {
    throw new NodeAddressError(redacted(text), "has a token that is not percent-encoded");
  }
}

export function formatAddress(address: Address, host: string, port: number): string {
  return written(address.isSecure, `${encodeURIComponent(address.token)}@`, host, port);
}

/** Returns the address without its token, for messages. */
export function addressName({ place, isSecure }: NodeAddress): string {
  return written(isSecure, "", place.host, place.port);
}

function written(isSecure = false, token: string, host: string, port: number): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return `${isSecure ? "raylings" : "rayling"}://${token}${name}:${port}`;
}

/**
 * Returns the part of a malformed address that cannot be a token: a place behind an "@", or a
 * numeric place.
 */
function redacted(text: string): string {
  const [scheme = "", rest = ""] = /^((?:raylings?|https?):\/\/)?(.*)$/s.exec(text)?.slice(1) ?? [];
  const at = rest.lastIndexOf("@");
  const place = rest.slice(at + 1);
  // "host:port@token" is an address in the wrong order.
  const isBehind = at >= 0 && !rest.slice(0, at).includes(":");
  const isShown = isBehind
    ? /^[\w.-]+(:\d*)?\/?$/
    : /^(localhost|[\d.]+|\[[\da-f:.]+\])(:\d*)?\/?$/;
  return (at < 0 || isBehind) && isShown.test(place)
    ? `${scheme}${place}`
    : `(${text.length} characters that may hold a token)`;
}

const form = "rayling://token@host:port, or raylings:// for TLS";
