/**
 * How long somebody who was reached has to answer over one connection, before another one is tried.
 *
 * A connection that was taken may be one that nobody has at its other end, so the next may be better, and the other side waits for it only as long as a cut may
 * last. But a host that computes takes none of them until it has time: those that were given up wait for it, too, and fill the place of others. So the first are
 * tried soon, as many as a few cuts may need, and the later ones ever more seldom.
 */

/** The first, in ms; doubles. */
const firstMs = 800;
const longestMs = 60_000;
/** So many may be tried soon. */
const soon = 20;
/** How soon, as a part of how long a cut may last. */
const part = 1 / 16;

export function* answerTimes(reconnectTimeoutMs: number): Generator<number, never> {
  const soonMs = Math.max(firstMs, reconnectTimeoutMs * part);
  let ms = firstMs;
  for (let count = 1; ; count++) {
    yield ms;
    ms = Math.min(2 * ms, count < soon ? soonMs : longestMs);
  }
}
