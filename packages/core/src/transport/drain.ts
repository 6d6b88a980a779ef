/**
 * The last words of a process that ends, over all its channels at once: it waits for those who are silent as long as for one of them.
 *
 * A process that ends with something unread makes TCP drop what the other side has not read yet: so a link is waited for until all is acknowledged.
 */
import type { Channel } from "./channel.ts";

/** How long it waits for all who read nothing, and then for its last words to be heard. */
const limitMs = { read: 5000, heard: 2000 };

export function drainAll(channels: Iterable<Channel>): void {
  const all = [...channels];
  const readUntil = performance.now() + limitMs.read;
  for (const channel of all) channel.drainNow(readUntil);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const until = performance.now() + limitMs.heard;
  let unheard = all;
  for (;;) {
    unheard = unheard.filter((channel) => channel.isHeardNow?.() === false);
    if (unheard.length === 0 || performance.now() >= until) return;
    Atomics.wait(pause, 0, 0, 1);
  }
}
