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

import { setTimeout as delay } from "node:timers/promises";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { classOf } from "../faults/failure-class.ts";
import { HedgePolicy } from "../faults/hedge.ts";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import { maxRetryAfterMs, RetryPolicy } from "../faults/retry-policy.ts";
import type { LimiterClient } from "../limits/limiter-client.ts";
import type { LimitReport } from "../limits/limiter.ts";
import { retryBudgetFailure, totalTimeoutFailure } from "../outcome.ts";
import type { AttemptOutcome, SampleOutcome, ScoreFailure } from "../outcome.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import type { Use } from "../spend/purse.ts";
import type { SubmitOptions } from "./executor-pool.ts";
import type { SpendDesk } from "./spend-desk.ts";
import { lastUsageOf, together } from "../spend/usage.ts";
import type { TokenUsage } from "../outcome.ts";

export interface AttemptParts {
  /** Runs one attempt in an executor. */
  readonly run: (sample: RewardSample, options: SubmitOptions) => Promise<AttemptOutcome>;
  /** Resolves to what `work` does when there is a slot for it. */
  readonly inSlot: <Result>(work: () => Promise<Result>) => Promise<Result>;
  readonly limiter: LimiterClient | undefined;
  /** Asked before each call, and told the usage of each that is over, where spending has a cap. */
  readonly spending?: Pick<SpendDesk, "mayBegin" | "ended"> | undefined;
  /** Called when a sample begins or ends its wait for the next try without a slot. */
  readonly onPause: (change: 1 | -1) => void;
}

/** The measurements of one sample over all of its attempts. */
interface Tally {
  /** Attempts, including pending ones. */
  attempts: number;
  waitedMs: number;
  /** The usage of tries before the last one. */
  usageBefore?: TokenUsage;
  /** The last failure, while its next try waits for the budget. */
  heldBack?: ScoreFailure | undefined;
  /** Attempts with unknown usage, including pending ones. Kept with a cap only. */
  unknownUse?: number;
}

export class ScoreAttempts {
  readonly #settings: PolicySettings;
  readonly #parts: AttemptParts;
  readonly #retry: RetryPolicy | undefined;
  readonly #hedge: HedgePolicy | undefined;
  readonly #isPlain: boolean;

