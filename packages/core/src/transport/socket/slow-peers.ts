/**
 * Limits how slow a peer may be in the middle of a frame: a peer that sends a byte now and then
 * would hold a connection, and memory, for nothing.
 *
 * Progress decides, not the clock: a frame may take any time as long as it keeps the least rate. A
 * gap proves little, because a busy thread does not write: only the first part of each gap counts.
 * Thus a frame with many long gaps is slow, and a frame with one is not. A peer that is silent for
 * very long is gone. Between frames a peer may be silent.
 */
import { clockMs } from "../../shared/clock.ts";
import { RaySystemError } from "../../shared/errors.ts";

export interface PeerLimits {
  /** The most that a frame may lag behind the least rate, in ms. */
  readonly graceMs: number;
  readonly leastBytesPerSecond: number;
  /** The part of a gap that counts, in ms. */
  readonly gapMs: number;
  readonly silentMs: number;
}

/**
 * The last one is the time that a holder waits for a value
 * (caller/objects/results-at-their-host.ts).
 */
export const peerRate: PeerLimits = {
  graceMs: 10_000,
  leastBytesPerSecond: 1024,
  gapMs: 2000,
  silentMs: 10 * 60 * 1000,
};

/** The peer stopped in the middle of a frame, or was too slow; the rest of the frame is unknown. */
export class SlowFrameError extends RaySystemError {}

/** Measures the frame that is under way. */
export class FrameRate {
  readonly #rate: PeerLimits;
  #frame = -1;
  #lateMs = 0;
  #lastMs = 0;

  constructor(rate: PeerLimits) {
    this.#rate = rate;
  }

  /** The time since the last bytes, in ms. */
  get silentMs(): number {
    return clockMs() - this.#lastMs;
  }

  /**
   * Records bytes of an unfinished frame.
   *
   * @throws SlowFrameError when it is too slow
   */
  came(frame: number, bytes: number): void {
    const { graceMs, leastBytesPerSecond, gapMs } = this.#rate;
    const now = clockMs();
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
        `a frame arrived at less than ${leastBytesPerSecond} bytes per second`,
      );
    }
  }
}
