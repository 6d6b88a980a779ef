/**
 * What the client tells the loop of an answer: what the endpoint says of its limits, by which the loop paces itself, and
 * what the answer used, which is paid for whatever becomes of it. It travels over channels of Node's diagnostics, as the
 * client is loaded without the loop, in the async context of the score function, by which the loop knows whose call it was.
 */

import { channel } from "node:diagnostics_channel";
import { announcedIn } from "../faults/rate-limit-headers.ts";
import { usageOf } from "../spend/usage.ts";

type Channel = ReturnType<typeof channel>;

/** Of this thread, whichever copy of this package somebody has loaded. Messages are AnnouncedLimits. */
export const announcements: Channel = channel("rayling.endpoint.announced");

/** The same for usage. Messages are TokenUsage, one for each answer. */
export const uses: Channel = channel("rayling.endpoint.used");

/** Tells the loop what an answer's headers say (`x-ratelimit-remaining-*`, `x-ratelimit-reset-*`, `retry-after`), for score functions that ask by a client of their own. Outside of a loop it does nothing. */
export function noteRateLimits(headers: Headers): void {
  if (!announcements.hasSubscribers) return;
  const announced = announcedIn((name) => headers.get(name) ?? undefined, Date.now());
  if (announced !== undefined) announcements.publish(announced);
}

/**
 * Tells the loop what an answer used, for score functions that ask by a client of their own: it counts, with what else
 * was noted of the same attempt, also if the function throws or is given up. Outside of a loop it does nothing.
 *
 * @param usage as the endpoint or the AI SDK says it; what is none counts nothing
 */
export function noteUsage(usage: unknown): void {
  if (!uses.hasSubscribers) return;
  const used = usageOf({ usage });
  if (used !== undefined) uses.publish(used);
}
