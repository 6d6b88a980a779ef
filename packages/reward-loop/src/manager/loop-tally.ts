/**
 * Counts for the live page: samples of a loop by lane and by outcome, their latencies, and how many
 * are still expected. The clock is an argument.
 */

import { classOf } from "../faults/failure-class.ts";
import type { FailureClass, Hedges, SampleOutcome } from "../outcome.ts";

/** Upper bounds of latencies, in ms; one more count is for those above all of them. */
export const latencyBounds: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
];

export interface LaneTally {
  readonly lane: string;
  readonly inFlight: number;
  readonly done: number;
}

/** A loop's samples so far. */
export interface TallyState {
  /** How long they have been counted. */
  readonly elapsedMs: number;
  /** Samples that have an outcome. */
  readonly done: number;
  /** Samples that have none yet. */
  readonly inFlight: number;
  /** How long the oldest of these has been there; 0 if there is none. */
  readonly oldestMs: number;
  /** Samples that were announced and are not done; undefined: nobody said how many come. */
  readonly left: number | undefined;
  readonly valid: number;
  readonly failures: Readonly<Partial<Record<FailureClass, number>>>;
  /** Samples for which no function was called. */
  readonly cached: number;
  /** How often functions were started on the samples that are done. */
  readonly attempts: number;
  /** Second calls of these samples. */
  readonly hedges: Hedges;
  readonly meanScore: number | undefined;
  readonly lanes: readonly LaneTally[];
  /** Counts by `latencyBounds`. */
  readonly latencies: readonly number[];
}

interface Lane {
  inFlight: number;
  done: number;
}

/** One sample that was begun. */
export interface Begun {
  readonly lane: string;
  readonly atMs: number;
}

export class LoopTally {
  readonly #now: () => number;
  readonly #startMs: number;
  /** In the order of their beginning. */
  readonly #begun: Set<Begun> = new Set();
  readonly #lanes: Map<string, Lane> = new Map();
  readonly #failures: Partial<Record<FailureClass, number>> = {};
  readonly #latencies: number[] = Array<number>(latencyBounds.length + 1).fill(0);
  #expected: number | undefined = 0;
  #done = 0;
  #valid = 0;
  #scores = 0;
  #cached = 0;
  #attempts = 0;
  #hedges: Hedges = { begun: 0, won: 0 };

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#startMs = now();
  }

  /** @param samples that will come; undefined: nobody knows how many */
  expect(samples: number | undefined): void {
    this.#expected =
      samples === undefined || this.#expected === undefined ? undefined : this.#expected + samples;
  }

  /** One sample less is to come: it has a score of before, or needs none any more. */
  spared(): void {
    if (this.#expected !== undefined) this.#expected -= 1;
  }

  begin(lane: string): Begun {
    const begun = { lane, atMs: this.#now() };
    this.#begun.add(begun);
    this.#laneOf(lane).inFlight += 1;
    return begun;
  }

  /** @param outcome undefined: there will be none */
  end(begun: Begun, outcome: SampleOutcome | undefined): void {
    const lane = this.#laneOf(begun.lane);
    this.#begun.delete(begun);
    lane.inFlight -= 1;
    if (outcome === undefined) return this.spared();
    lane.done += 1;
    this.#done += 1;
    this.#attempts += outcome.attempts;
    if (outcome.cached === true) this.#cached += 1;
    else {
      this.#addLatency(outcome.latencyMs);
      this.#addHedges(outcome.hedges);
    }
    if (outcome.valid) {
      this.#valid += 1;
      this.#scores += outcome.rewardScore;
      return;
    }
    const kind = classOf(outcome.error);
    this.#failures[kind] = (this.#failures[kind] ?? 0) + 1;
  }

  state(): TallyState {
    const now = this.#now();
    const [oldest] = this.#begun;
    return {
      elapsedMs: now - this.#startMs,
      done: this.#done,
      inFlight: this.#begun.size,
      oldestMs: oldest === undefined ? 0 : now - oldest.atMs,
      left: this.#expected === undefined ? undefined : Math.max(0, this.#expected - this.#done),
      valid: this.#valid,
      failures: { ...this.#failures },
      cached: this.#cached,
      attempts: this.#attempts,
      hedges: this.#hedges,
      meanScore: this.#valid === 0 ? undefined : this.#scores / this.#valid,
      lanes: [...this.#lanes].map(([lane, counts]) => ({ lane, ...counts })),
      latencies: [...this.#latencies],
    };
  }

  #laneOf(name: string): Lane {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane = { inFlight: 0, done: 0 };
    this.#lanes.set(name, lane);
    return lane;
  }

  #addHedges(hedges: Hedges | undefined): void {
    if (hedges === undefined) return;
    const { begun, won } = this.#hedges;
    this.#hedges = { begun: begun + hedges.begun, won: won + hedges.won };
  }

  #addLatency(ms: number): void {
    const at = latencyBounds.findIndex((bound) => ms <= bound);
    const place = at === -1 ? latencyBounds.length : at;
    this.#latencies[place] = (this.#latencies[place] ?? 0) + 1;
  }
}