  constructor(settings: PolicySettings, parts: AttemptParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#retry = settings.retry && new RetryPolicy(settings.retry);
    this.#hedge = settings.hedge && new HedgePolicy(settings.hedge);
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
   * @param id under which its calls are asked for, where spending has a cap; without one it does
   * not ask
   */
  score(sample: RewardSample, lane: string, id?: number): Promise<SampleOutcome> {
    return this.#isPlain ? this.#once(sample) : this.#withPolicies({ sample, lane, id });
  }

  async #withPolicies(given: Given): Promise<SampleOutcome> {
    const { totalTimeoutMs } = this.#settings;
    const tally: Tally = { attempts: 0, waitedMs: 0 };
    if (totalTimeoutMs === undefined) return this.#untilDone(given, tally, undefined);
    const over = new AbortController();
    const late = Promise.withResolvers<SampleOutcome>();
    const timer = setTimeout(() => {
      const { heldBack, ...measured } = tally;
      const error =
        heldBack === undefined
          ? totalTimeoutFailure(totalTimeoutMs)
          : retryBudgetFailure(totalTimeoutMs, heldBack);
      // The abort settles an attempt that has not begun, without counting it.
      over.abort(error);
      late.resolve({ valid: false, error, latencyMs: 0, ...measured });
    }, totalTimeoutMs);
    try {
      return await Promise.race([late.promise, this.#untilDone(given, tally, over.signal)]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Scores once, without any policy. */
  #once(sample: RewardSample): Promise<SampleOutcome> {
    const askedMs = performance.now();
    const { inSlot, run } = this.#parts;
    return inSlot(() => {
      const waitedMs = performance.now() - askedMs;
      return run(sample, {}).then(({ readyMs = 0, ...outcome }) => ({
        ...outcome,
        waitedMs: waitedMs + readyMs,
      }));
    });
  }

  /** Rejects with the signal's reason, too. */
  async #untilDone(
    given: Given,
    tally: Tally,
    signal: AbortSignal | undefined,
  ): Promise<SampleOutcome> {
    this.#retry?.began();
    let failed: ScoreFailure | undefined;
    for (let tries = 1; ; tries++) {
      const lane = tries === 1 ? given.lane : "recovery";
      const outcome = await this.#try({ ...given, lane }, tally, signal);
      if (outcome.valid) {
        if (tries > 1) this.#retry?.succeeded();
        return { ...outcome, ...tally };
      }
      const { error } = outcome;
      const pauseMs = this.#retry?.delayMs(tries, classOf(error), error.retryAfterMs);
      if (pauseMs === undefined) return { ...outcome, error: withReason(error, failed), ...tally };
      failed = error;
      const used = together(tally.usageBefore, lastUsageOf(outcome));
      if (used !== undefined) tally.usageBefore = used;
      await this.#pause(pauseMs, error, tally, signal);
    }
  }

  /** Waits for the next try: its own pause, and then its turn in the shared budget. */
  async #pause(
    ms: number,
    failure: ScoreFailure,
    tally: Tally,
    signal: AbortSignal | undefined,
  ): Promise<void> {
    const fromMs = performance.now();
    this.#parts.onPause(1);
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
      if (this.#retry?.isUsedUp === true) tally.heldBack = failure;
      await this.#retry?.turn(signal);
      delete tally.heldBack;
      tally.waitedMs += performance.now() - fromMs;
    } finally {
      this.#parts.onPause(-1);
    }
  }

  /** Makes one try: a call, and a second one beside it if that is worth it. */
  #try(given: Given, tally: Tally, signal: AbortSignal | undefined): Promise<AttemptOutcome> {
    const askedMs = performance.now();
    return this.#parts.inSlot(async () => {
      signal?.throwIfAborted();
      const call = { ...given, tally, signal, askedMs };
      return this.#hedge === undefined ? this.#call(call) : this.#hedged(call);
    });
  }

  async #call(call: Call): Promise<AttemptOutcome> {
    const { sample, lane, tally, signal, askedMs, late, pair } = call;
    const { limiter, run } = this.#parts;
    const tokens = this.#settings.limits?.tokensPerRequest ?? 0;
    let lease = await limiter?.acquire({ lane, tokens }, signal);
    const spending = this.#spendingOf(call);
    try {
      if (!(await spending.mayBegin())) {
        lease?.release({ outcome: "unknown", tokens: 0 });
        return unpaid;
      }
    } catch (error) {
      lease?.release({ outcome: "unknown", tokens: 0 });
      throw error;
    }
    let sentMs = performance.now();
    let isOver = false;
    const at = pair?.length ?? 0;
    const ageMs = (): number | undefined => pair?.[at]?.ageMs();
    let isLate = false;
    const onLate =
      late &&
      (() => {
        isLate = true;
        late();
      });
    let sent = this.#hedge?.sent(ageMs, onLate);
    tally.waitedMs += sentMs - askedMs;
    tally.attempts += 1;
    let report: LimitReport = isCutOff;
    /** The executor ended, and the call with it: what is sent now is another one. */
    const beforeAgain = async (): Promise<void> => {
      lease?.release(isCutOff);
      lease = undefined;
      sent?.failed();
      sent = undefined;
      const againMs = performance.now();
      const next = await limiter?.acquire({ lane: "recovery", tokens }, signal);
      if (isOver) return next?.release({ outcome: "unknown", tokens: 0 });
      lease = next;
      await spending.again();
      sent = this.#hedge?.sent(ageMs, isLate ? undefined : onLate);
      sentMs = performance.now();
      tally.waitedMs += sentMs - againMs;
    };
    // A call that was given up may still be pending at its endpoint.
    const givenUp = (): void => lease?.givenUp();
    signal?.addEventListener("abort", givenUp, { once: true });
    try {
      const outcome = await run(sample, {
        signal,
        pair,
        settled: (one, announced) => {
          const isGivenUp = this.#isGivenUp(signal, sentMs);
          const mostMs = this.#settings.retry?.maxRetryAfterMs;
          report = withAnnounced(reportOf(one, isGivenUp, mostMs), announced, mostMs);
          givenUp();
          if (one.valid) sent?.answered(one.latencyMs);
          else if (signal?.aborted === true) sent?.givenUp(one.latencyMs);
          else sent?.failed();
          tally.attempts += one.attempts - 1;
          tally.waitedMs += one.readyMs ?? 0;
          spending.ended(one);
        },
        ...(limiter === undefined && sent === undefined ? {} : { beforeAgain }),
        over: () => {
          isOver = true;
          lease?.release(report);
        },
      });
      const { readyMs: _counted, ...told } = outcome;
      return told;
    } catch (error) {
      if (error !== isUnpaid) throw error;
      // Its executor ended, and nothing is left for another call.
      return unpaid;
    } finally {
      signal?.removeEventListener("abort", givenUp);
      sent?.failed();
    }
  }

  /**
   * Returns the spending of one call, including the calls that replace it when its executor ends.
   */
  #spendingOf({ id, tally, signal }: Call): CallSpending {
    const { spending } = this.#parts;
    if (spending === undefined || id === undefined) return freeOfCharge;
    let underWay = 0;
    const mayBegin = async (): Promise<boolean> => {
      const asked = spending.mayBegin(id);
      const isAllowed = await unlessAborted(asked, signal).catch((error: unknown) => {
        // A late permission is given back.
        void asked.then((isLate) => isLate && spending.ended(id, nothingUsed));
        throw error;
      });
      if (!isAllowed) return false;
      underWay += 1;
      tally.unknownUse = (tally.unknownUse ?? 0) + 1;
      return true;
    };
    return {
      mayBegin,
      again: async () => {
        spending.ended(id, { attempts: 1, usage: undefined, unknown: 1 });
        underWay -= 1;
        if (!(await mayBegin())) throw isUnpaid;
      },
      ended: (outcome) => {
        if (underWay === 0) return;
        underWay -= 1;
        const attempts = Math.min(1, outcome.attempts);
        const usage = lastUsageOf(outcome);
        const isUnknown = attempts > 0 && usage === undefined && mayHaveUsed(outcome);
        if (!isUnknown) tally.unknownUse = (tally.unknownUse ?? 0) - 1;
        spending.ended(id, { attempts, usage, unknown: isUnknown ? 1 : 0 });
      },
    };
  }

  /**
   * Resolves to the first valid outcome and gives the other call up; to the first call's outcome
   * where neither is valid.
   */
  async #hedged(call: Call): Promise<AttemptOutcome> {
    const one = new AbortController();
    let other: AbortController | undefined;
    const { promise: isLate, resolve: late } = Promise.withResolvers<undefined>();
    // Both calls of the hedge.
    const pair: SubmitOptions["pair"] = [];
    const first = this.#call({ ...withSignal(call, one), pair, late: () => late(undefined) });
    try {
      const early = await Promise.race([first, isLate]);
      if (early !== undefined) return early;
      other = new AbortController();
      const askedMs = performance.now();
      const second = this.#call({ ...withSignal(call, other), pair, lane: "recovery", askedMs });
      const seconded = second.catch(() => undefined);
      const winner = await Promise.race([first, seconded]);
      if (winner?.valid === true) return winner;
      const [own, its] = [await first, await seconded];
      return its?.valid === true ? its : own;
    } finally {
      // Without a second call the first one is over.
      if (other !== undefined) {
        one.abort(isNeedless);
        other.abort(isNeedless);
      }
    }
  }

  /**
   * Whether the call was ended here for a reason other than its endpoint: its result is no longer
   * needed, or it had less than half of its sample's total time.
   */
  #isGivenUp(signal: AbortSignal | undefined, sentMs: number): boolean {
    if (signal?.aborted !== true) return false;
    const totalTimeoutMs = this.#settings.totalTimeoutMs ?? 0;
    const tookMs = performance.now() - sentMs;
    return signal.reason === isNeedless || 2 * tookMs < totalTimeoutMs;
  }
}

