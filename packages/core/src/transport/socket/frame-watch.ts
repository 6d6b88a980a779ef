/** Watches a peer in the middle of a frame: it may be neither too slow nor silent. */
import { FrameRate, type PeerLimits, SlowFrameError } from "./slow-peers.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface FrameWatchParts {
  /** The least speed of the peer. */
  readonly rate: PeerLimits;
  /** Whether a frame is under way and is read: without a receiver the delay is this side's own. */
  readonly isUnderWay: () => "read" | "unread" | undefined;
  readonly onSlow: (error: unknown) => void;
}

export class FrameWatch {
  readonly #parts: FrameWatchParts;
  #frameRate: FrameRate | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: FrameWatchParts) {
    this.#parts = parts;
  }

  /** A chunk has ended in the middle of that frame. */
  unfinished(frame: number, bytes: number): void {
    const { rate, onSlow } = this.#parts;
    this.#frameRate ??= new FrameRate(rate);
    try {
      this.#frameRate.came(frame, bytes);
    } catch (error) {
      return onSlow(error);
    }
    this.#timer ??= timers.setTimeout(() => this.#lookForSilence(), rate.silentMs).unref();
  }

  end(): void {
    timers.clearTimeout(this.#timer);
  }

  /** One timer suffices while frames come in pieces. */
  #lookForSilence(): void {
    this.#timer = undefined;
    const { rate, isUnderWay, onSlow } = this.#parts;
    const state = isUnderWay();
    if (state === undefined) return;
    const silentMs = state === "unread" ? 0 : (this.#frameRate?.silentMs ?? 0);
    const leftMs = rate.silentMs - silentMs;
    if (leftMs > 0) {
      this.#timer = timers.setTimeout(() => this.#lookForSilence(), Math.ceil(leftMs)).unref();
      return;
    }
    // A thread that was held itself first reads what has arrived meanwhile.
    timers.setImmediate(() => {
      const isSilent = (this.#frameRate?.silentMs ?? 0) >= rate.silentMs;
      if (!isSilent) return this.#lookForSilence();
      onSlow(new SlowFrameError("a frame began and did not continue"));
    });
  }
}
