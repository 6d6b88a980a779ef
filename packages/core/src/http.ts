/**
 * HTTP for the sister packages: a server with its guard, tokens, and the order in which it forgets
 * what it has answered. This entry is internal and changes with any release.
 */
export {
  HttpEndpoint,
  type HttpEndpointOptions,
  type HttpExchange,
  type HttpHandler,
  type RefusedRequest,
} from "./transport/http/endpoint.ts";
export type { HttpLimits } from "./transport/http/limits.ts";
export type { HttpRoute } from "./transport/http/guard.ts";
export { answerOf, HttpRefusal } from "./transport/http/refusal.ts";
export { cutUnread, cutUntaken } from "./transport/http/unread.ts";
export { withoutTokens } from "./runtime/launch/host-env.ts";
export { isLoopback } from "./shared/machine/loopback.ts";
export { OldestFirst } from "./shared/fifo.ts";
export { newToken } from "./transport/connect/handshake.ts";
