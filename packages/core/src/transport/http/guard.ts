/**
 * Whether an HTTP endpoint takes a request: the checks that all endpoints share, before anything of the body is read. A pure function of the request's head.
 *
 * The loopback is no border: every page in a browser of this machine can send requests there, and can make a name of its own point there. So the token is
 * demanded whatever the method and the path, a request must call the endpoint by a name that it has, and what a page of another site sends is refused.
 * A request that two programs could read in two ways is refused as malformed. The order is: form, size, host, browser, token, route, body.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { HttpRefusal } from "./refusal.ts";

export interface HttpRoute {
  /** As it stands in a request: `/metrics`. One that ends in `/*` stands for all paths below it. */
  readonly path: string;
  readonly methods: readonly string[];
}

export interface HttpRules {
  readonly routes: readonly HttpRoute[];
  /** A request must have it as `Authorization: Bearer <token>`. Undefined: nothing is demanded. */
  readonly token: string | undefined;
  /** Says in the message where the token is to be had. */
  readonly tokenHint: string;
  /**
   * The token is also taken as the password of this user (RFC 7617): for clients that are given a
   * URL and no header. Browsers are not asked for it.
   */
  readonly basicUser?: string | undefined;
  /** Names in the Host header that are taken besides those of the loopback and the address that was connected to; with any port. */
  readonly allowedHosts: readonly string[];
  /** "none": no browser is let in. "own-page": a page of this endpoint, and a person who types its address. */
  readonly browsers: "none" | "own-page";
  readonly maxTargetBytes: number;
  readonly maxHeaderBytes: number;
  readonly maxBodyBytes: number;
}

/** Returns the judge of requests: undefined where nothing is wrong. */
export function httpGuard(rules: HttpRules): (request: IncomingMessage) => HttpRefusal | undefined {
  const hosts = new Set(rules.allowedHosts.map((name) => name.toLowerCase()));
  const tokenHash = rules.token === undefined ? undefined : hashOf(rules.token);
  return (request) =>
    formProblem(request) ??
    sizeProblem(request, rules) ??
    targetProblem(request) ??
    hostProblem(request, hosts) ??
    browserProblem(request, rules) ??
    tokenProblem(request, tokenHash, rules) ??
    routeProblem(request, rules) ??
    bodyProblem(request, rules);
}

/** The path of a target that the guard has let pass. */
export function pathOf({ url = "/" }: IncomingMessage): string {
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}

/** Whether a request says that it has a body. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

/** Node keeps the first of several; another program may keep the last. */
const onlyOnce: readonly string[] = [
  "host",
  "authorization",
  "content-length",
  "transfer-encoding",
  "content-type",
  "origin",
  "expect",
];

/** More of them cost more to look through than anybody needs. */
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
      `HTTP/${httpVersion} is not spoken here: use HTTP/1.1`,
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
  if (twice !== undefined) return malformed(`the header ${twice} stands there more than once`);
  const coding = headers["transfer-encoding"];
  if (coding === undefined) return undefined;
  if (httpVersion === "1.0" || headers["content-length"] !== undefined) {
    return malformed(
      "where the body ends is said in two ways, or in one that HTTP/1.0 does not have",
    );
  }
  if (coding.toLowerCase() === "chunked") return undefined;
  return new HttpRefusal(
    501,
    "transfer_coding",
    `the transfer coding ${JSON.stringify(coding)} is not known here: chunked is`,
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

/** A path and a query. The absolute form asks for a proxy to anywhere, which no endpoint is. */
function targetProblem({ url = "" }: IncomingMessage): HttpRefusal | undefined {
  if (!url.startsWith("/")) {
    return malformed("the target must be a path, like /health; this is no proxy to other servers");
  }
  if (/^[\x21-\x7e]+$/.test(url) && !/[#\\]/.test(url)) return undefined;
  return malformed("the target has characters that stand in no URL: encode them with %");
}

const authority = /^(?<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+?)\.?(?::\d{1,5})?$/i;

function hostProblem(
  { headers, socket }: IncomingMessage,
  allowed: ReadonlySet<string>,
): HttpRefusal | undefined {
  const { host } = headers;
  if (host === undefined) return malformed("the header Host is missing");
  const name = authority.exec(host)?.groups?.["name"]?.toLowerCase();
  if (name === undefined) return malformed("the header Host is no host:port");
  if (isLoopback(name) || allowed.has(name) || isAddress(name, socket.localAddress)) {
    return undefined;
  }
  return new HttpRefusal(
    421,
    "host_not_allowed",
    `this endpoint is not called ${name}: call it localhost, by its address, or by a name of its option allowedHosts`,
  );
}

/** With any port: a forwarded one is another than that which is listened on. */
function isLoopback(name: string): boolean {
  return name === "localhost" || name === "[::1]" || /^127(\.\d{1,3}){3}$/.test(name);
}

function isAddress(name: string, local: string | undefined): boolean {
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
  { headers }: IncomingMessage,
  tokenHash: Buffer | undefined,
  { tokenHint, basicUser }: HttpRules,
): HttpRefusal | undefined {
  if (tokenHash === undefined) return undefined;
  const { authorization = "" } = headers;
  const bearer = /^bearer +(\S+) *$/i.exec(authorization)?.[1];
  const sent = bearer ?? passwordOf(authorization, basicUser) ?? "";
  // Hashes have one length, so that the time tells nothing of the token's.
  if (timingSafeEqual(hashOf(sent), tokenHash)) return undefined;
  return new HttpRefusal(
    401,
    "invalid_token",
    `the header Authorization: Bearer <token> is missing or wrong: ${tokenHint}`,
    { "www-authenticate": "Bearer" },
  );
}

/** Undefined where it is of another user, or no Basic at all. */
function passwordOf(authorization: string, user: string | undefined): string | undefined {
  const coded = /^basic +([A-Za-z0-9+/]+=*) *$/i.exec(authorization)?.[1];
  if (user === undefined || coded === undefined) return undefined;
  const text = Buffer.from(coded, "base64").toString("utf8");
  return text.startsWith(`${user}:`) ? text.slice(user.length + 1) : undefined;
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

/** Segments are plain: no dots alone, nothing encoded, none empty. */
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
