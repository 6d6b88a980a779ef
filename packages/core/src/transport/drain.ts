/**
 * Sends the last data of an ending process over all of its channels at once: all silent peers
 * together cost the time of one.
 *
 * A process that ends with unread data makes TCP drop what the peer has not read yet, so a link is
 * awaited until everything is acknowledged.
 */
import { clockMs } from "../shared/clock.ts";
import type { Channel } from "./channel.ts";

/** The most time for all peers that do not read, and then for the last data to be acknowledged. */
const limitMs = { read: 5000, heard: 2000 };

export function drainAll(channels: Iterable<Channel>): void {
  const all = [...channels];
  const readUntil = clockMs() + limitMs.read;
  for (const channel of all) channel.drainNow(readUntil);
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const until = clockMs() + limitMs.heard;
  let unheard = all;
  for (;;) {
    unheard = unheard.filter((channel) => channel.isHeardNow?.() === false);
    if (unheard.length === 0 || clockMs() >= until) return;
    Atomics.wait(pause, 0, 0, 1);
  }
}
