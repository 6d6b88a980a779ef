/**
 * A sample at its worker whose attempts have a total time: its measurements, its signal, and the
 * promise of its outcome, which settles when its time is over even if a call of it goes on.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { CallSignal } from "../faults/call-signal.ts";
import { retryBudgetFailure, totalTimeoutFailure } from "../outcome.ts";
import type { SampleOutcome, ScoreFailure } from "../outcome.ts";
import type { AttemptedSample } from "./endpoint-call.ts";
import type { SharedTimer, TimedSample, TotalTimes } from "./total-time.ts";

type Given = Pick<AttemptedSample, "sample" | "lane" | "id">;

/** One object that its timer and its attempts are bound to: as many wait as are asked at once. */
export class SampleInTime implements AttemptedSample, TimedSample {
  readonly sample: RewardSample;
  readonly lane: string;
  readonly id: number | undefined;
  readonly signal: CallSignal = new CallSignal(undefined);
  readonly measured: AttemptedSample["measured"] = { attempts: 0, waitedMs: 0 };
  heldBack: ScoreFailure | undefined = undefined;
  readonly #totalMs: number;
  readonly #timer: SharedTimer;
  readonly #place: number;
  readonly #resolve: (outcome: SampleOutcome | Promise<never>) => void;

  private constructor(
    { sample, lane, id }: Given,
    times: TotalTimes,
    resolve: (outcome: SampleOutcome | Promise<never>) => void,
  ) {
    this.sample = sample;
    this.lane = lane;
    this.id = id;
    this.#resolve = resolve;
    this.#totalMs = times.totalMs;
    const { timer, place } = times.begin(this);
    this.#timer = timer;
    this.#place = place;
  }

  /**
   * Resolves to the outcome of its attempts, or to why there is none when its time is over. Rejects
   * as they do.
   */
  static outcome(
    given: Given,
    times: TotalTimes,
    attempts: (sample: SampleInTime) => Promise<SampleOutcome>,
  ): Promise<SampleOutcome> {
    return new Promise((resolve) => {
      const sample = new SampleInTime(given, times, resolve);
      void attempts(sample).then(sample.#settled.bind(sample), sample.#rejected.bind(sample));
    });
  }

  late(): void {
    const { heldBack, measured } = this;
    const error =
      heldBack === undefined
        ? totalTimeoutFailure(this.#totalMs)
        : retryBudgetFailure(this.#totalMs, heldBack);
    // Taken before the abort, which settles an attempt that has not begun without counting it.
    const outcome = { valid: false, error, latencyMs: 0, ...measured } as const;
    try {
      this.signal.abort(error);
    } finally {
      this.#resolve(outcome);
    }
  }

  #settled(outcome: SampleOutcome): void {
    this.#timer.leave(this.#place);
    this.#resolve(outcome);
  }

  #rejected(reason: unknown): void {
    this.#timer.leave(this.#place);
    const failed = Promise.reject(reason);
    // Nobody hears of it where its time is over.
    failed.catch(() => undefined);
    this.#resolve(failed);
  }
}
