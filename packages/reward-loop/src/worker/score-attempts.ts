/**
 * Scores one sample: how many attempts it gets, when the next one begins, and how long they may
 * take in all. An attempt takes a slot of the worker, then a lease of its endpoint, then an
 * executor. A failure that may not recur pauses without a slot and comes back in the lane
 * "recovery"; a call that takes longer than most gets a second one beside it. A call that lost its
 * executor through no fault of its own is another call of its endpoint: it takes another lease.
 *
 * Every sample settles exactly once, and every lease is released when its call is over, also if the
 * sample was given up before.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { classOf } from "../faults/failure-class.ts";
import { HedgePolicy } from "../faults/hedge.ts";
import { RetryPolicy } from "../faults/retry-policy.ts";
import { after, earlierOf } from "../outcome.ts";
import type { EarlierFailure, Hedges, SampleOutcome, ScoreFailure } from "../outcome.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import { memberFailuresIn } from "../sample/group-sample.ts";
import { lastUsageOf, together } from "../spend/usage.ts";
import { CallSignal } from "../faults/call-signal.ts";
import type { SignalOfCall } from "../faults/call-signal.ts";
import { SampleInTime } from "./attempted-sample.ts";
import { EndpointCall, isNeedless } from "./endpoint-call.ts";
import type { AttemptedSample, CallOptions, CallParts } from "./endpoint-call.ts";
import type { CallPair, JobEnds, SubmitOptions } from "./executors/job.ts";
import type { Slots } from "./slots.ts";
import { TotalTimes } from "./total-time.ts";

export interface AttemptParts extends Omit<CallParts, "settings" | "hedge"> {
  readonly slots: Slots;
  /** Called when a sample begins or ends its wait for the next try without a slot. */
  readonly onPause: (change: 1 | -1) => void;
  /** Gives up the runs under these ids of samples without policies. */
  readonly giveUp: (ids: ReadonlySet<number>) => void;
}

/** How a sample is attempted: one object for all that were sent together. */
export interface AttemptTerms {
  /** The lane of its first attempt. */
  readonly lane: string;
  /** `giveUp` may be called with its id. */
  readonly mayBeGivenUp?: boolean | undefined;
}

export class ScoreAttempts {
  readonly #parts: AttemptParts;
  /** Undefined: a sample may take as long as its attempts. */
  readonly #times: TotalTimes | undefined;
  readonly #retry: RetryPolicy | undefined;
  readonly #hedge: HedgePolicy | undefined;
  readonly #callParts: CallParts;
  readonly #isPlain: boolean;
  /** Options of a sample without policies. */
  readonly #plain: SubmitOptions;
  /** Samples with policies that may be given up, by their ids. */
  readonly #mayBeGivenUp: Map<number, SampleInTime> = new Map();

