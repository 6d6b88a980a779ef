/** Received batches: how many there are, when data last came, and what the peer has heard of it. */
import type { Batch } from "../../protocol/message.ts";
import { clockMs } from "../../shared/clock.ts";
import { receivedWord } from "./link-words.ts";
import { timers } from "../../shared/machine/timers.ts";

/** A side that receives data acknowledges it at least this often, in ms. */
const sayMs = 1000;
/** Received batches are acknowledged after this many batches, bytes or ms. */
const acknowledge = { batches: 64, bytes: 256 * 1024, ms: 50 };

export class Receipts {
  readonly #send: (word: Uint8Array) => void;
  #received = 0;
  #acknowledged = 0;
  #unacknowledgedBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When data last arrived. */
  #heardAt = 0;
  /** When this side last acknowledged. */
  #saidAt = 0;

  /** @param send sends a control word over the connection, if there is one */
  constructor(send: (word: Uint8Array) => void) {
    this.#send = send;
  }

  /** The number of received batches. */
  get count(): number {
    return this.#received;
  }

  /** When data last arrived from the peer, by clockMs(). */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** Milliseconds since data last arrived from the peer. */
  get silentMs(): number {
    return clockMs() - this.#heardAt;
  }

  /** Another connection is there, whose first words said how much has arrived. */
  attached(): void {
    this.#heardAt = clockMs();
    this.#saidAt = this.#heardAt;
    this.#acknowledged = this.#received;
    this.#unacknowledgedBytes = 0;
  }

  /** Bytes came, perhaps in the middle of a big frame. */
  heardBytes(): void {
    const now = clockMs();
    this.#heardAt = now;
    if (now - this.#saidAt >= sayMs) this.say();
  }

  add(batch: Batch): void {
    this.#received += 1;
    this.#unacknowledgedBytes += batch.bytes.length + (batch.part?.data.length ?? 0);
    for (const { byteLength } of batch.buffers) this.#unacknowledgedBytes += byteLength;
    const isMuch =
      this.#received - this.#acknowledged >= acknowledge.batches ||
      this.#unacknowledgedBytes >= acknowledge.bytes;
    if (isMuch) return this.#acknowledge();
    this.#timer ??= timers.setTimeout(() => this.#acknowledge(), acknowledge.ms).unref();
  }

  /** Tells the peer how much has arrived. */
  say(): void {
    this.#saidAt = clockMs();
    this.#acknowledged = this.#received;
    this.#unacknowledgedBytes = 0;
    this.#send(receivedWord(this.#received));
  }

  /** Stops the timer. */
  end(): void {
    timers.clearTimeout(this.#timer);
  }

  #acknowledge(): void {
    timers.clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#acknowledged !== this.#received) this.say();
  }
}
