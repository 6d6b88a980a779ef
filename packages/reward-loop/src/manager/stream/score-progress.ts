/**
 * The progress of a stream of samples: counted as it goes, read as a snapshot. The clock is an
 * argument.
 */

import { classOf } from "../../faults/failure-class.ts";
import type { FailureClass } from "../../outcome.ts";
import type { SampleOutcome } from "../../outcome.ts";
import type { SpendState } from "../../spend/cost-budget.ts";
import type { RewardModelState } from "../../reward-model/reward-model-manager.ts";
import { AnswerCounts } from "../answer-counts.ts";
import type { EndpointState } from "../../pipeline/shared-limiter.ts";

/** Progress of a stream of samples. */
export interface RewardProgress {
  /** Samples that have an outcome. */
  readonly done: number;
  /** Undefined until the input has ended. */
  readonly total: number | undefined;
  /** Samples that were read and have no outcome yet. */
  readonly inFlight: number;
  /** Over the whole run so far. */
  readonly ratePerSecond: number;
  /** How long the oldest sample in flight has been there; 0 if none is. */
  readonly oldestMs: number;
  /**
   * The remaining time at the present rate. Undefined without a total, and before the first sample
   * is done.
   */
  readonly leftMs: number | undefined;
  /** Samples without a score. */
  readonly invalid: number;
  /** How many of these, by the kind of failure. */
  readonly failures: Readonly<Partial<Record<FailureClass, number>>>;
  /**
   * The number of answers of each of several functions: stages of a cascade, judges before and
   * behind a cap.
   */
  readonly answeredBy: Readonly<Record<string, number>>;
  /** The cost of all scores of the loop so far, with the option `spend`. */
  readonly spent: number;
  /** How far each cap is. */
  readonly spending: readonly SpendState[];
  /** How much of its endpoints' limits was used when they were last asked, a picture ago. */
  readonly endpoints: readonly EndpointState[];
  /** How each reward model was when it was last asked, by its name. */
  readonly rewardModels: Readonly<Record<string, RewardModelState>>;
}

/** The loop, as the progress of a stream tells of it. */
export interface WatchedLoop {
  readonly spent: () => number;
  readonly spending: () => readonly SpendState[];
  /** Undefined where there are no limits. */
  readonly endpoints?: () => Promise<readonly EndpointState[]>;
  /** Undefined where there are none. */
  readonly models?: () => Promise<Readonly<Record<string, RewardModelState>>>;
}

const nothingWatched: WatchedLoop = { spent: () => 0, spending: () => [] };

export class ProgressCounter {
  readonly #now: () => number;
  readonly #watched: WatchedLoop;
  readonly #answers = new AnswerCounts();
  readonly #startedAt: number;
  /** Start times by index, in order. */
  readonly #inFlight: Map<number, number> = new Map();
  #done = 0;
  #invalid = 0;
  readonly #failures: Partial<Record<FailureClass, number>> = {};
  #endpoints: readonly EndpointState[] = [];
  #rewardModels: Readonly<Record<string, RewardModelState>> = {};
  #isAsking = false;
  total: number | undefined;

  constructor(
    total: number | undefined,
    watched: WatchedLoop = nothingWatched,
    now: () => number = () => performance.now(),
  ) {
    this.total = total;
    this.#watched = watched;
    this.#now = now;
    this.#startedAt = now();
  }

  get inFlight(): number {
    return this.#inFlight.size;
  }

  started(index: number): void {
    this.#inFlight.set(index, this.#now());
  }

  finished(index: number, outcome: SampleOutcome): void {
    this.#inFlight.delete(index);
    this.#done += 1;
    if (!outcome.valid) {
      this.#invalid += 1;
      const kind = classOf(outcome.error);
      this.#failures[kind] = (this.#failures[kind] ?? 0) + 1;
    }
    this.#answers.add(outcome);
  }

  /**
   * Asks limiters and routers, for pictures that come later. One that cannot tell leaves what was
   * known.
   */
  async look(): Promise<void> {
    const { endpoints, models } = this.#watched;
    if (this.#isAsking || (endpoints === undefined && models === undefined)) return;
    this.#isAsking = true;
    // A limiter that rejects is being restarted, or the loop is closing.
    const [used, states] = await Promise.allSettled([endpoints?.(), models?.()]);
    if (used.status === "fulfilled") this.#endpoints = used.value ?? [];
    if (states.status === "fulfilled") this.#rewardModels = states.value ?? {};
    this.#isAsking = false;
  }

  snapshot(): RewardProgress {
    const now = this.#now();
    const [oldest = now] = this.#inFlight.values();
    const elapsedMs = now - this.#startedAt;
    return {
      done: this.#done,
      total: this.total,
      inFlight: this.#inFlight.size,
      ratePerSecond: elapsedMs > 0 ? (this.#done * 1000) / elapsedMs : 0,
      oldestMs: now - oldest,
      leftMs: this.#leftMs(elapsedMs),
      invalid: this.#invalid,
      failures: { ...this.#failures },
      answeredBy: this.#answers.counts,
      spent: this.#watched.spent(),
      spending: this.#watched.spending(),
      endpoints: this.#endpoints,
      rewardModels: this.#rewardModels,
    };
  }

  #leftMs(elapsedMs: number): number | undefined {
    if (this.total === undefined) return undefined;
    if (this.total === this.#done) return 0;
    return this.#done === 0 ? undefined : ((this.total - this.#done) * elapsedMs) / this.#done;
  }
}
