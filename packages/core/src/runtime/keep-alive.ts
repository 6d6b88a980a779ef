/**
 * Keeps the process alive while a caller waits: a referenced timer that never fires does that.
 */
const longestMs: number = 2 ** 31 - 1;

export class KeepAlive {
  readonly #timer: NodeJS.Timeout = setInterval(() => undefined, longestMs).unref();

  set(isAlive: boolean): void {
    if (isAlive) this.#timer.ref();
    else this.#timer.unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
