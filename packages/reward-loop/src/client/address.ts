/** Addresses of endpoints, as users write them. */

/** Adds the scheme that a bare host:port stands for. */
export function withScheme(address: string): string {
  return scheme.test(address) ? address : `http://${address}`;
}

const scheme = /^[a-z][a-z\d+.-]*:\/\//i;

/** Throws TypeError for what is no URL, nor host:port. */
export function originOf(address: string): string {
  return new URL(withScheme(address)).origin;
}

/**
 * Returns the URL that all paths of an OpenAI-compatible API begin with, from that URL or a bare
 * host:port. One with a query takes apiUrlOf.
 */
export function apiRootOf(baseUrl: string): string {
  return apiUrlOf(baseUrl, "");
}

/**
 * Returns the URL of a path below that one (`/chat/completions`). A query, as Azure's
 * `?api-version=…`, stays behind the path.
 */
export function apiUrlOf(baseUrl: string, path: string): string {
  const url = URL.parse(withScheme(baseUrl));
  // The request says what is wrong.
  if (url === null) return `${withScheme(baseUrl)}${path}`;
  const isBare = url.pathname === "/" && !scheme.test(baseUrl);
  const root = isBare ? "/v1" : url.pathname.replace(/\/+$/, "");
  const { username, password, search } = url;
  const user = username === "" && password === "" ? "" : `${username}:${password}@`;
  return `${url.protocol}//${user}${url.host}${root}${path}${search}`;
}
