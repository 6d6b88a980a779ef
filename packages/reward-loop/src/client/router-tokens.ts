/**
 * Tokens by router: from the loop, which knows its reward model's, to the client, which is loaded without the loop. So a score function that asks the router by
 * `chatComplete` or `postJson` need not pass it. A token goes to the host and port that it belongs to, and nowhere else.
 */

const place: unique symbol = Symbol.for("rayling.router.tokens") as never;

/** All copies of this package in a thread share them. */
function tokens(): Map<string, string> {
  const holder = globalThis as { [place]?: Map<string, string> };
  return (holder[place] ??= new Map());
}

/** @param address host:port */
export function rememberToken(address: string, token: string): void {
  const url = /^https?:\/\//.test(address) ? address : `http://${address}`;
  if (URL.canParse(url)) tokens().set(new URL(url).host, token);
}

/** The headers with the token of the router that the URL leads to, if there is one and they say nothing else. */
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
