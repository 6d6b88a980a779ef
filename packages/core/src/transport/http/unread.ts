/**
 * Clients that take nothing of an answer that is complete.
 */
import type { ServerResponse } from "node:http";

/** Cuts the connection of a client that takes nothing of the whole answer for `unreadMs`. */
export function cutUnread(response: ServerResponse, unreadMs: number): void {
  response.once("prefinish", () => {
    response.setTimeout(unreadMs, () => response.destroy());
    // The time would else go on for the next answer, which may take longer. Before Node's own
    // listener, which sets the time of a connection without a request.
    response.prependOnceListener("finish", () => response.socket?.setTimeout(0));
  });
}
