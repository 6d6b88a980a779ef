/**
 * Finds whether an error concerns the connection to an endpoint. Such errors have few shapes,
 * because Node's own code of fetch, of sockets, of HTTP's parsers and of name resolution makes
 * them, and clients keep them as causes.
 *
 * A failure that would recur is not one of the connection: a certificate that is not trusted, an
 * endless redirect, and mistakes of user code (an invalid URL, a file that cannot be opened, a
 * refused argument).
 */

import type { TransportFailure } from "../outcome.ts";
import { isObject, partOf, textPartOf } from "./error-tree.ts";

/**
 * @param within an error and all that is within it (withinError); undefined: the connection did not
 * fail
 */
export function transportFailureOf(within: readonly object[]): TransportFailure | undefined {
  const seen = new Set(within.map(shapeOf));
  // A final failure decides, as fetch says "fetch failed" then, too.
  for (const one of ["final", "late", "broken"] as const) if (seen.has(one)) return one;
  return undefined;
}

function shapeOf(error: object): TransportFailure | undefined {
  const code = textPartOf(error, "code");
  if (finalCode.test(code)) return "final";
  if (lateCode.test(code)) return "late";
  if (isFileError(error)) return undefined;
  if (brokenCode.test(code) || isNetworkCall(error)) return "broken";
  if (!isOfFetch(error) && !isSaidByClient(error)) return undefined;
  return finalMessage.test(textPartOf(partOf(error, "cause"), "message")) ? "final" : "broken";
}

/**
 * Certificates (OpenSSL's names in Node), redirects (undici, axios, node-fetch), and refused
 * arguments.
 */
const finalCode =
  /^(CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|PATH_LENGTH_EXCEEDED)|^ERR_(FR_)?TOO_MANY_REDIRECTS$|^(ERR_INVALID_|ERR_UNESCAPED_|UND_ERR_(INVALID_|NOT_SUPPORTED|REQ_CONTENT_))/;

const lateCode =
  /^(E(SOCKET)?TIMEDOUT|UND_ERR_\w*TIMEOUT|ERR_(SOCKET_CONNECTION|TLS_HANDSHAKE|HTTP_REQUEST)_TIMEOUT)$/;

/**
 * Errors of connections (errno), names (EAI_), HTTP/1 (HPE_), HTTP/2's streams and sessions,
 * undici, TLS, bodies that end too early or are wrongly compressed.
 */
const brokenCode =
  /^(ECONN\w+|EPIPE|ENOTFOUND|EAI_\w+|EHOST\w+|ENET\w+|EADDRNOTAVAIL|EMFILE|ENFILE|ENOBUFS|ENOTCONN|ESHUTDOWN|EPROTO|HPE_\w+|UND_ERR_\w+|ERR_HTTP2_(STREAM|SESSION|GOAWAY|PING|INVALID_S(TREAM|ESSION)|ERROR|TOO_MANY_INVALID_FRAMES|MAX_PENDING)\w*|ERR_SSL_\w+|ERR_STREAM_PREMATURE_CLOSE|ERR_SOCKET_CLOSED\w*|ERR_NETWORK|ERR_HTTP_CONTENT_LENGTH_MISMATCH)$/;

/** Files have paths; sockets of the machine have an address that is one. */
function isFileError(error: object): boolean {
  return textPartOf(error, "path") !== "" && partOf(error, "address") === undefined;
}

/** System calls that only sockets and name resolution make. */
function isNetworkCall(error: object): boolean {
  return /^(connect|getaddrinfo|getnameinfo|query\w+|shutdown|socket)$/.test(
    textPartOf(error, "syscall"),
  );
}

/**
 * undici's parser has no code for some refusals; the AI SDK marks a call without an answer as
 * retryable.
 */
function isSaidByClient(error: object): boolean {
  const isUnanswered = partOf(error, "statusCode") === undefined;
  if (isUnanswered && partOf(error, "isRetryable") === true) return true;
  return textPartOf(error, "name") === "HTTPParserError";
}

/**
 * fetch rejects with a TypeError, and says why in its cause; a body that breaks off is
 * "terminated".
 */
function isOfFetch(error: object): boolean {
  const message = textPartOf(error, "message");
  const isFetch = textPartOf(error, "name") === "TypeError" && fetchMessage.test(message);
  return isFetch && isObject(partOf(error, "cause"));
}

const fetchMessage = /^(fetch failed|terminated)$/;

/**
 * Messages of fetch's causes without a code that are permanent faults of the caller or the endpoint
 * (undici, Fetch standard).
 */
const finalMessage =
  /redirect count exceeded|unexpected redirect|redirect mode|unknown scheme|URL scheme|bad port|invalid (url|method|body)|cross origin|integrity|not allowed/i;
