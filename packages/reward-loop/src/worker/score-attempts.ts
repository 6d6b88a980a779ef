/**
 * What one sample is worth: how often it is scored, when again, and for how long in all. An attempt takes a slot of the worker, then a lease of its endpoint, then an executor;
 * a failure that may go better later pauses without a slot and comes back in the lane "recovery"; one that takes longer than most is begun a second time beside it. One that
 * lost its executor through no fault of its own is another call of its endpoint: it takes another lease.
 *
 * Every sample settles exactly once, and every lease is given back when its call is over, whoever still waits for it.
 */

import { setTimeout as delay } from "node:timers/promises";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { classOf } from "../faults/failure-class.ts";
import { HedgePolicy } from "../faults/hedge.ts";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import { maxRetryAfterMs, RetryPolicy } from "../faults/retry-policy.ts";
import type { LimiterClient } from "../limits/limiter-client.ts";
import type { LimitReport } from "../limits/limiter.ts";
import { totalTimeoutFailure } from "../outcome.ts";
import type { AttemptOutcome, SampleOutcome } from "../outcome.ts";
import type { PolicySettings } from "../policy-settings.ts";
import type { SubmitOptions } from "./executor-pool.ts";
import { lastUsageOf, together, usageOf } from "../spend/usage.ts";
import type { TokenUsage } from "../spend/usage.ts";

export interface AttemptParts {
  /** One attempt, in an executor. */
  readonly run: (sample: RewardSample, options: SubmitOptions) => Promise<AttemptOutcome>;
  /** Resolves to what `work` does when there is a slot for it. */
  readonly inSlot: <Result>(work: () => Promise<Result>) => Promise<Result>;
  readonly limiter: LimiterClient | undefined;
  /** One more, or one less, waits for its next try and has no slot. */
  readonly onPause: (change: 1 | -1) => void;
}

/** Of one sample, over all of its attempts. */
interface Tally {
  /** With those that are under way. */
  attempts: number;
  waitedMs: number;
  /** Of tries before the last one. */
  usageBefore?: TokenUsage;
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
    this.#isPlain = [settings.retry, settings.hedge, settings.totalTimeoutMs, parts.limiter].every(
      (one) => one === undefined,
    );
  }

  /** Rejects only as `run` and the limiter do: when nothing can be scored any more. */
  score(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    return this.#isPlain ? this.#once(sample) : this.#withPolicies(sample, lane);
  }

  async #withPolicies(sample: RewardSample, lane: string): Promise<SampleOutcome> {
    const { totalTimeoutMs } = this.#settings;
    const tally: Tally = { attempts: 0, waitedMs: 0 };
    if (totalTimeoutMs === undefined) return this.#untilDone(sample, lane, tally, undefined);
    const over = new AbortController();
    const late = Promise.withResolvers<SampleOutcome>();
    const timer = setTimeout(() => {
      const error = totalTimeoutFailure(totalTimeoutMs);
      // What has not begun is told at once, and is no attempt.
      over.abort(error);
      late.resolve({ valid: false, error, latencyMs: 0, ...tally });
    }, totalTimeoutMs);
    try {
      return await Promise.race([late.promise, this.#untilDone(sample, lane, tally, over.signal)]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Where there is nothing to decide. */
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

  /** Rejects with the signal's reason, too, when nobody waits any more. */
  async #untilDone(
    sample: RewardSample,
    lane: string,
    tally: Tally,
    signal: AbortSignal | undefined,
  ): Promise<SampleOutcome> {
    this.#retry?.began();
    for (let tries = 1; ; tries++) {
      const outcome = await this.#try(sample, tries === 1 ? lane : "recovery", tally, signal);
      const pauseMs = this.#pauseMs(outcome, tries);
      if (pauseMs === undefined) return { ...outcome, ...tally };
      const used = together(tally.usageBefore, lastUsageOf(outcome));
      if (used !== undefined) tally.usageBefore = used;
      await this.#pause(pauseMs, tally, signal);
    }
  }

  /** How long until the next try; undefined: this is the outcome. */
  #pauseMs(outcome: AttemptOutcome, tries: number): number | undefined {
    if (outcome.valid) return undefined;
    return this.#retry?.delayMs(tries, classOf(outcome.error), outcome.error.retryAfterMs);
  }

  async #pause(ms: number, tally: Tally, signal: AbortSignal | undefined): Promise<void> {
    this.#parts.onPause(1);
    try {
      await delay(ms, undefined, signal === undefined ? {} : { signal });
      tally.waitedMs += ms;
    } finally {
      this.#parts.onPause(-1);
    }
  }

  /** One try: a call, and a second one beside it if that is worth it. */
  #try(
    sample: RewardSample,
    lane: string,
    tally: Tally,
    signal: AbortSignal | undefined,
  ): Promise<AttemptOutcome> {
    const askedMs = performance.now();
    return this.#parts.inSlot(async () => {
      signal?.throwIfAborted();
      const call = { sample, lane, tally, signal, askedMs };
      return this.#hedge === undefined ? this.#call(call) : this.#hedged(call);
    });
  }

  async #call({ sample, lane, tally, signal, askedMs, late, pair }: Call): Promise<AttemptOutcome> {
    const { limiter, run } = this.#parts;
    const tokens = this.#settings.limits?.tokensPerRequest ?? 0;
    let lease = await limiter?.acquire({ lane, tokens }, signal);
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
      sent = this.#hedge?.sent(ageMs, isLate ? undefined : onLate);
      sentMs = performance.now();
      tally.waitedMs += sentMs - againMs;
    };
    // What was given up may still be under way, and is until then for its endpoint.
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
        },
        ...(limiter === undefined && sent === undefined ? {} : { beforeAgain }),
        over: () => {
          isOver = true;
          lease?.release(report);
        },
      });
      const { readyMs: _counted, ...told } = outcome;
      return told;
    } finally {
      signal?.removeEventListener("abort", givenUp);
      sent?.failed();
    }
  }

  /** The first that is valid, and the other is given up; what the first call came to where none is. */
  async #hedged(call: Call): Promise<AttemptOutcome> {
    const one = new AbortController();
    let other: AbortController | undefined;
    const { promise: isLate, resolve: late } = Promise.withResolvers<undefined>();
    // Of its two calls.
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
      // Where there was one call only it is over.
      if (other !== undefined) {
        one.abort(isNeedless);
        other.abort(isNeedless);
      }
    }
  }

  /** Whether it was ended by us for what is not its endpoint's fault: nobody needs it any more, or it had less than half of the time that its sample has in all. */
  #isGivenUp(signal: AbortSignal | undefined, sentMs: number): boolean {
    if (signal?.aborted !== true) return false;
    const totalTimeoutMs = this.#settings.totalTimeoutMs ?? 0;
    const tookMs = performance.now() - sentMs;
    return signal.reason === isNeedless || 2 * tookMs < totalTimeoutMs;
  }
}

