/**
 * A conversation between two runtimes over one channel: calls in both directions, answers, fetches, reference counts.
 *
 * Owns the pending table (every pending entry settles exactly once: by result, failure or loss of the peer), the gathering of
 * one turn's messages into one batch, and credit: at most `maxCalls` calls (twice an actor's concurrency, if that is more) and `maxBytes` of arguments are
 * unanswered; the caller keeps the rest. Knows nothing of actors, retries or values.
 */
import type { Encoded } from "../protocol/codec.ts";
import {
  type Batch,
  BatchReader,
  BatchWriter,
  type Message,
  type Route,
} from "../protocol/messages.ts";
import { assertNever, type DeathCause } from "../shared/errors.ts";
import { Fifo } from "../shared/fifo.ts";
import { type Pending, PendingTable } from "./pending-table.ts";
import { brokenChannel, type Channel } from "../transport/channel.ts";

export type CallMessage = Extract<Message, { kind: "call" }>;

/** What the owner of a session does with what arrives. */
export interface SessionReceiver {
  onCall(call: CallMessage, session: Session): void;
  onFetch(id: number, objectId: string, session: Session): void;
  onReference(objectId: string, holder: string, change: number): void;
  /** References are about to leave inside a value. */
  onExport(references: readonly object[]): void;
}

export interface CreditLimits {
  readonly maxCalls: number;
  readonly maxBytes: number;
}

/** More than any default concurrency (1,000), so that calls which wait for each other all reach the actor; 16 MiB of small arguments. */
export const defaultCredit: CreditLimits = { maxCalls: 4096, maxBytes: 16 * 1024 * 1024 };

/** A batch leaves early at this size, so that the other side starts while this one still writes (measured in bench/). */
const earlyFlushBytes = 8 * 1024;

/** So do answers after this time: a turn of slow methods must not hold back the answer of the first. */
const earlyFlushMs = 1;

interface CreditWaiter {
  readonly maxConcurrency: number;
  readonly resume: () => void;
}

export class Session {
  readonly peerId: string;
  /** Resolves after everything pending was told of the loss. */
  readonly closed: Promise<DeathCause>;
  readonly #channel: Channel;
  readonly #receiver: SessionReceiver;
  readonly #credit: CreditLimits;
  readonly #writer: BatchWriter = new BatchWriter();
  readonly #reader: BatchReader = new BatchReader();
  readonly #pending: PendingTable = new PendingTable();
  readonly #creditWaiters: Fifo<CreditWaiter> = new Fifo();
  #bytes = 0;
  #lapSince = 0;
  #unsentMs = 0;
  #state: "open" | "flush-scheduled" | "receiving" | "closed" = "open";

