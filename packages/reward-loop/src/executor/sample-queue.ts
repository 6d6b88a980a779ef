/**
 * The samples that one executor has: those at work, and behind them those that stand ready in its
 * thread, begun in order as others end. Knows no function and no reply: `begin` starts a sample,
 * and `ended` or `left` says that it is over.
 *
 * Invariants: at most `atOnce` samples are at work. A synchronous run holds the thread, so the next
 * one begins after the results of this turn have been sent, or in the same turn where the last runs
 * were so brief that a turn for each would cost more. A sample that begins because another one is
 * over begins in the context of the last call, on no sample's account.
 */

import { AsyncResource } from "node:async_hooks";
import { BRIEF_TURN_MS, BriefRuns } from "./brief-run-batching.ts";

/** Begins a sample. Returns whether samples overlap: otherwise it has held the thread. */
export type Begin<Sample> = (sample: Sample) => boolean;

/** Whether it is at work is a mark on the sample: a set of ids would take memory for each. */
export interface QueuedSample {
  readonly id: number;
  /** It is at work and was not given up. */
  isAtWork: boolean;
}

export class SampleQueue<Sample extends QueuedSample> {
  readonly #atOnce: number;
  readonly #begin: Begin<Sample>;
  readonly #areSent: () => boolean;
  #atWork = 0;
  /** Samples that stand ready until a synchronous run, or one of the concurrent runs, ends. */
  #ready: Sample[] = [];
  /** A synchronous run has held the thread, and the next one is not to begin yet. */
  #isHeld = false;
  /** The next one begins when the results have been sent, which wait for a call to answer. */
  #isUnsent = false;
  /** When the first synchronous run of this turn began. Undefined: all results have been sent. */
  #turnBeganAt: number | undefined;
  readonly #brief: BriefRuns = new BriefRuns();
  #isDue = false;
  /** The context of the last call. `AsyncLocalStorage.snapshot` costs 6 us more (measured). */
  #asCalled = new AsyncResource("SampleQueue");

  /**
   * @param atOnce the most samples at work; the others stand ready
   *
   * @param areSent whether no result waits; `sent` is called when that is so again
   */
  constructor(atOnce: number, begin: Begin<Sample>, areSent: () => boolean) {
    this.#atOnce = atOnce;
    this.#begin = begin;
    this.#areSent = areSent;
  }

  /** Keeps the context of this call for samples that begin later. */
  called(): void {
    this.#asCalled = new AsyncResource("SampleQueue");
  }

  /** @param isFirst it does not stand behind others */
  push(sample: Sample, isFirst: boolean): void {
    if (isFirst) this.#ready.unshift(sample);
    else this.#ready.push(sample);
  }

  /** Begins ready samples while there is room. */
  pump(): void {
    while (!this.#isHeld && this.#atWork < this.#atOnce) {
      const sample = this.#ready.shift();
      if (sample === undefined) return;
      sample.isAtWork = true;
      this.#atWork += 1;
      if (!this.#begin(sample)) this.#hold();
    }
  }

  /** The run of a sample has ended, and its result is about to be sent with others. */
  ended(sample: Sample, latencyMs: number): void {
    this.#brief.ended(latencyMs);
    if (this.#isOver(sample)) this.#next();
  }

  /** The sample was given up, or its result has been sent. */
  left(sample: Sample): void {
    if (this.#isOver(sample)) this.#soon();
  }

  #isOver(sample: Sample): boolean {
    if (!sample.isAtWork) return false;
    sample.isAtWork = false;
    this.#atWork -= 1;
    return true;
  }

  /** All results are in answers that leave this turn. */
  sent(): void {
    if (!this.#isUnsent) return;
    this.#isUnsent = false;
    this.#asCalled.runInAsyncScope(() => this.#releaseLater());
  }

  /** Takes a sample out that stands ready. Undefined: it does not. */
  drop(id: number): Sample | undefined {
    const at = this.#ready.findIndex((sample) => sample.id === id);
    return at === -1 ? undefined : this.#ready.splice(at, 1)[0];
  }

  /** The results of this turn are sent before the next run holds the thread. */
  #hold(): void {
    this.#isHeld = true;
    if (this.#turnBeganAt !== undefined) return;
    this.#turnBeganAt = performance.now();
    this.#releaseLater();
  }

  #releaseLater(): void {
    setImmediate(() => setImmediate(() => this.#release()));
  }

  #release(): void {
    this.#isUnsent = !this.#areSent();
    if (this.#isUnsent) return;
    this.#turnBeganAt = undefined;
    this.#isHeld = false;
    this.pump();
  }

  /** Begins the next sample in this turn where a turn for each would cost more than the runs. */
  #next(): void {
    const ranMs = performance.now() - (this.#turnBeganAt ?? -Infinity);
    if (!this.#isHeld || !this.#brief.areExpected || ranMs >= BRIEF_TURN_MS) return this.#soon();
    this.#isHeld = false;
    this.#asCalled.runInAsyncScope(() => this.pump());
  }

  /** Begins a ready sample in a free slot, after the answers of this turn have been sent. */
  #soon(): void {
    if (this.#isDue || this.#ready.length === 0) return;
    this.#isDue = true;
    this.#asCalled.runInAsyncScope(() =>
      setImmediate(() => {
        this.#isDue = false;
        this.pump();
      }),
    );
  }
}
