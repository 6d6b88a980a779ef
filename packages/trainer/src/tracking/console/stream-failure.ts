/**
 * Notices that a stream takes nothing more: its reader has gone (`| head`), or its disk is full.
 * Such an error is an event of the stream, and ends the process where nobody listens.
 */

import type { WriteStream } from "node:tty";

export class StreamFailure {
  readonly #stream: WriteStream;
  #error: Error | undefined;
  readonly #onError = (error: Error): void => {
    this.#error ??= error;
  };

  constructor(stream: WriteStream) {
    this.#stream = stream;
    stream.on("error", this.#onError);
  }

  /** Throws the first error of the stream. */
  check(): void {
    if (this.#error !== undefined) throw this.#error;
  }

  /** Throws the first error of the stream. Call it when all is written. */
  close(): void {
    // A stream that failed may say so once more.
    if (this.#error === undefined) this.#stream.off("error", this.#onError);
    this.check();
  }
}
