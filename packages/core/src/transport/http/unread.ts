/**
 * Clients that take nothing of an answer: of one that is complete, or of a part of a stream.
 */
import type { ServerResponse } from "node:http";
import { timers } from "../../shared/machine/timers.ts";

/** Cuts the connection of a client that takes nothing of the whole answer for `unreadMs`. */
export function cutUnread(response: ServerResponse, unreadMs: number): void {
  response.once("prefinish", () => {
    response.setTimeout(unreadMs, () => response.destroy());
    // The time would else go on for the next answer, which may take longer. Before Node's own
    // listener, which sets the time of a connection without a request.
    response.prependOnceListener("finish", () => response.socket?.setTimeout(0));
  });
}

/**
 * Resolves when a part of a stream is written, and calls `cut` where the client takes nothing of it
 * for `unreadMs`. A stream has no end at which `cutUnread` could begin.
 */
export async function cutUntaken(
  written: Promise<unknown>,
  cut: () => void,
  unreadMs: number,
): Promise<void> {
  const late = timers.setTimeout(cut, unreadMs);
  try {
    await written;
  } finally {
    timers.clearTimeout(late);
  }
}
