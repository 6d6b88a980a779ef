/**
 * Reports facts about an answer from the client to the loop: the limits that the endpoint
 * announces, by which the loop paces itself, and the usage, which is paid for even if the answer is
 * dropped. Asks the loop, where its endpoint has limits, when a request may be sent.
 *
 * Reports travel over channels of node:diagnostics_channel, because the client is loaded without
 * the loop, in the async context of the score function, which tells the loop whose call it was.
 */

import { channel } from "node:diagnostics_channel";
import { announcedIn } from "../faults/rate-limit-headers.ts";
import { usageOf } from "../spend/usage.ts";
import type { ChatAnswer } from "./chat-answer.ts";

type Channel = ReturnType<typeof channel>;

/** The thread's channel for AnnouncedLimits, shared by all loaded copies of this package. */
export const announcements: Channel = channel("rayling.endpoint.announced");

/** A chat completion that has been asked for. */
export interface AnnouncedChat {
  readonly url: string;
  /** The body of the request. */
  readonly request: Readonly<Record<string, unknown>>;
  readonly answer: Promise<ChatAnswer>;
}

/** The thread's channel for AnnouncedChat: published in the context of the score function. */
export const chats: Channel = channel("rayling.endpoint.chat");

/** The thread's channel for TokenUsage, one message for each answer. */
export const uses: Channel = channel("rayling.endpoint.used");

/** A request that is about to be sent. */
export interface AnnouncedRequest {
  readonly url: string;
  readonly signal: AbortSignal | undefined;
  /** Set by the loop that paces it: resolves when it may be sent. */
  turn?: Promise<void>;
}

/** The thread's channel for AnnouncedRequest. */
export const requests: Channel = channel("rayling.endpoint.request");

/**
 * Resolves when a request may be sent; undefined where nothing paces it. Rejects with the signal's
 * reason.
 */
export function turnOf(url: string, signal: AbortSignal | undefined): Promise<void> | undefined {
  if (!requests.hasSubscribers) return undefined;
  const request: AnnouncedRequest = { url, signal };
  requests.publish(request);
  return request.turn;
}

/**
 * Reports an answer's rate limit headers (`x-ratelimit-remaining-*`, `x-ratelimit-reset-*`,
 * `retry-after`) to the loop, for score functions with a client of their own. Does nothing outside
 * of a loop.
 */
export function noteRateLimits(headers: {
  readonly get: (name: string) => string | null | undefined;
}): void {
  if (!announcements.hasSubscribers) return;
  const announced = announcedIn((name) => headers.get(name) ?? undefined, Date.now());
  if (announced !== undefined) announcements.publish(announced);
}

/**
 * Reports an answer's usage to the loop, for score functions with a client of their own. It counts
 * together with other reports of the attempt, also if the function throws or is given up. Does
 * nothing outside of a loop.
 *
 * @param usage in the form of the endpoint or the AI SDK; a malformed one counts nothing
 */
export function noteUsage(usage: unknown): void {
  if (!uses.hasSubscribers) return;
  const used = usageOf({ usage });
  if (used !== undefined) uses.publish(used);
}
