/**
 * What endpoints say of their limits in answers that went well, from the client that sees it to the loop that paces itself by it: over a channel of Node's diagnostics, as the client is loaded without the loop. It is told
 * in the async context of the score function, by which the loop knows whose call it was.
 */

import { channel } from "node:diagnostics_channel";
import { announcedIn } from "../faults/rate-limit-headers.ts";

/** Of this thread, whichever copy of this package somebody has loaded. Messages are AnnouncedLimits. */
export const announcements: ReturnType<typeof channel> = channel("rayling.endpoint.announced");

/** Tells the loop what an answer's headers say (`x-ratelimit-remaining-*`, `x-ratelimit-reset-*`, `retry-after`), for score functions that ask by a client of their own. Outside of a loop it does nothing. */
export function noteRateLimits(headers: Headers): void {
  if (!announcements.hasSubscribers) return;
  const announced = announcedIn((name) => headers.get(name) ?? undefined, Date.now());
  if (announced !== undefined) announcements.publish(announced);
}