/** Of a call whose end nobody heard of. */
const isCutOff: LimitReport = { outcome: "unknown", isCut: true };

/** The other call of a hedge has answered. */
const isNeedless = new DOMException("another call of it was quicker", "AbortError");

interface Call {
  readonly sample: RewardSample;
  readonly lane: string;
  readonly tally: Tally;
  readonly signal: AbortSignal | undefined;
  /** When it began to wait. */
  readonly askedMs: number;
  /** It takes longer than most: a second one is to go out. */
  readonly late?: () => void;
  /** There is, or may be, another one beside it. */
  readonly pair?: SubmitOptions["pair"];
}

function withSignal(call: Call, own: AbortController): Call {
  const { signal } = call;
  return {
    ...call,
    signal: signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]),
  };
}

/** To the endpoint's limiter. @param isGivenUp by us: what the function made of that is not the endpoint's answer, unless it has a status of one */
function reportOf(
  outcome: AttemptOutcome,
  isGivenUp: boolean,
  mostMs: number = maxRetryAfterMs,
): LimitReport {
  if (outcome.valid) {
    const tokens = usageOf(outcome.rewardExtraInfo)?.totalTokens;
    return { outcome: "ok", ...(tokens === undefined ? {} : { tokens }) };
  }
  const { code, status, blocked, retryAfterMs, rewardExtraInfo = {} } = outcome.error;
  const pause = retryAfterMs === undefined ? {} : { retryAfterMs: Math.min(retryAfterMs, mostMs) };
  const failure = classOf(outcome.error);
  // A call that was refused used nothing.
  if (failure === "rate-limit") return { outcome: "refused", tokens: 0, ...pause };
  const isUnanswered = isGivenUp && status === undefined;
  const isCut =
    isUnanswered || failure === "timeout" || blocked === true || code === "EXECUTOR_DIED";
  const isItsFault = !isUnanswered && (failure === "infrastructure" || failure === "timeout");
  const tokens = usageOf(rewardExtraInfo)?.totalTokens;
  const used = tokens === undefined ? {} : { tokens };
  const other = status === undefined ? "unknown" : "answered";
  return { outcome: isItsFault ? "failed" : other, isCut, ...used, ...pause };
}

/** What the endpoint said in an answer that went well; what it said when it refused the call stands in the report. For no longer than a sample would wait. */
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
