/**
 * Decides whether an HTTP endpoint accepts a request: the checks that all endpoints share, before
 * the body is read. A pure function of the request's head.
 *
 * The loopback address protects nothing: every page in a browser of this machine can send requests
 * there, and can point a host name of its own at it. So the token is required for every method and
 * path, a request must use an address or a known host name, and requests from pages of other sites
 * are refused. A request that two programs could read differently is malformed. The order is: form,
 * size, host, browser, token, route, body.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isLoopback } from "../../shared/machine/loopback.ts";
import { HttpRefusal } from "./refusal.ts";

export interface HttpRoute {
  /**
   * The path as it stands in a request, such as `/metrics`. A path that ends in `/*` covers all
   * paths below it.
   */
  readonly path: string;
  readonly methods: readonly string[];
}

export interface HttpRules {
  readonly routes: readonly HttpRoute[];
  /**
   * The token that a request must carry as `Authorization: Bearer <token>`. Undefined requires
   * none.
   */
  readonly token: string | undefined;
  /** Tells the user, in the refusal, where the token is found. */
  readonly tokenHint: string;
  /**
   * The user name under which the token is also accepted as a password (RFC 7617), for clients that
   * take a URL but no header. Browsers are not asked for it.
   */
  readonly basicUser?: string | undefined;
  /**
   * The cookie in which a page of this endpoint also carries the token. The link to that page has
   * it as `/?token=<token>`. Undefined: only headers carry it.
   */
  readonly cookie?: string | undefined;
  /**
   * Names in the Host header that are accepted besides the loopback names, and besides addresses:
   * any where a token is required, else that of the connection. Without a port; any is accepted.
   */
  readonly allowedHosts: readonly string[];
  /**
   * The option with `allowedHosts`, as the user of the endpoint writes it. Undefined: there is none
   * that the refusal could name.
   */
  readonly hostsOption?: string | undefined;
  /**
   * "none" refuses all browsers. "own-page" accepts pages of this endpoint, and a person who types
   * its address.
   */
  readonly browsers: "none" | "own-page";
  readonly maxTargetBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
}

/** Returns a function that gives the refusal of a request, or undefined when it may pass. */
export function httpGuard(rules: HttpRules): (request: IncomingMessage) => HttpRefusal | undefined {
  const hosts = new Set(rules.allowedHosts.map((name) => name.toLowerCase()));
  const tokenHash = rules.token === undefined ? undefined : hashOf(rules.token);
  return (request) =>
    formProblem(request) ??
    sizeProblem(request, rules) ??
    targetProblem(request) ??
    hostProblem(request, hosts, rules) ??
    browserProblem(request, rules) ??
    tokenProblem(request, tokenHash, rules) ??
    routeProblem(request, rules) ??
    bodyProblem(request, rules);
}

/** Returns the path of a target that the guard has accepted. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}

/** Whether a request announces a body. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Node keeps the first of several such headers; another program may keep the last. */
const onlyOnce: readonly string[] = [
  "host",
  "authorization",
  "content-length",
  "transfer-encoding",
  "content-type",
  "origin",
  "expect",
];

/** A scan of more headers than this would cost more than any client needs. */
const maxHeaders = 128;

function formProblem({
  httpVersion,
  headers,
  rawHeaders,
}: IncomingMessage): HttpRefusal | undefined {
  if (httpVersion !== "1.1" && httpVersion !== "1.0") {
    return new HttpRefusal(
      505,
      "http_version",
      `HTTP/${httpVersion} is not supported: use HTTP/1.1`,
    );
  }
  if (rawHeaders.length / 2 > maxHeaders) {
    return new HttpRefusal(
      431,
      "headers_too_large",
      `the request has more than ${maxHeaders} headers`,
    );
  }
  const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  const twice = onlyOnce.find((name) => names.indexOf(name) !== names.lastIndexOf(name));
  if (twice !== undefined) return malformed(`the header ${twice} appears more than once`);
  const coding = headers["transfer-encoding"];
  if (coding === undefined) return undefined;
  if (httpVersion === "1.0" || headers["content-length"] !== undefined) {
    return malformed(
      "the end of the body is given in two ways, or in a way that HTTP/1.0 does not have",
    );
  }
  if (coding.toLowerCase() === "chunked") return undefined;
  return new HttpRefusal(
    501,
    "transfer_coding",
    `the transfer coding ${JSON.stringify(coding)} is not supported: use chunked`,
  );
}

function sizeProblem(
  { url = "", rawHeaders }: IncomingMessage,
  { maxTargetBytes, maxHeaderBytes }: HttpRules,
): HttpRefusal | undefined {
  if (url.length > maxTargetBytes) return targetTooLong(maxTargetBytes);
  const bytes = rawHeaders.reduce((sum, text) => sum + text.length + 2, 0);
  if (bytes > maxHeaderBytes) return headersTooLarge(maxHeaderBytes);
  return undefined;
}

export function targetTooLong(most: number): HttpRefusal {
  return new HttpRefusal(414, "target_too_long", `the target is longer than ${most} bytes`);
}

export function headersTooLarge(most: number): HttpRefusal {
  return new HttpRefusal(431, "headers_too_large", `the headers have more than ${most} bytes`);
}