  constructor(
    peerId: string,
    channel: Channel,
    receiver: SessionReceiver,
    credit: CreditLimits = defaultCredit,
  ) {
    this.peerId = peerId;
    this.#channel = channel;
    this.#receiver = receiver;
    this.#credit = credit;
    this.closed = channel.closed.then((reason) => {
      this.#lose(reason);
      return reason;
    });
    channel.onMessage((batch) => this.#receive(batch));
  }

  get isOpen(): boolean {
    return this.#state !== "closed" && this.#channel.isOpen;
  }

  /** Calls that were sent and not answered. */
  get pendingCalls(): number {
    return this.#pending.size;
  }

  hasCredit(maxConcurrency: number): boolean {
    // Calls that may run together may wait for each other: they all go, whatever their size.
    if (this.#pending.size < 2 * maxConcurrency) return true;
    return (
      this.#pending.size < Math.max(this.#credit.maxCalls, 2 * maxConcurrency) &&
      this.#bytes < this.#credit.maxBytes
    );
  }

  /** Calls back once when there is credit again, or the session is closed. */
  whenCredit(maxConcurrency: number, resume: () => void): void {
    this.#creditWaiters.push({ maxConcurrency, resume });
  }

  call(route: Route, args: Encoded, dependencies: readonly Encoded[], pending: Pending): void {
    this.#export(args);
    for (const dependency of dependencies) this.#export(dependency);
    const id = this.#pending.add(pending);
    const bytes = this.#send({ kind: "call", id, route, arguments: args, dependencies });
    this.#pending.charge(id, bytes);
    this.#bytes += bytes;
  }

  fetch(objectId: string, pending: Pending): void {
    this.#send({ kind: "fetch", id: this.#pending.add(pending), objectId });
  }

  answer(id: number, value: Encoded): void {
    if (this.#state === "closed") return;
    this.#export(value);
    this.#send({ kind: "result", id, value });
    this.#flushIfLate();
  }

  answerFailure(id: number, error: Encoded): void {
    if (this.#state === "closed") return;
    this.#export(error);
    this.#send({ kind: "failure", id, error });
    this.#flushIfLate();
  }

  changeReference(objectId: string, holder: string, change: number): void {
    if (this.#state === "closed") return;
    this.#send({ kind: "reference", objectId, holder, change });
  }

  /** Milliseconds since it was last asked, or since the batch came: how long the method that just ran took, with one look at the clock. */
  lap(): number {
    const now = performance.now();
    const ms = now - this.#lapSince;
    this.#lapSince = now;
    this.#unsentMs += ms;
    return ms;
  }

  /** Sends what was gathered, without waiting for the end of the turn. */
  flush(): void {
    if (this.#state === "closed") return;
    if (this.#state === "flush-scheduled") this.#state = "open";
    if (this.#writer.length > 0) this.#post();
  }

  close(reason: DeathCause): void {
    if (this.#state !== "closed") this.flush();
    this.#channel.close(reason);
  }

  #send(message: Message): number {
    const bytes = this.#writer.write(message);
    if (this.#writer.length > earlyFlushBytes) {
      this.#post();
    } else if (this.#state === "open") {
      // The end of the turn: after nextTick come no more promise reactions of it.
      this.#state = "flush-scheduled";
      process.nextTick(() => this.#endTurn());
    }
    return bytes;
  }

  /** A channel that is closed already has told nobody yet: what is pending is about to be lost. */
  #post(): void {
    const batch = this.#writer.take();
    if (this.#channel.isOpen) this.#channel.send(batch);
  }

  #flushIfLate(): void {
    if (this.#unsentMs <= earlyFlushMs) return;
    this.#unsentMs = 0;
    this.flush();
  }

  #endTurn(): void {
    if (this.#state === "closed") return;
    this.#state = "open";
    this.flush();
  }

  #export(value: Encoded): void {
    if (value.references !== undefined && value.references.length > 0) {
      this.#receiver.onExport(value.references);
    }
  }

  #receive(batch: Batch): void {
    if (this.#state === "closed") return;
    this.#state = "receiving";
    this.#lapSince = performance.now();
    this.#unsentMs = 0;
    try {
      this.#reader.read(batch, (message) => this.#onMessage(message));
    } catch (error) {
      return this.#channel.close(brokenChannel(error));
    }
    this.#endTurn();
  }

  #onMessage(message: Message): void {
    switch (message.kind) {
      case "result":
        this.#take(message.id)?.resolve(message.value);
        break;
      case "failure":
        this.#take(message.id)?.reject(message.error);
        break;
      case "call":
        this.#receiver.onCall(message, this);
        break;
      case "fetch":
        this.#receiver.onFetch(message.id, message.objectId, this);
        break;
      case "reference":
        this.#receiver.onReference(message.objectId, message.holder, message.change);
        break;
      default:
        assertNever(message);
    }
  }

  #take(id: number): Pending | undefined {
    const pending = this.#pending.take(id);
    if (pending === undefined) return undefined;
    this.#bytes -= this.#pending.bytesOf(id);
    if (this.#creditWaiters.size > 0) this.#resumeWaiters();
    return pending;
  }

  /** In order of asking, as long as there is credit: one that uses it up ends the loop. */
  #resumeWaiters(): void {
    for (;;) {
      const first = this.#creditWaiters.peek();
      if (first === undefined || !this.hasCredit(first.maxConcurrency)) return;
      this.#creditWaiters.shift();
      first.resume();
    }
  }

  #lose(reason: DeathCause): void {
    this.#state = "closed";
    this.#bytes = 0;
    for (const pending of this.#pending.takeAll()) pending.lose(reason);
    for (const { resume } of this.#creditWaiters.drain()) resume();
  }
}
