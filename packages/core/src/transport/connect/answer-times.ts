/**
 * Computes how long a reached peer has to answer over one connection before the dialler tries
 * another one.
 *
 * An accepted connection may have lost its other end, so the next one may be better, and the peer
 * waits for it only as long as a cut may last. But a busy host accepts none of them until it has
 * time, and each abandoned one fills its backlog. So the first attempts follow quickly, as many as
 * a few cuts may need, and later ones ever more rarely.
 */

/** The first time, in ms; it doubles. */
const firstMs = 800;
const longestMs = 60_000;
/** This many attempts may follow quickly. */
const soon = 20;
/** The longest quick time, as a fraction of the longest cut. */
const part = 1 / 16;

export function* answerTimes(reconnectTimeoutMs: number): Generator<number, never> {
  const soonMs = Math.max(firstMs, reconnectTimeoutMs * part);
  let ms = firstMs;
  for (let count = 1; ; count++) {
    yield ms;
    ms = Math.min(2 * ms, count < soon ? soonMs : longestMs);
  }
}
