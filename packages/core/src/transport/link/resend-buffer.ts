/** Sent batches without an acknowledgement: after a cut they are sent again. */
import type { Batch } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { Fifo } from "../../shared/fifo.ts";
import { unreadBytesOf } from "../socket/socket-writer.ts";

export class ResendBuffer {
  /** The name of the peer, for messages to people. */
  readonly #peer: string;
  readonly #maxBytes: number;
  readonly #kept: Fifo<Batch> = new Fifo();
  /** The number of the first kept batch. */
  #keptFrom = 0;
  /** The bytes of the kept batches, without big buffers. */
  #keptBytes = 0;
  #drainWaiters: (() => void)[] = [];

  /** @param maxBytes the most bytes that may be kept, without big buffers */
  constructor(peer: string, maxBytes: number) {
    this.#peer = peer;
    this.#maxBytes = maxBytes;
  }

  get isEmpty(): boolean {
    return this.#kept.size === 0;
  }

  /** Whether more is kept than may be. */
  get isOverfull(): boolean {
    return this.#keptBytes > this.#maxBytes;
  }

  /** Returns the error of a link that keeps too much. */
  overfull(): RaySystemError {
    return new RaySystemError(
      `${this.#peer} has not acknowledged more than ${this.#maxBytes} bytes`,
    );
  }

  add(batch: Batch): void {
    this.#kept.push(batch);
    this.#keptBytes += unreadBytesOf(batch);
  }

  /** Returns the kept batches, the oldest first. */
  all(): Iterable<Batch> {
    return this.#kept;
  }

  /**
   * Drops the batches that the peer has.
   *
   * @throws RaySystemError when the peer claims more than was sent, or less than it acknowledged
   * before
   */
  drop(received: number): void {
    const sent = this.#keptFrom + this.#kept.size;
    if (!Number.isSafeInteger(received) || received < this.#keptFrom || received > sent) {
      throw new RaySystemError(
        `${this.#peer} acknowledged ${received} batches: it had ${this.#keptFrom} and was sent ${sent}`,
      );
    }
    for (; this.#keptFrom < received; this.#keptFrom++) {
      const batch = this.#kept.shift();
      if (batch !== undefined) this.#keptBytes -= unreadBytesOf(batch);
    }
    if (this.#kept.size === 0) this.#wakeWaiters();
  }

  /** Resolves when nothing is kept. */
  drained(): Promise<void> {
    if (this.isEmpty) return Promise.resolve();
    return new Promise((resolve) => this.#drainWaiters.push(resolve));
  }

  /** Drops everything: the link has ended. */
  end(): void {
    this.#kept.drain();
    this.#wakeWaiters();
  }

  #wakeWaiters(): void {
    if (this.#drainWaiters.length === 0) return;
    const waiters = this.#drainWaiters;
    this.#drainWaiters = [];
    for (const waiter of waiters) waiter();
  }
}
