/**
 * Tokens by router address. The loop stores its reward model's token here and the client, which is
 * loaded without the loop, reads it: a score function that asks the router by `chatComplete` or
 * `postJson` need not pass it. A token is sent to its own host and port only.
 */

import { withScheme } from "./address.ts";

const place: unique symbol = Symbol.for("rayling.router.tokens") as never;

/** Returns the tokens, which all copies of this package in a thread share. */
function tokens(): Map<string, string> {
  const holder = globalThis as { [place]?: Map<string, string> };
  return (holder[place] ??= new Map());
}

/** @param address host:port */
export function rememberToken(address: string, token: string): void {
  const url = withScheme(address);
  if (URL.canParse(url)) tokens().set(new URL(url).host, token);
}

/**
 * Returns the headers with the token of the URL's router, if there is one and they have no
 * authorization.
 */
export function withRouterToken(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const known = tokens();
  if (known.size === 0 || !URL.canParse(url)) return headers;
  const token = known.get(new URL(url).host);
  const isSaid = Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
  return token === undefined || isSaid ? headers : { authorization: `Bearer ${token}`, ...headers };
}
