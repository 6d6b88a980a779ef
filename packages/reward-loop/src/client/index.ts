/**
 * Public names of @rayling/reward-loop/client, for score functions that call a model; loads nothing
 * of the loop.
 */

export { apiRootOf, apiUrlOf } from "./address.ts";
export { chatComplete } from "./chat-complete.ts";
export type { ChatMessage, ChatOptions, ContentPart } from "./chat-complete.ts";
export { chatAnswerOf } from "./chat-answer.ts";
export type { ChatAnswer, ChatUsage, SilentEnd } from "./chat-answer.ts";
export { noteRateLimits } from "@rayling/reward-manager-registry/values";
export { noteUsage } from "./announced.ts";
export { EndpointError } from "./endpoint-error.ts";
export type { EndpointErrorCode } from "./endpoint-error.ts";
export { postRequest } from "./post-request.ts";
export type { PostRequestOptions } from "./post-request.ts";
export { postJson } from "./post-json.ts";
export type { PostOptions } from "./post-json.ts";
