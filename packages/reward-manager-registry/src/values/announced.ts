/**
 * Reports from a client of an endpoint to the reward loop that its function runs in: the limits
 * that the endpoint announces, by which the loop paces itself. Asks the loop, where its endpoint
 * has limits, when a request may be sent.
 *
 * Reports travel over channels of node:diagnostics_channel, because clients are loaded without the
 * loop, in the async context of the score function, which tells the loop whose call it was.
 */

import { channel } from "node:diagnostics_channel";
import { setTimeout as delay } from "node:timers/promises";
import { announcedIn } from "./rate-limit-headers.ts";

type Channel = ReturnType<typeof channel>;

/** The thread's channel for AnnouncedLimits, shared by all loaded copies of this package. */
export const announcements: Channel = channel("rayling.endpoint.announced");

/** A request that is about to be sent. */
export interface AnnouncedRequest {
  readonly url: string;
  readonly signal: AbortSignal | undefined;
  /** A server that has refused the request before wants no other one for so long. Default 0. */
  readonly pauseMs: number;
  /** Set by the loop that paces it: resolves when it may be sent. */
  turn?: Promise<void>;
}

/** The thread's channel for AnnouncedRequest. */
export const requests: Channel = channel("rayling.endpoint.request");

/**
 * Resolves when a request may be sent; undefined where nothing paces it. Rejects with the signal's
 * reason.
 *
 * @param pauseMs what the server has asked for when it refused the request: the least
 */
export function turnOf(
  url: string,
  signal: AbortSignal | undefined,
  pauseMs = 0,
): Promise<void> | undefined {
  const request: AnnouncedRequest = { url, signal, pauseMs };
  if (requests.hasSubscribers) requests.publish(request);
  return pauseMs > 0 ? turnAfter(request) : request.turn;
}

async function turnAfter({ signal, pauseMs, turn }: AnnouncedRequest): Promise<void> {
  const endMs = performance.now() + pauseMs;
  await turn;
  const leftMs = endMs - performance.now();
  if (leftMs > 0) await pause(leftMs, signal);
}

/** Rejects with the signal's reason: the one of Node has it as its cause only. */
export async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  }
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
