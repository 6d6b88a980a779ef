/**
 * Rows of the score cache that could not be written because another program holds the file's lock.
 *
 * They are written together when the lock is free, at growing intervals, so that nobody's thread
 * waits for it. Their size is bounded: a lock may be held for ever.
 */

import { setTimeout as delay } from "node:timers/promises";
import { fieldOf } from "@rayling/reward-manager-registry/values";
import { realClock } from "../time/clock.ts";
import type { Clock } from "../time/clock.ts";

export interface ScoreRow {
  readonly version: string;
  readonly sample: string;
  /** The result as JSON. */
  readonly text: string;
  /** When it was scored, as an ISO date. */
  readonly at: string;
}

export interface UnwrittenOptions {
  readonly clock?: Clock | undefined;
  /** The most characters of results that are kept for later. */
  readonly mostCharacters?: number | undefined;
  /** How long closing waits for the lock, in ms. */
  readonly closeMs?: number | undefined;
}

/** How many rows were never written, and why. */
export interface LostRows {
  readonly count: number;
  readonly reason: unknown;
}

/** The pause before the next attempt, in ms; it doubles up to the longest. */
const pauseMs = { first: 250, longest: 4_000 };
/** The pause between attempts while the cache is being closed, in ms. */
const closingPauseMs = 50;
/** Rows of a transaction: a thousand take some milliseconds. */
const rowsAtOnce = 1_000;

export class UnwrittenScores {
  readonly #write: (rows: readonly ScoreRow[]) => void;
  readonly #clock: Clock;
  readonly #mostCharacters: number;
  readonly #closeMs: number;
  readonly #rows: Map<string, ScoreRow> = new Map();
  #characters = 0;
  #lost = 0;
  #reason: unknown;
  #pauseMs = pauseMs.first;
  #cancel: (() => void) | undefined;

  /** @param write writes all of the rows or throws */
  constructor(
    write: (rows: readonly ScoreRow[]) => void,
    { clock = realClock, mostCharacters = 2 ** 25, closeMs = 10_000 }: UnwrittenOptions,
  ) {
    this.#write = write;
    this.#clock = clock;
    this.#mostCharacters = mostCharacters;
    this.#closeMs = closeMs;
  }

  get isEmpty(): boolean {
    return this.#rows.size === 0;
  }

  find(version: string, sample: string): ScoreRow | undefined {
    return this.isEmpty ? undefined : this.#rows.get(keyOf(version, sample));
  }

  /** @param reason why it could not be written at once; that of the row before is the default */
  add(row: ScoreRow, reason: unknown = this.#reason): void {
    this.#reason = reason;
    const key = keyOf(row.version, row.sample);
    const before = this.#rows.get(key)?.text.length ?? 0;
    if (this.#characters - before + row.text.length > this.#mostCharacters) {
      this.#lost += 1;
      return;
    }
    this.#characters += row.text.length - before;
    this.#rows.set(key, row);
    this.#cancel ??= this.#clock.after(this.#pauseMs, this.#again);
  }

  /** Waits for the lock for a bounded time, and returns what was never written. */
  async close(): Promise<LostRows> {
    this.#cancel?.();
    this.#cancel = undefined;
    const endMs = performance.now() + this.#closeMs;
    while (!this.isEmpty) {
      if (this.#writeSome()) continue;
      if (performance.now() >= endMs) break;
      await delay(closingPauseMs);
    }
    const lost = { count: this.#lost + this.#rows.size, reason: this.#reason };
    this.#rows.clear();
    return lost;
  }

  readonly #again = (): void => {
    this.#cancel = undefined;
    const isWritten = this.#writeSome();
    this.#pauseMs = isWritten ? pauseMs.first : Math.min(2 * this.#pauseMs, pauseMs.longest);
    if (this.isEmpty) return;
    this.#cancel = this.#clock.after(isWritten ? 0 : this.#pauseMs, this.#again);
  };

  /** Returns false where the lock is still held. */
  #writeSome(): boolean {
    const some = [...this.#rows].slice(0, rowsAtOnce);
    try {
      this.#write(some.map(([, row]) => row));
    } catch (error) {
      this.#reason = error;
      if (isBusy(error)) return false;
      this.#lost += this.#rows.size;
      this.#rows.clear();
      this.#characters = 0;
      return true;
    }
    for (const [key, row] of some) {
      this.#rows.delete(key);
      this.#characters -= row.text.length;
    }
    return true;
  }
}

/** Whether an error of node:sqlite says that another connection holds the lock. */
export function isBusy(error: unknown): boolean {
  const code = fieldOf(error, "errcode");
  // The low byte of an extended code is the primary one: SQLITE_BUSY.
  return typeof code === "number" && (code & 0xff) === 5;
}

function keyOf(version: string, sample: string): string {
  return `${version} ${sample}`;
}
