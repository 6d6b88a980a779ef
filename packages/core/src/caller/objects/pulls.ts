/**
 * Bounds how many bytes of other runtimes' values are on their way into this one: a value that
 * comes in parts waits until there is room for it. A value beyond the bound comes alone.
 *
 * A peer from which no part arrives for a while (its thread never goes on, its process is stopped)
 * keeps nobody waiting: its values take no room until a part arrives again, and nothing more is
 * begun with it before that.
 */
import type { Room } from "../../rpc/session/part-transfers.ts";
import { clockMs } from "../../shared/clock.ts";
import { Fifo } from "../../shared/fifo.ts";
import { timers } from "../../shared/machine/timers.ts";

interface Waiting {
  readonly peer: object;
  readonly bytes: number;
  readonly begin: (room: Room) => void;
}

/** One that sends something. */
interface Sender {
  /** Bytes of the values that it sends. */
  bytes: number;
  pulls: number;
  cameAt: number;
  /** Requests to it that wait while nothing arrives. */
  stalled: Waiting[] | undefined;
}

export class Pulls {
  readonly #limitBytes: number;
  readonly #stalledAfterMs: number;
  readonly #waiting: Fifo<Waiting> = new Fifo();
  readonly #senders: Map<object, Sender> = new Map();
  /** Bytes of the senders that are not stalled. */
  #bytes = 0;
  #isBeginning = false;
  #watch: NodeJS.Timeout | undefined;

  constructor(limitBytes: number, stalledAfterMs = 5000) {
    this.#limitBytes = limitBytes;
    this.#stalledAfterMs = stalledAfterMs;
  }

  /** In order of asking, but for what stalled peers send. `begin` is called once, now or later. */
  take(peer: object, bytes: number, begin: (room: Room) => void): void {
    this.#waiting.push({ peer, bytes, begin });
    this.#next();
  }

  #next(): void {
    // Not within itself: of a peer that is gone each one ends where it begins.
    if (this.#isBeginning) return;
    this.#isBeginning = true;
    try {
      for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
        const sender = this.#senders.get(next.peer);
        const isStalled = sender?.stalled !== undefined;
        if (!isStalled && this.#bytes > 0 && this.#bytes + next.bytes > this.#limitBytes) break;
        this.#waiting.shift();
        if (isStalled) sender.stalled?.push(next);
        else this.#begin(next, sender);
      }
    } finally {
      this.#isBeginning = false;
    }
    if (this.#waiting.size > 0) this.#watchSenders();
  }

  #begin({ peer, bytes, begin }: Waiting, known: Sender | undefined): void {
    const sender = known ?? { bytes: 0, pulls: 0, cameAt: clockMs(), stalled: undefined };
    this.#senders.set(peer, sender);
    sender.pulls += 1;
    sender.bytes += bytes;
    this.#bytes += bytes;
    let hasEnded = false;
    begin({
      came: () => {
        sender.cameAt = clockMs();
        if (sender.stalled === undefined) return;
        this.#bytes += sender.bytes;
        this.#goOn(sender);
      },
      end: () => {
        if (hasEnded) return;
        hasEnded = true;
        sender.pulls -= 1;
        sender.bytes -= bytes;
        if (sender.stalled === undefined) this.#bytes -= bytes;
        if (sender.pulls > 0) return this.#next();
        // A stalled sender without values is gone: requests that wait for it fail when they are
        // begun.
        // begun.
        this.#senders.delete(peer);
        this.#goOn(sender);
      },
    });
  }

  #goOn(sender: Sender): void {
    for (const waiting of sender.stalled ?? []) this.#waiting.push(waiting);
    sender.stalled = undefined;
    this.#next();
  }

  #watchSenders(): void {
    if (this.#watch !== undefined) return;
    let first = Infinity;
    for (const { stalled, cameAt } of this.#senders.values()) {
      if (stalled === undefined) first = Math.min(first, cameAt + this.#stalledAfterMs);
    }
    const ms = Math.max(0, Math.ceil(first - clockMs()));
    this.#watch = timers.setTimeout(() => {
      // After what has arrived meanwhile is read: it may be this thread that did not go on.
      timers.setImmediate(() => {
        this.#watch = undefined;
        this.#passOverStalled();
      });
    }, ms);
    this.#watch.unref();
  }

  #passOverStalled(): void {
    if (this.#waiting.size === 0) return;
    const now = clockMs();
    for (const sender of this.#senders.values()) {
      if (sender.stalled !== undefined || now - sender.cameAt < this.#stalledAfterMs) continue;
      sender.stalled = [];
      this.#bytes -= sender.bytes;
    }
    this.#next();
  }
}
