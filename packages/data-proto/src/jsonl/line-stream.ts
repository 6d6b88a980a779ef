/**
 * A stream that lines are written to; its owner opens and closes it. Written bytes cannot be read
 * back.
 */
import type { Writable } from "node:stream";
import { fileError } from "./file-error.ts";

export class LineStream {
  readonly path: string;
  readonly #stream: Writable;
  #wholeBytes = 0;

  constructor(stream: Writable) {
    this.path = "fd" in stream && stream.fd === 1 ? "standard output" : "a stream";
    this.#stream = stream;
  }

  get wholeBytes(): number {
    return this.#wholeBytes;
  }

  /** Rejects with JSONL_IO, also when the stream has no reader any more (EPIPE). */
  async write(bytes: Buffer): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // The callback may come without an error for a stream that was destroyed before.
    if (this.#stream.destroyed) throw fileError(this.path, new Error("it is closed"));
    this.#stream.write(bytes, (error) => {
      if (error === undefined || error === null) resolve();
      else reject(fileError(this.path, error));
    });
    await promise;
    this.#wholeBytes += bytes.length;
  }

  async checkPlace(): Promise<void> {}

  async verify(): Promise<void> {}

  async close(): Promise<void> {}
}
