/**
 * One call of an attempt: takes a lease of its endpoint, asks whether it may be paid for, runs in
 * an executor, and reports its outcome. If its executor ends through no fault of its own, the next
 * run is another call, with another lease.
 *
 * The endpoint's limiter hears of the outcome at once, also if the call timed out or was given up
 * and goes on; the lease is released when the call is over.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import type { HedgePolicy, SentCall } from "../faults/hedge.ts";
import type { LimiterClient, RemoteLease } from "../limits/limiter-client.ts";
import type { LimitReport } from "../limits/limiter.ts";
import type {
  EarlierFailure,
  Hedges,
  SampleOutcome,
  ScoreFailure,
  TokenUsage,
  ValidOutcome,
} from "../outcome.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import { isUnpaid, spendingOf, unpaid } from "./call-spending.ts";
import type { SignalOfCall } from "../faults/call-signal.ts";
import type { CallSpending } from "./call-spending.ts";
import type { Job, JobCall, JobEnds, OfEndpoint, SubmitOptions } from "./executors/job.ts";
import { isCutOff, reportOf, withAnnounced } from "./limit-report.ts";
import type { SpendRequests } from "./spend-requests.ts";

export interface CallParts {
  readonly settings: PolicySettings;
  /** Runs one attempt in an executor. */
  readonly run: (sample: RewardSample, id: number, ends: JobEnds, options: SubmitOptions) => void;
  readonly limiter: LimiterClient | undefined;
  /** Asked before each call, and told the usage of each that is over, where spending has a cap. */
  readonly spending?: Pick<SpendRequests, "mayBegin" | "ended"> | undefined;
  readonly hedge: HedgePolicy | undefined;
}

/** A sample at its worker, over all of its attempts. */
export interface AttemptedSample {
  readonly sample: RewardSample;
  /** The lane of its first attempt. */
  readonly lane: string;
  /** The id under which its calls are asked for. Undefined: it does not ask. */
  readonly id: number | undefined;
  /** Aborted when its total time is over, or it is given up. */
  readonly signal: SignalOfCall | undefined;
  /** Its measurements so far, as they go into its outcome. */
  readonly measured: {
    /** Attempts, including pending ones. */
    attempts: number;
    waitedMs: number;
    /** The usage of attempts before the last one. */
    usageBefore?: TokenUsage;
    /** Attempts with unknown usage, including pending ones. Kept with a cap only. */
    unknownUse?: number;
    /** Second calls, including pending ones. */
    hedges?: Hedges;
  };
  /** The last failure, while its next attempt waits for the budget. */
  heldBack: ScoreFailure | undefined;
  /**
   * The best outcome so far of a group that is tried again because members of it have failed: no
   * part of `measured.usageBefore`.
   */
  kept: ValidOutcome | undefined;
  /** Follows its calls, where it may end before they do. */
  readonly calls?: FollowedCalls | undefined;
}

/** Hears of all calls of a sample. */
export interface FollowedCalls {
  began(call: PendingCall): void;
  /**
   * A call has its outcome.
   *
   * @param failed its last failed request, where one is known
   */
  answered(outcome: SampleOutcome, failed?: EarlierFailure): void;
  /** A call has ended, with an outcome or without one. */
  ended(call: PendingCall): void;
}

export interface PendingCall {
  /** An executor has it, and will soon say what it used where it is given up. */
  readonly isAtWork: boolean;
}

/** How one call of a sample is made. */
export interface CallOptions {
  readonly lane: string;
  /** Aborted when its result is no longer needed. */
  readonly signal: SignalOfCall | undefined;
  /** When it began to wait. */
  readonly askedMs: number;
  /** Called when it takes longer than most: a second call is to be sent. */
  readonly late?: () => void;
  /** The calls of a hedge, present if there may be a second one. */
  readonly pair?: SubmitOptions["pair"];
}

/** The other call of a hedge has answered, or nobody waits for the sample any more. */
export const isNeedless = new DOMException("its result is no longer needed", "AbortError");

/**
 * No async function where nothing is to be waited for, and no functions of its own: the job hears
 * of the call itself. As many wait as samples are asked at once.
 */
export class EndpointCall implements JobCall, JobEnds, PendingCall {
  job: Job | undefined = undefined;
  readonly #attempted: AttemptedSample;
  readonly #options: CallOptions;
  readonly #parts: CallParts;
  readonly #spending: CallSpending | undefined;
  /** The limiter's estimate of the call. */
  readonly #tokens: number;
  #lease: RemoteLease | undefined;
  #sent: SentCall | undefined;
  #sentMs = 0;
  /** It is the second call of its hedge. */
  #isSecond = false;
  #isLate = false;
  #isOver = false;
  #report: LimitReport = isCutOff;
  /** The listener on its signal, where it has a lease. */
  #givenUp: (() => void) | undefined;
  /** Ends the call for its caller. */
  #resolve: ((outcome: SampleOutcome | Promise<never>) => void) | undefined;

  constructor(attempted: AttemptedSample, options: CallOptions, parts: CallParts) {
    this.#attempted = attempted;
    this.#options = options;
    this.#parts = parts;
    this.#tokens = parts.settings.limits?.tokensPerRequest ?? 0;
    this.#spending = spendingOf(parts.spending, attempted, options.signal);
  }

