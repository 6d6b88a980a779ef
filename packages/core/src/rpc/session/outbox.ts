/**
 * Messages that a session is about to send: those of one turn travel in one batch.
 *
 * A batch leaves at the end of the turn, or earlier when it is big or the turn takes long, so that
 * the other side starts while this one still works. A message that nothing else is about to follow
 * leaves at once, because the caller may go on with work of its own: a call while no other call is
 * unanswered, unless the calls before it came together, and any message after a pause.
 */
import { BatchWriter } from "../../protocol/frames/batch-writer.ts";
import type { Message } from "../../protocol/message.ts";
import { warnOfCopies } from "../../protocol/values/live-memory.ts";
import { clockMs } from "../../shared/clock.ts";
import type { Channel } from "../../transport/channel.ts";
import { timers } from "../../shared/machine/timers.ts";

/** A batch leaves early at this size (measured in bench/). */
const earlyFlushBytes = 8 * 1024;

/** A message leaves at once when the last batch was begun longer ago than this, in ms. */
const pauseMs = 2;

/** Answers leave early after this time: a slow method must not hold back the answer before it. */
const earlyFlushMs = 1;

export class Outbox {
  readonly #channel: Channel;
  readonly #writer: BatchWriter = new BatchWriter();
  #state: "open" | "flush-scheduled" | "receiving" | "closed" = "open";
  #lapSince = 0;
  #unsentMs = 0;
  #begunMs = 0;
  /** Whether the last batch of a turn had several messages: others may follow a first one. */
  #comeTogether = false;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  get isClosed(): boolean {
    return this.#state === "closed";
  }

  /** Whether a batch is being read, whose answers leave together at its end. */
  get isReceiving(): boolean {
    return this.#state === "receiving";
  }

  /**
   * Returns the bytes of the message.
   *
   * @param isAlone whether it is a call, and no other call is unanswered
   */
  send(message: Message, isAlone: boolean = false): number {
    const bytes = this.#writer.write(message);
    if (this.#writer.length > earlyFlushBytes) {
      this.#post();
    } else if (this.#state === "open") {
      if (this.#leavesAtOnce(isAlone)) this.#post();
      else this.#schedule();
    } else if (this.#state === "flush-scheduled") {
      this.#comeTogether = true;
    }
    return bytes;
  }

  /** Asked once for each batch. */
  #leavesAtOnce(isAlone: boolean): boolean {
    const before = this.#begunMs;
    this.#begunMs = clockMs();
    const isFirstOfMany = this.#comeTogether;
    this.#comeTogether = false;
    return (isAlone && !isFirstOfMany) || this.#begunMs - before > pauseMs;
  }

  #schedule(): void {
    this.#state = "flush-scheduled";
    // All promise reactions of a turn run before nextTick.
    timers.nextTick(() => this.endTurn());
  }

  /** A batch has arrived and is about to be read. */
  beginReceiving(): void {
    this.#state = "receiving";
    this.#lapSince = clockMs();
    this.#unsentMs = 0;
  }

  endTurn(): void {
    if (this.#state === "closed") return;
    this.#state = "open";
    this.flush();
  }

  /** The last lap, or when the batch arrived, as of clockMs(); now between batches. */
  get lapSinceMs(): number {
    return this.isReceiving ? this.#lapSince : clockMs();
  }

  /** Milliseconds since the last lap, or since the batch arrived; one reading of the clock. */
  lap(): number {
    const now = clockMs();
    const ms = now - this.#lapSince;
    this.#lapSince = now;
    this.#unsentMs += ms;
    return ms;
  }

  /** Sends what is gathered when the laps since the batch arrived took long. */
  flushIfLate(): void {
    if (this.#unsentMs <= earlyFlushMs) return;
    this.#unsentMs = 0;
    this.flush();
  }

  /** Sends what is gathered, without waiting for the end of the turn. */
  flush(): void {
    if (this.#state === "closed") return;
    if (this.#state === "flush-scheduled") this.#state = "open";
    if (this.#writer.length > 0) this.#post();
  }

  /** Nothing is sent from now on. */
  close(): void {
    this.#state = "closed";
  }

  /** A channel may be closed before its session hears of it: the batch is lost then. */
  #post(): void {
    const { live } = this.#writer;
    const batch = this.#writer.take();
    if (live !== undefined && this.#channel.takeParts !== undefined) warnOfCopies(live);
    if (this.#channel.isOpen) this.#channel.send(batch);
  }
}