/** Adds the last failure to an outcome that is not tried again because of the purse. */
function withReason(error: ScoreFailure, before: ScoreFailure | undefined): ScoreFailure {
  if (error.code !== "SPEND_CAP" || before === undefined) return error;
  return { ...error, message: `${error.message}; before that it failed: ${before.message}` };
}

/** The report of a call without a known end. */
const isCutOff: LimitReport = { outcome: "unknown", isCut: true };

/** The other call of a hedge has answered. */
const isNeedless = new DOMException("another call of it was quicker", "AbortError");

interface Given {
  readonly sample: RewardSample;
  readonly lane: string;
  readonly id: number | undefined;
}

interface CallSpending {
  /** Resolves to whether it may begin; rejects with the signal's reason. */
  readonly mayBegin: () => Promise<boolean>;
  /**
   * Called when its executor ended: it may have used something, and begins anew when this resolves.
   * Rejects with `isUnpaid` where it is not allowed.
   */
  readonly again: () => Promise<void>;
  readonly ended: (outcome: AttemptOutcome) => void;
}

const freeOfCharge: CallSpending = {
  mayBegin: async () => true,
  again: async () => undefined,
  ended: () => undefined,
};

const nothingUsed: Use = { attempts: 0, usage: undefined, unknown: 0 };

