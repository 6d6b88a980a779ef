/**
 * A sample at its worker whose attempts may end before they have an outcome, because their total
 * time is over or nobody needs it any more: its measurements, its signal, and the promise of its
 * outcome, which settles then even if a call of it goes on.
 *
 * The calls that are at work then are given up, and the outcome waits until each has said what it
 * used: at once where the function heeds its signal, else as long as its executor takes to answer
 * or to be ended. A call that is with no executor is not awaited.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { CallSignal } from "../faults/call-signal.ts";
import {
  after,
  earlierOf,
  givenUpFailure,
  retryBudgetFailure,
  totalTimeoutFailure,
} from "../outcome.ts";
import type {
  EarlierFailure,
  SampleOutcome,
  ScoreFailure,
  TokenUsage,
  ValidOutcome,
} from "../outcome.ts";
import { beyond, lastUsageOf, together } from "../spend/usage.ts";
import { isNeedless } from "./endpoint-call.ts";
import type { AttemptedSample, FollowedCalls, PendingCall } from "./endpoint-call.ts";
import type { SharedTimer, TimedSample, TotalTimes } from "./total-time.ts";

type Given = Pick<AttemptedSample, "sample" | "lane" | "id">;

/** One object that its timer and its attempts are bound to: as many wait as are asked at once. */
export class SampleInTime implements AttemptedSample, TimedSample, FollowedCalls {
  readonly sample: RewardSample;
  readonly lane: string;
  readonly id: number | undefined;
  readonly signal: CallSignal = new CallSignal(undefined);
  readonly measured: AttemptedSample["measured"] = { attempts: 0, waitedMs: 0 };
  heldBack: ScoreFailure | undefined = undefined;
  kept: ValidOutcome | undefined = undefined;
  /** Its pending calls: two of a hedge at most, and no list of them, because many wait. */
  #call: PendingCall | undefined = undefined;
  #second: PendingCall | undefined = undefined;
  /** The usage of all calls that have their outcome. */
  #used: TokenUsage | undefined = undefined;
  /** The last failure of a call, or of a request of one, as far as it is known. */
  #failed: EarlierFailure | undefined = undefined;
  /** Its outcome, once its time is over. */
  #late: SampleOutcome | undefined = undefined;
  readonly #totalMs: number;
  /** Undefined: its attempts may take as long as they do. */
  readonly #timer: SharedTimer | undefined = undefined;
  readonly #place: number = 0;
  readonly #resolve: (outcome: SampleOutcome | Promise<never>) => void;

  private constructor(
    { sample, lane, id }: Given,
    times: TotalTimes | undefined,
    resolve: (outcome: SampleOutcome | Promise<never>) => void,
  ) {
    this.sample = sample;
    this.lane = lane;
    this.id = id;
    this.#resolve = resolve;
    this.#totalMs = times?.totalMs ?? Infinity;
    if (times === undefined) return;
    const { timer, place } = times.begin(this);
    this.#timer = timer;
    this.#place = place;
  }

  /**
   * Resolves to the outcome of its attempts, or to why there is none when its time is over, or it
   * is given up. Rejects as they do.
   *
   * @param times undefined: without a total time
   */
  static outcome(
    given: Given,
    times: TotalTimes | undefined,
    attempts: (sample: SampleInTime) => Promise<SampleOutcome>,
  ): Promise<SampleOutcome> {
    return new Promise((resolve) => {
      const sample = new SampleInTime(given, times, resolve);
      void attempts(sample).then(sample.#settled.bind(sample), sample.#rejected.bind(sample));
    });
  }

  late(): void {
    const { heldBack } = this;
    const error =
      heldBack === undefined
        ? totalTimeoutFailure(this.#totalMs)
        : retryBudgetFailure(this.#totalMs, heldBack);
    this.#end(error, error);
  }

  /** Nobody needs its outcome any more. */
  giveUp(): void {
    if (this.#late !== undefined) return;
    this.#timer?.leave(this.#place);
    this.#end(givenUpFailure, isNeedless);
  }

  /** @param reason why its calls are aborted */
  #end(error: ScoreFailure, reason: unknown): void {
    const { kept, measured } = this;
    // Taken before the abort, which settles an attempt that has not begun without counting it.
    this.#late =
      kept === undefined
        ? { valid: false, error, latencyMs: 0, ...measured }
        : { ...kept, ...measured };
    try {
      this.signal.abort(reason);
    } finally {
      this.#endLate();
    }
  }

  get calls(): this {
    return this;
  }

  began(call: PendingCall): void {
    if (this.#call === undefined) this.#call = call;
    else this.#second = call;
  }

  answered(outcome: SampleOutcome, failed?: EarlierFailure): void {
    this.#used = together(this.#used, lastUsageOf(outcome));
    // The error of one that is given up is of that; its requests may have failed before.
    const ownFailure =
      this.#late !== undefined || outcome.valid ? undefined : earlierOf(outcome.error);
    this.#failed = ownFailure ?? failed ?? this.#failed;
  }

  ended(call: PendingCall): void {
    if (this.#call === call) this.#call = undefined;
    else this.#second = undefined;
    this.#endLate();
  }

  /** Settles it if its time is over and no call of it is at work. */
  #endLate(): void {
    if (this.#late === undefined) return;
    if (this.#call?.isAtWork === true || this.#second?.isAtWork === true) return;
    const { unknownUse } = this.measured;
    const late = this.#late.valid
      ? this.#late
      : { ...this.#late, error: after(this.#failed, this.#late.error) };
    const usageBefore = beyond(this.#used, lastUsageOf(this.#late));
    this.#resolve({
      ...late,
      ...(usageBefore === undefined ? {} : { usageBefore }),
      ...(unknownUse === undefined ? {} : { unknownUse }),
    });
  }

  #settled(outcome: SampleOutcome): void {
    this.#timer?.leave(this.#place);
    if (this.#late === undefined) this.#resolve(outcome);
  }

  #rejected(reason: unknown): void {
    this.#timer?.leave(this.#place);
    const failed = Promise.reject(reason);
    // Nobody hears of it where its time is over.
    failed.catch(() => undefined);
    if (this.#late === undefined) this.#resolve(failed);
  }
}