  constructor(settings: PolicySettings, parts: AttemptParts) {
    const { totalTimeoutMs } = settings;
    this.#times = totalTimeoutMs === undefined ? undefined : new TotalTimes(totalTimeoutMs);
    this.#parts = parts;
    this.#plain = { slots: parts.slots };
    this.#retry = settings.retry && new RetryPolicy(settings.retry);
    this.#hedge = settings.hedge && new HedgePolicy(settings.hedge);
    const { run, limiter, spending } = parts;
    this.#callParts = { settings, run, limiter, spending, hedge: this.#hedge };
    this.#isPlain = [
      settings.retry,
      settings.hedge,
      settings.totalTimeoutMs,
      parts.limiter,
      parts.spending,
    ].every((one) => one === undefined);
  }

  /**
   * Rejects only as `run` and the limiter do: when nothing can be scored any more.
   *
   * @param id under which its calls are asked for, where spending has a cap, and given up; without
   * one it does not ask
   */
  score(sample: RewardSample, terms: AttemptTerms, id?: number): Promise<SampleOutcome> {
    if (!this.#isPlain) return this.#withPolicies(sample, terms, id);
    return new Promise((settled, rejected) =>
      this.begin(sample, terms, id ?? 0, { settled, rejected }),
    );
  }

  /** `score` where no promise is made for a sample without policies. */
  begin(sample: RewardSample, terms: AttemptTerms, id: number, ends: JobEnds): void {
    if (this.#isPlain) return this.#parts.run(sample, id, ends, this.#plain);
    this.#withPolicies(sample, terms, id).then(
      (outcome) => ends.settled(outcome, id),
      (error: unknown) => ends.rejected(error, id),
    );
  }

  /**
   * Aborts all calls of these samples and settles them as given up, once each has said what it
   * used. Ids of samples that have settled are ignored.
   */
  giveUp(ids: ReadonlySet<number>): void {
    for (const id of ids) this.#mayBeGivenUp.get(id)?.giveUp();
    if (!this.#isPlain) return;
    this.#parts.slots.giveUp(ids);
    this.#parts.giveUp(ids);
  }

  #withPolicies(
    sample: RewardSample,
    { lane, mayBeGivenUp = false }: AttemptTerms,
    id: number | undefined,
  ): Promise<SampleOutcome> {
    const given = { sample, lane, id };
    const isFollowed = mayBeGivenUp && id !== undefined;
    if (this.#times !== undefined || isFollowed) {
      return SampleInTime.outcome(given, this.#times, (timed) => {
        if (!isFollowed) return this.#untilDone(timed);
        this.#mayBeGivenUp.set(id, timed);
        return this.#untilDone(timed).finally(() => this.#mayBeGivenUp.delete(id));
      });
    }
    const measured = { attempts: 0, waitedMs: 0 };
    const rest = { signal: undefined, measured, heldBack: undefined, kept: undefined };
    return this.#untilDone({ ...given, ...rest });
  }

  /** Rejects with the signal's reason, too. */
  #untilDone(attempted: AttemptedSample): Promise<SampleOutcome> {
    this.#retry?.began();
    return this.#try(attempted, attempted.lane).then((outcome) =>
      failuresIn(attempted.sample, outcome).length === 0
        ? { ...outcome, ...attempted.measured }
        : this.#afterFailure(attempted, outcome),
    );
  }

  /**
   * Only a sample that has failed takes an async function: many wait for their first attempt. A
   * group of which some have failed is tried again as a whole; the attempt with most scores counts,
   * the last of several such.
   */
  async #afterFailure(attempted: AttemptedSample, first: SampleOutcome): Promise<SampleOutcome> {
    const { sample, measured } = attempted;
    let failed: EarlierFailure | undefined;
    let outcome: SampleOutcome = first;
    for (let tries = 1; ; tries++) {
      const failures = failuresIn(sample, outcome);
      const { kept } = attempted;
      const isBest =
        kept === undefined || (outcome.valid && failures.length <= failuresIn(sample, kept).length);
      if (kept !== undefined) countBefore(measured, isBest ? kept : outcome);
      if (isBest) attempted.kept = outcome.valid ? outcome : undefined;
      if (failures.length === 0) break;
      const next = this.#next(tries, failures);
      if (next === undefined) {
        const last = attempted.kept ?? outcome;
        if (last.valid) return { ...last, ...measured };
        return { ...last, error: after(failed, last.error), ...measured };
      }
      failed = earlierOf(next.failure) ?? failed;
      if (attempted.kept === undefined) countBefore(measured, outcome);
      await this.#pause(next.pauseMs, next.failure, attempted);
      outcome = await this.#try(attempted, "recovery");
    }
    this.#retry?.succeeded();
    return { ...outcome, ...measured };
  }

  /** The failure that asks for the longest pause. Undefined: none of them is worth an attempt. */
  #next(
    tries: number,
    failures: readonly ScoreFailure[],
  ): { readonly failure: ScoreFailure; readonly pauseMs: number } | undefined {
    return failures
      .flatMap((failure) => {
        const pauseMs = this.#retry?.delayMs(tries, classOf(failure), failure.retryAfterMs);
        return pauseMs === undefined ? [] : [{ failure, pauseMs }];
      })
      .toSorted((one, other) => other.pauseMs - one.pauseMs)[0];
  }

  /** Waits for the next attempt: its own pause, and then its turn in the shared budget. */
  async #pause(ms: number, failure: ScoreFailure, attempted: AttemptedSample): Promise<void> {
    const { signal, measured } = attempted;
    const fromMs = performance.now();
    this.#parts.onPause(1);
    try {
      await pause(ms, signal);
      if (this.#retry?.isUsedUp === true) attempted.heldBack = failure;
      await this.#retry?.turn(signal);
      attempted.heldBack = undefined;
      measured.waitedMs += performance.now() - fromMs;
    } finally {
      this.#parts.onPause(-1);
    }
  }

  /** Makes one attempt: a call, and a second one beside it if that is worth it. */
  #try(attempted: AttemptedSample, lane: string): Promise<SampleOutcome> {
    const askedMs = performance.now();
    const { signal } = attempted;
    return this.#parts.slots.run(() => {
      if (signal?.aborted === true) return Promise.reject(signal.reason);
      const options = { lane, signal, askedMs };
      return this.#hedge === undefined
        ? this.#call(attempted, options)
        : this.#hedged(attempted, options);
    });
  }

  /**
   * Resolves to the first valid outcome and gives the other call up; to the first call's outcome
   * where neither is valid. Most first calls are in time, and only a late one costs more than the
   * promise.
   */
  #hedged(attempted: AttemptedSample, options: CallOptions): Promise<SampleOutcome> {
    const signal = new CallSignal(attempted.signal);
    // Both calls of the hedge.
    const pair: CallPair = { first: undefined, second: undefined };
    return new Promise((resolve, reject) => {
      let isOver = false;
      const seconded = (): void => {
        // In a turn of its own: it may be late before its promise is there.
        queueMicrotask(() => {
          if (isOver) return;
          isOver = true;
          const second = { ...options, lane: "recovery", askedMs: performance.now(), pair };
          this.#seconded(attempted, { first, signal }, second).then(resolve, reject);
        });
      };
      const first = this.#call(attempted, { ...options, signal, pair, late: seconded });
      first.then(
        (outcome) => {
          if (isOver) return;
          isOver = true;
          signal.leave();
          resolve(outcome);
        },
        (error: unknown) => {
          if (isOver) return;
          isOver = true;
          signal.leave();
          reject(error);
        },
      );
    });
  }

  /** Sends a second call beside the first one, which is late. */
  async #seconded(
    attempted: AttemptedSample,
    one: { readonly first: Promise<SampleOutcome>; readonly signal: CallSignal },
    options: CallOptions,
  ): Promise<SampleOutcome> {
    const { measured } = attempted;
    const { first } = one;
    const signal = new CallSignal(attempted.signal);
    try {
      const second = this.#call(attempted, { ...options, signal });
      const { begun, won } = measured.hedges ?? noHedges;
      measured.hedges = { begun: begun + 1, won };
      const ended: Ended[] = [];
      const endsAs = (isSecond: boolean) => (outcome: SampleOutcome) => {
        const end = { outcome, isSecond };
        ended.push(end);
        return end;
      };
      const seconded = second.then(endsAs(true), () => undefined);
      const firstly = first.then(endsAs(false));
      const early = await Promise.race([firstly, seconded]);
      const [its, others] =
        early?.outcome.valid === true ? [early] : [await firstly, await seconded];
      const winner = others?.outcome.valid === true ? others : its;
      if (winner.isSecond) measured.hedges = { begun: begun + 1, won: won + 1 };
      // The other call is paid for, too, whatever it said.
      for (const end of ended) if (end !== winner) countBefore(measured, end.outcome);
      if (winner.outcome.valid || others?.outcome.valid !== false) return winner.outcome;
      const error = after(earlierOf(others.outcome.error), winner.outcome.error);
      return { ...winner.outcome, error };
    } finally {
      for (const each of [one.signal, signal]) {
        each.abort(isNeedless);
        each.leave();
      }
    }
  }

  #call(attempted: AttemptedSample, options: CallOptions): Promise<SampleOutcome> {
    return new EndpointCall(attempted, options, this.#callParts).run();
  }
}

const noHedges: Hedges = { begun: 0, won: 0 };

/** A call of a hedge that has its outcome. */
interface Ended {
  readonly outcome: SampleOutcome;
  readonly isSecond: boolean;
}

/** Returns why a sample has no score, or members of a group have none. */
function failuresIn(sample: RewardSample, outcome: SampleOutcome): readonly ScoreFailure[] {
  return outcome.valid ? memberFailuresIn(sample, outcome) : [outcome.error];
}

/** Adds the usage of a call that does not give the outcome. */
function countBefore(measured: AttemptedSample["measured"], outcome: SampleOutcome): void {
  const used = together(measured.usageBefore, lastUsageOf(outcome));
  if (used !== undefined) measured.usageBefore = used;
}

/** Resolves after so long. Rejects with the signal's reason. */
function pause(ms: number, signal: SignalOfCall | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) return reject(signal.reason);
    const leave = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, ms);
    signal?.addEventListener("abort", leave, { once: true });
  });
}