const isUnpaid = new Error("all that may be spent is spent");

/** The outcome of a call that was not allowed; it is not an attempt. */
const unpaid: AttemptOutcome = {
  valid: false,
  error: {
    code: "SPEND_CAP",
    name: "SpendCapError",
    message: "it was not asked: what is left may not be enough to pay for it",
  },
  latencyMs: 0,
  attempts: 0,
};

/** Codes of connections that were never made. */
const unreached = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)$/;

/**
 * Whether an attempt with unknown usage may have used something: not if its endpoint refused it, or
 * was not reached.
 */
function mayHaveUsed(outcome: AttemptOutcome): boolean {
  if (outcome.valid) return true;
  const { code, status = 0, errorCode = "" } = outcome.error;
  const isCalled = code === "SCORE_THREW" || classOf(outcome.error) !== "data";
  return isCalled && status < 400 && !unreached.test(errorCode);
}

function unlessAborted<Value>(
  promise: Promise<Value>,
  signal: AbortSignal | undefined,
): Promise<Value> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.finally(() => signal.removeEventListener("abort", abort)).then(resolve, reject);
  });
}

interface Call extends Given {
  readonly tally: Tally;
  readonly signal: AbortSignal | undefined;
  /** When it began to wait. */
  readonly askedMs: number;
  /** Called when it takes longer than most: a second call is to be sent. */
  readonly late?: () => void;
  /** The calls of a hedge, present if there may be a second one. */
  readonly pair?: SubmitOptions["pair"];
}

function withSignal(call: Call, own: AbortController): Call {
  const { signal } = call;
  return {
    ...call,
    signal: signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]),
  };
}

/**
 * Returns the report to the endpoint's limiter. @param isGivenUp the call was ended here: the
 * function's error is not the endpoint's answer, unless it has a status
 */
function reportOf(
  outcome: AttemptOutcome,
  isGivenUp: boolean,
  mostMs: number = maxRetryAfterMs,
): LimitReport {
  if (outcome.valid) {
    const tokens = lastUsageOf(outcome)?.totalTokens;
    return { outcome: "ok", ...(tokens === undefined ? {} : { tokens }) };
  }
  const { code, status, blocked, retryAfterMs } = outcome.error;
  const pause = retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, mostMs) };
  const failure = classOf(outcome.error);
  // A call that was refused used nothing.
  if (failure === "rate-limit") return { outcome: "refused", tokens: 0, ...pause };
  const isUnanswered = isGivenUp && status === undefined;
  const isCut =
    isUnanswered || failure === "timeout" || blocked === true || code === "EXECUTOR_DIED";
  const isItsFault = !isUnanswered && (failure === "infrastructure" || failure === "timeout");
  const tokens = lastUsageOf(outcome)?.totalTokens;
  const used = tokens === undefined ? {} : { tokens };
  const other = status === undefined ? "unknown" : "answered";
  return { outcome: isItsFault ? "failed" : other, isCut, ...used, ...pause };
}

/**
 * Adds the limits that the endpoint announced in a successful answer; a refusal's are in the report
 * already. No announcement lasts longer than a sample would wait.
 */
function withAnnounced(
  report: LimitReport,
  announced: AnnouncedLimits | undefined,
  mostMs: number = maxRetryAfterMs,
): LimitReport {
  if (announced === undefined) return report;
  const { requests, tokens, retryAfterMs = 0 } = announced;
  const limits = Object.entries({ requests, tokens }).flatMap(([what, said]) =>
    said === undefined ? [] : [[what, { ...said, resetMs: Math.min(said.resetMs, mostMs) }]],
  );
  const pauseMs = report.retryAfterMs ?? Math.min(retryAfterMs, mostMs);
  return {
    ...report,
    ...(pauseMs > 0 ? { retryAfterMs: pauseMs } : {}),
    announced: Object.fromEntries(limits) as NonNullable<LimitReport["announced"]>,
  };
}
