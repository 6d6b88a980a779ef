/**
 * The batches that arrive in a session, one after the other: those that `poll` took in come before
 * the one that arrives now.
 */
import { BatchReader } from "../../protocol/frames/batch-reader.ts";
import type { Batch, Message } from "../../protocol/message.ts";
import { RaySystemError } from "../../shared/errors.ts";
import { brokenChannel, type Channel } from "../../transport/channel.ts";
import type { Outbox } from "./outbox.ts";
import type { PartTransfers } from "./part-transfers.ts";
import { timers } from "../../shared/machine/timers.ts";

export interface IncomingBatchesParts {
  readonly channel: Channel;
  readonly outbox: Outbox;
  readonly parts: PartTransfers;
  readonly onMessage: (message: Message) => void;
  /** A call is cancelled by a batch that has its turn later. */
  readonly onCancelAhead: (id: number, recursive: boolean) => void;
}

export class IncomingBatches {
  readonly #parts: IncomingBatchesParts;
  readonly #reader: BatchReader = new BatchReader();
  /** Batches that `poll` took in, to be handled in their turn. */
  #polled: Batch[] = [];
  #afterBatch: (() => void) | undefined;

  constructor(parts: IncomingBatchesParts) {
    this.#parts = parts;
  }

  receive(batch: Batch): void {
    if (this.#polled.length === 0) this.#read(batch);
    else this.#polled.push(batch);
    this.#receiveNext();
  }

  /**
   * Takes in what has arrived while this thread was held: cancellations count at once, the rest
   * has its turn later.
   */
  poll(): void {
    const { channel, outbox, onCancelAhead } = this.#parts;
    const batches = channel.poll?.() ?? [];
    if (batches.length === 0 || outbox.isClosed) return;
    if (this.#polled.length === 0 && !outbox.isReceiving) {
      timers.nextTick(() => this.#receiveNext());
    }
    this.#polled.push(...batches);
    const reader = new BatchReader(true);
    for (const batch of batches) {
      try {
        reader.read(batch, (message) => {
          if (message.kind === "cancel") onCancelAhead(message.id, message.recursive);
        });
      } catch {
        // It is read again in its turn, and ends the channel then.
        return;
      }
    }
  }

  /** Calls back once, after the batch that is being read; at once if none is. */
  afterBatch(then: () => void): void {
    if (this.#parts.outbox.isReceiving) this.#afterBatch = then;
    else then();
  }

  #receiveNext(): void {
    while (this.#polled.length > 0) {
      const next = this.#polled.shift();
      if (next !== undefined) this.#read(next);
    }
  }

  #read(batch: Batch): void {
    const { channel, outbox, parts, onMessage } = this.#parts;
    if (outbox.isClosed) return;
    outbox.beginReceiving();
    try {
      if (batch.part === undefined) this.#reader.read(batch, onMessage);
      else this.#readWhole(batch.part.id, parts.arrived(batch.part));
    } catch (error) {
      return channel.close(brokenChannel(error));
    } finally {
      const then = this.#afterBatch;
      this.#afterBatch = undefined;
      then?.();
    }
    outbox.endTurn();
  }

  /** @throws RaySystemError for a value that is no answer to the fetch */
  #readWhole(id: number, batch: Batch | undefined): void {
    if (batch === undefined) return;
    this.#reader.read(batch, (message) => {
      if (message.kind !== "result" || message.id !== id) {
        throw new RaySystemError(`the parts of ${id} are no answer to it`);
      }
      this.#parts.onMessage(message);
    });
  }
}
