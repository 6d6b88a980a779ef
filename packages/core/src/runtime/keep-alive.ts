/**
 * Keeps the process alive while a caller waits, and while the session ends: a referenced timer that
 * never fires does that.
 */
import { timers } from "../shared/machine/timers.ts";

const longestMs: number = 2 ** 31 - 1;

export class KeepAlive {
  readonly #timer: NodeJS.Timeout = timers.setInterval(() => undefined, longestMs).unref();
  #isHeld = false;

  /** Whether a caller waits. */
  set(isAlive: boolean): void {
    if (isAlive || this.#isHeld) this.#timer.ref();
    else this.#timer.unref();
  }

  /** Keeps the process alive until it is closed, also when nobody waits any more. */
  hold(): void {
    this.#isHeld = true;
    this.#timer.ref();
  }

  close(): void {
    timers.clearInterval(this.#timer);
  }
}
