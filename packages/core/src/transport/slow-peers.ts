/**
 * How slow a peer may be in the middle of a frame: one that sends a byte now and then holds a connection, and memory, for nothing.
 *
 * Judged by progress, not by the clock: a frame may take for ever as long as it comes at the least rate. Silence says little, for a thread that
 * computes does not write either: of a gap only its first part counts, so that many bytes with long gaps between are slow, and one long gap is not.
 * Who is silent for very long is gone. Between frames anybody may be silent.
 */
import { RaySystemError } from "../shared/errors.ts";

export interface PeerLimits {
  /** How far behind the least rate a frame may be. */
  readonly graceMs: number;
  readonly leastBytesPerSecond: number;
  /** So much of a gap counts. */
  readonly gapMs: number;
  readonly silentMs: number;
}

/** The last one is how long a holder waits for a value (caller/located.ts). */
export const peerPace: PeerLimits = {
  graceMs: 10_000,
  leastBytesPerSecond: 1024,
  gapMs: 2000,
  silentMs: 10 * 60 * 1000,
};

/** The peer did not go on, or not fast enough: what it was about to say is not known. */
export class SlowFrameError extends RaySystemError {}

/** Of the frame that is under way. */
export class FrameRate {
  readonly #pace: PeerLimits;
  #frame = -1;
  #lateMs = 0;
  #lastMs = 0;

  constructor(pace: PeerLimits) {
    this.#pace = pace;
  }

  /** Since bytes came last. */
  get silentMs(): number {
    return performance.now() - this.#lastMs;
  }

  /** So many bytes came, and the frame of that number is not whole. @throws SlowFrameError when it is too slow */
  came(frame: number, bytes: number): void {
    const { graceMs, leastBytesPerSecond, gapMs } = this.#pace;
    const now = performance.now();
    if (frame !== this.#frame) {
      this.#frame = frame;
      this.#lateMs = 0;
    } else {
      const gap = Math.min(gapMs, now - this.#lastMs);
      this.#lateMs = Math.max(0, this.#lateMs + gap - (1000 * bytes) / leastBytesPerSecond);
    }
    this.#lastMs = now;
    if (this.#lateMs > graceMs) {
      throw new SlowFrameError(
        `a frame that comes at less than ${leastBytesPerSecond} bytes a second`,
      );
    }
  }
}
