/**
 * Who waits for resources. Requests for the same wait in one line, and only the first of a line is looked at: 100,000 waiting tasks cost
 * as much as one.
 *
 * Invariant: between two turns nobody at the head of a line could be served. So `serve` is called after every change that frees
 * something; it goes by the order of request, and what does not fit is overtaken by what does.
 */
import type { Amounts } from "../rpc/demand.ts";
import { Line as Queue } from "../shared/text/line.ts";
import { warn } from "../shared/text/warning.ts";

/** Why somebody has to wait; `feasible` false: no node has as much even when idle. */
export interface Why {
  readonly feasible: boolean;
  readonly reason: string;
}

export interface Waiter {
  /** The order of request. */
  readonly sequence: number;
  /** Names the requester to people. */
  readonly label: string;
  readonly wants: readonly Amounts[];
  readonly sinceMs: number;
  /** Serves or refuses it, or says why it has to wait. */
  readonly attempt: () => Why | undefined;
  readonly close: (error: Error) => void;
}

/** A place in a line. */
export interface Entry {
  leave(): void;
  /** Why it waits; undefined when it does not. */
  readonly reason: string | undefined;
}

/** One that waits, for whoever asks why. */
export interface PendingRequest {
  readonly label: string;
  readonly wants: readonly Amounts[];
  readonly sinceMs: number;
  readonly feasible: boolean;
  readonly reason: string;
}

/** One line, for whoever asks what is wanted. */
export interface PendingLine extends PendingRequest {
  readonly size: number;
}

interface Line {
  readonly key: string;
  readonly waiters: Queue<Waiter>;
  why: Why;
  warned: boolean;
}

export class Lines {
  readonly #lines: Map<string, Line> = new Map();

  /** Is served at once, unless somebody with the same key waits already. */
  enter(key: string, waiter: Waiter): Entry {
    let line = this.#lines.get(key);
    if (line === undefined) {
      const why = waiter.attempt();
      if (why === undefined) return served;
      line = { key, waiters: new Queue(), why, warned: false };
      this.#lines.set(key, line);
      warnOfLack(line, waiter);
    }
    return this.#entry(line, line.waiters.add(waiter));
  }

  serve(): void {
    // The first in order of request is at the end.
    const heads = [...this.#lines.values()].toSorted(later);
    for (let line = heads.pop(); line !== undefined; line = heads.pop()) {
      const waiter = line.waiters.peek() as Waiter;
      const why = waiter.attempt();
      if (why !== undefined) {
        line.why = why;
        warnOfLack(line, waiter);
        continue;
      }
      line.waiters.shift();
      if (line.waiters.size === 0) this.#lines.delete(line.key);
      else heads.splice(placeOf(line, heads), 0, line);
    }
  }

  pending(): readonly PendingRequest[] {
    return [...this.#lines.values()]
      .flatMap((line) =>
        [...line.waiters.entries()].map(([, waiter]) => ({ ...waiter, ...line.why })),
      )
      .toSorted((left, right) => left.sequence - right.sequence)
      .map(({ label, wants, sinceMs, feasible, reason }) => ({
        label,
        wants,
        sinceMs,
        feasible,
        reason,
      }));
  }

  /** Each line by its first, in order of request. */
  heads(): readonly PendingLine[] {
    return [...this.#lines.values()]
      .toSorted((left, right) => later(right, left))
      .map((line) => {
        const { label, wants, sinceMs } = line.waiters.peek() as Waiter;
        const { feasible, reason } = line.why;
        return { label, wants, sinceMs, feasible, reason, size: line.waiters.size };
      });
  }

  /** Why the first of a line waits; undefined when nobody has that key. */
  reasonOf(key: string): string | undefined {
    return this.#lines.get(key)?.why.reason;
  }

  close(error: Error): void {
    const lines = [...this.#lines.values()];
    this.#lines.clear();
    for (const { waiters } of lines) {
      for (const [, waiter] of waiters.entries()) waiter.close(error);
    }
  }

  #entry(line: Line, place: number): Entry {
    return {
      leave: () => {
        line.waiters.take(place);
        // Another line may have begun under this key since.
        if (line.waiters.size === 0 && this.#lines.get(line.key) === line) {
          this.#lines.delete(line.key);
        }
      },
      get reason() {
        return line.waiters.has(place) ? line.why.reason : undefined;
      },
    };
  }
}

const served: Entry = { leave: () => undefined, reason: undefined };

function later(left: Line, right: Line): number {
  return sequenceOf(right) - sequenceOf(left);
}

function sequenceOf({ waiters }: Line): number {
  return (waiters.peek() as Waiter).sequence;
}

/** Where a line belongs among those that are still to be looked at, the latest first. */
function placeOf(line: Line, heads: readonly Line[]): number {
  const sequence = sequenceOf(line);
  let [low, high] = [0, heads.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sequenceOf(heads[middle] as Line) > sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

function warnOfLack(line: Line, { label }: Waiter): void {
  if (line.why.feasible || line.warned) return;
  line.warned = true;
  warn(`${label} ${line.why.reason} and waits until a node has as much`);
}