/** Accepts a path and a query. The absolute form addresses a proxy, which this endpoint is not. */
function targetProblem({ url = "" }: IncomingMessage): HttpRefusal | undefined {
  if (!url.startsWith("/")) {
    return malformed("the target must be a path, like /health; this is no proxy to other servers");
  }
  if (/^[\x21-\x7e]+$/.test(url) && !/[#\\]/.test(url)) return undefined;
  return malformed("the target has characters that no URL may contain: encode them with %");
}

const authority = /^(?<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::\d{1,5})?$/i;

function hostProblem(
  { headers, socket }: IncomingMessage,
  allowed: ReadonlySet<string>,
  { token, hostsOption }: HttpRules,
): HttpRefusal | undefined {
  const { host } = headers;
  if (host === undefined) return malformed("the header Host is missing");
  const name = authority.exec(host)?.groups?.["name"]?.toLowerCase();
  if (name === undefined) return malformed("the header Host is no host:port");
  // Any port is right, because a forwarded port differs from the listening one.
  if (isLoopback(name) || allowed.has(name)) return undefined;
  // A published port or a NAT forwards requests for an address that this machine does not have.
  // DNS rebinding needs a name, and the page that does it has no token.
  const { localAddress } = socket;
  if (token === undefined ? isOwnAddress(name, localAddress) : isAddress(name)) return undefined;
  const names = ["localhost", "by its address"];
  if (hostsOption !== undefined) names.push(`by a name that ${hostsOption} lists`);
  const last = names.pop();
  return new HttpRefusal(
    421,
    "host_not_allowed",
    `this endpoint is not called ${name}: call it ${names.join(", ")} or ${last}`,
  );
}

const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

/** An IPv6 address stands in brackets. */
function isAddress(name: string): boolean {
  return ipv4.test(name) || (name.startsWith("[") && URL.canParse(`http://${name}`));
}

function isOwnAddress(name: string, local: string | undefined): boolean {
  if (local === undefined) return false;
  return name === local.replace(/^::ffff:(?=\d+\.)/, "") || name === `[${local}]`;
}

function browserProblem(
  { headers }: IncomingMessage,
  { browsers }: HttpRules,
): HttpRefusal | undefined {
  const { origin, host } = headers;
  const site = headers["sec-fetch-site"];
  if (origin === undefined && site === undefined) return undefined;
  const isOwnOrigin =
    origin === undefined || origin === `http://${host}` || origin === `https://${host}`;
  const isOwnSite = site === undefined || site === "same-origin" || site === "none";
  if (browsers === "own-page" && isOwnOrigin && isOwnSite) return undefined;
  return new HttpRefusal(
    403,
    "browser_not_allowed",
    browsers === "none"
      ? "this endpoint is not for pages in browsers"
      : "this endpoint is not for pages of other sites",
  );
}

function tokenProblem(
  request: IncomingMessage,
  tokenHash: Buffer | undefined,
  { tokenHint, basicUser, cookie }: HttpRules,
): HttpRefusal | undefined {
  if (tokenHash === undefined) return undefined;
  const { authorization = "" } = request.headers;
  const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const sent = bearer ?? passwordOf(authorization, basicUser) ?? pageToken(request, cookie) ?? "";
  // Hashes have one length, so the comparison time does not reveal the token's.
  if (timingSafeEqual(hashOf(sent), tokenHash)) return undefined;
  return new HttpRefusal(
    401,
    "invalid_token",
    `the header Authorization: Bearer <token> is missing or wrong: ${tokenHint}`,
    { "www-authenticate": "Bearer" },
  );
}

/** Returns undefined for another user, or another scheme than Basic. */
function passwordOf(authorization: string, user: string | undefined): string | undefined {
  const coded = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  if (user === undefined || coded === undefined) return undefined;
  const text = Buffer.from(coded, "base64").toString("utf8");
  return text.startsWith(`${user}:`) ? text.slice(user.length + 1) : undefined;
}

/** Returns the token of the link to the page, or of its cookie. */
function pageToken(
  { url = "", headers }: IncomingMessage,
  cookie: string | undefined,
): string | undefined {
  if (cookie === undefined) return undefined;
  const linked = /^\/\?token=([\w.~-]+)$/.exec(url)?.[1];
  const pairs = (headers.cookie ?? "").split(";").map((pair) => pair.trim());
  return linked ?? pairs.find((pair) => pair.startsWith(`${cookie}=`))?.slice(cookie.length + 1);
}

function hashOf(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function routeProblem(request: IncomingMessage, { routes }: HttpRules): HttpRefusal | undefined {
  const path = pathOf(request);
  const methods = routes.filter((route) => covers(route, path)).flatMap((route) => route.methods);
  if (methods.includes(request.method ?? "")) return undefined;
  if (methods.length === 0) {
    const shown = path.length > 100 ? `${path.slice(0, 100)}...` : path;
    return new HttpRefusal(404, "path_not_allowed", `this endpoint has no path ${shown}`);
  }
  const allow = [...new Set(methods)].join(", ");
  return new HttpRefusal(405, "method_not_allowed", `this path takes ${allow}`, { allow });
}

/** Plain segments: not empty, not only dots, and without encoded characters. */
const plainPath = /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~:@-]+)+$/;

function covers(route: HttpRoute, path: string): boolean {
  if (!route.path.endsWith("/*")) return path === route.path;
  return path.startsWith(route.path.slice(0, -1)) && plainPath.test(path);
}

function bodyProblem(
  request: IncomingMessage,
  { maxBodyBytes }: HttpRules,
): HttpRefusal | undefined {
  if (!announcesBody(request)) return undefined;
  if (request.method === "GET" || request.method === "HEAD") {
    return malformed(`a ${request.method} has no body`);
  }
  const length = Number(request.headers["content-length"] ?? 0);
  return length > maxBodyBytes ? bodyTooLarge(maxBodyBytes) : undefined;
}

export function bodyTooLarge(most: number): HttpRefusal {
  return new HttpRefusal(413, "body_too_large", `the body has more than ${most} bytes`);
}

function malformed(message: string): HttpRefusal {
  return new HttpRefusal(400, "malformed_request", message);
}