  /** Rejects with the signal's reason, and as `run` and the limiter do. */
  run(): Promise<SampleOutcome> {
    const { limiter } = this.#parts;
    if (limiter === undefined && this.#spending === undefined) return this.#begin();
    return this.#allowed().then((isAllowed) => (isAllowed ? this.#begin() : unpaid));
  }

  /** Takes a lease, and gives it back where the call may not begin. */
  async #allowed(): Promise<boolean> {
    const { lane, signal } = this.#options;
    this.#lease = await this.#parts.limiter?.acquire({ lane, tokens: this.#tokens }, signal);
    let isAllowed = false;
    try {
      // It may be given up between the grant and now.
      signal?.throwIfAborted();
      isAllowed = this.#spending === undefined || (await this.#spending.mayBegin());
    } finally {
      if (!isAllowed) this.#lease?.release({ outcome: "unknown", tokens: 0 });
    }
    return isAllowed;
  }

  #begin(): Promise<SampleOutcome> {
    const { sample, measured } = this.#attempted;
    const { signal, askedMs, pair } = this.#options;
    this.#sentMs = performance.now();
    this.#isSecond = pair?.first !== undefined;
    this.#send();
    measured.waitedMs += this.#sentMs - askedMs;
    measured.attempts += 1;
    // A call that was given up may still be pending at its endpoint.
    if (this.#parts.limiter !== undefined && signal !== undefined) {
      this.#givenUp = () => this.#lease?.givenUp();
      signal.addEventListener("abort", this.#givenUp, { once: true });
    }
    this.#attempted.calls?.began(this);
    return new Promise((resolve) => {
      this.#resolve = resolve;
      this.#parts.run(sample, 0, this, { signal, pair, call: this });
    });
  }

  settled(outcome: SampleOutcome): void {
    this.#end();
    this.#resolve?.(outcome);
  }

  rejected(reason: unknown): void {
    this.#end();
    if (reason === isUnpaid) return this.#resolve?.(unpaid);
    // Its executor ended, and nothing is left for another call.
    const failed = Promise.reject(reason);
    failed.catch(() => undefined);
    this.#resolve?.(failed);
  }

  #end(): void {
    if (this.#givenUp !== undefined) {
      this.#options.signal?.removeEventListener("abort", this.#givenUp);
    }
    this.#sent?.failed();
    this.#attempted.calls?.ended(this);
  }

  get isAtWork(): boolean {
    return this.job?.executor !== undefined;
  }

  #send(): void {
    const { late, pair } = this.#options;
    const ageMs = (): number | undefined => (this.#isSecond ? pair?.second : pair?.first)?.ageMs();
    const onLate = (): void => {
      this.#isLate = true;
      late?.();
    };
    const isSecond = late === undefined || this.#isLate;
    this.#sent = this.#parts.hedge?.sent(ageMs, isSecond ? undefined : onLate);
  }

  over(): void {
    this.#isOver = true;
    this.#lease?.release(this.#report);
  }

  answered(outcome: SampleOutcome, { announced, further, failed }: OfEndpoint = {}): void {
    const { measured } = this.#attempted;
    const { signal } = this.#options;
    const mostMs = this.#parts.settings.retry?.maxRetryAfterMs;
    const report = reportOf(outcome, this.#isGivenUp(), mostMs);
    this.#report = withAnnounced(report, announced, mostMs);
    this.#lease?.answered(this.#report, further);
    if (outcome.valid) this.#sent?.answered(outcome.latencyMs);
    else if (signal?.aborted === true) this.#sent?.givenUp(outcome.latencyMs);
    else this.#sent?.failed();
    measured.attempts += outcome.attempts - 1;
    measured.waitedMs += outcome.waitedMs;
    this.#spending?.ended(outcome);
    this.#attempted.calls?.answered(outcome, failed);
  }

  /** Where nobody counts its calls, it begins anew at once, unless it was given up. */
  get asksAgain(): boolean {
    const { limiter, hedge } = this.#parts;
    if (this.#options.signal?.aborted === true) return true;
    return limiter !== undefined || hedge !== undefined || this.#spending !== undefined;
  }

  /** The executor ended, and the call with it: what is sent now is another one. */
  async beforeAgain(): Promise<void> {
    const { measured } = this.#attempted;
    const { signal } = this.#options;
    this.#lease?.release(isCutOff);
    this.#lease = undefined;
    this.#sent?.failed();
    this.#sent = undefined;
    const againMs = performance.now();
    const request = { lane: "recovery", tokens: this.#tokens };
    const next = await this.#parts.limiter?.acquire(request, signal);
    if (this.#isOver || signal?.aborted === true) {
      next?.release({ outcome: "unknown", tokens: 0 });
      return signal?.throwIfAborted();
    }
    this.#lease = next;
    await this.#spending?.again();
    this.#send();
    this.#sentMs = performance.now();
    measured.waitedMs += this.#sentMs - againMs;
  }

  /**
   * Whether the call was ended here for a reason other than its endpoint: its result is no longer
   * needed, or it had less than half of its sample's total time.
   */
  #isGivenUp(): boolean {
    const { signal } = this.#options;
    if (signal?.aborted !== true) return false;
    const totalTimeoutMs = this.#parts.settings.totalTimeoutMs ?? 0;
    const tookMs = performance.now() - this.#sentMs;
    return signal.reason === isNeedless || 2 * tookMs < totalTimeoutMs;
  }
}
