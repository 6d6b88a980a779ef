/**
 * Keeps the process alive while a caller waits: a referenced timer that never fires does that.
 */
import { timers } from "../shared/machine/timers.ts";

const longestMs: number = 2 ** 31 - 1;

export class KeepAlive {
  readonly #timer: NodeJS.Timeout = timers.setInterval(() => undefined, longestMs).unref();

  set(isAlive: boolean): void {
    if (isAlive) this.#timer.ref();
    else this.#timer.unref();
  }

  close(): void {
    timers.clearInterval(this.#timer);
  }
}
