/**
 * The queues of requests that wait for resources. Equal requests wait in one line, and only the
 * first of a line is examined: 100,000 waiting tasks cost as much as one.
 *
 * Invariant: between two turns no line's first request could be served. So `serve` runs after every
 * change that frees something. It follows the order of the requests, and a request that does not
 * fit is overtaken by one that does.
 */
import type { Amounts } from "../rpc/resource-demand.ts";
import { Line as Queue } from "../shared/waiting-line.ts";
import { warn } from "../shared/text/warning.ts";
import { present } from "../shared/errors/internal.ts";

/** The reason for a wait. If `feasible` is false, no node has as much even when idle. */
export interface Why {
  readonly feasible: boolean;
  readonly reason: string;
}

export interface Waiter {
  /** Its turn among all requests. */
  readonly sequence: number;
  /** Names the requester to people. */
  readonly label: string;
  readonly wants: readonly Amounts[];
  readonly sinceMs: number;
  /** Serves or refuses the request, or returns why it has to wait. */
  readonly attempt: () => Why | undefined;
  readonly close: (error: Error) => void;
}

/** A place in a line. */
export interface Entry {
  leave(): void;
  /** The reason for the wait; undefined when it is over. */
  readonly reason: string | undefined;
}

/** A waiting request, as the state API shows it. */
export interface PendingRequest {
  readonly label: string;
  readonly wants: readonly Amounts[];
  readonly sinceMs: number;
  readonly feasible: boolean;
  readonly reason: string;
}

/** A line, as the state API shows it. */
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

  /** Serves a request at once, unless another one with its key already waits. */
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
      const waiter = firstOf(line);
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

  /** Returns each line with its first request, in order of request. */
  heads(): readonly PendingLine[] {
    return [...this.#lines.values()]
      .toSorted((left, right) => later(right, left))
      .map((line) => {
        const { label, wants, sinceMs } = firstOf(line);
        const { feasible, reason } = line.why;
        return { label, wants, sinceMs, feasible, reason, size: line.waiters.size };
      });
  }

  /** Returns why the first request of a line waits; undefined when the key has no line. */
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

/** A line without requests does not stay. */
function firstOf({ waiters }: Line): Waiter {
  return present(waiters.peek(), "request of a line");
}

const served: Entry = { leave: () => undefined, reason: undefined };

function later(left: Line, right: Line): number {
  return sequenceOf(right) - sequenceOf(left);
}

function sequenceOf(line: Line): number {
  return firstOf(line).sequence;
}

/** Finds the place of a line among the remaining ones, the latest first. */
function placeOf(line: Line, heads: readonly Line[]): number {
  const sequence = sequenceOf(line);
  let [low, high] = [0, heads.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sequenceOf(present(heads[middle], "line")) > sequence) low = middle + 1;
    else high = middle;
  }
  return low;
}

function warnOfLack(line: Line, { label }: Waiter): void {
  if (line.why.feasible || line.warned) return;
  line.warned = true;
  warn(`${label} ${line.why.reason} and waits until a node has as much`);
}
