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
import { RetryPolicy } from "../faults/retry-policy.ts";
import { retryBudgetFailure, totalTimeoutFailure } from "../outcome.ts";
import type { AttemptOutcome, SampleOutcome, ScoreFailure } from "../outcome.ts";
import type { PolicySettings } from "../settings/policy-settings.ts";
import { lastUsageOf, together } from "../spend/usage.ts";
import { EndpointCall, isNeedless } from "./endpoint-call.ts";
import type { Call, CallParts, Given, Tally } from "./endpoint-call.ts";
import type { SubmitOptions } from "./executors/executor-pool.ts";

export interface AttemptParts extends Omit<CallParts, "settings" | "hedge"> {
  /** Resolves to what `work` does when there is a slot for it. */
  readonly inSlot: <Result>(work: () => Promise<Result>) => Promise<Result>;
  /** Called when a sample begins or ends its wait for the next try without a slot. */
  readonly onPause: (change: 1 | -1) => void;
}

export class ScoreAttempts {
  readonly #settings: PolicySettings;
  readonly #parts: AttemptParts;
  readonly #retry: RetryPolicy | undefined;
  readonly #hedge: HedgePolicy | undefined;
  readonly #callParts: CallParts;
  readonly #isPlain: boolean;

  constructor(settings: PolicySettings, parts: AttemptParts) {
    this.#settings = settings;
    this.#parts = parts;
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

  #call(call: Call): Promise<AttemptOutcome> {
    return new EndpointCall(call, this.#callParts).run();
  }
}

/** Adds the last failure to an outcome that is not tried again because of the cap. */
function withReason(error: ScoreFailure, before: ScoreFailure | undefined): ScoreFailure {
  if (error.code !== "SPEND_CAP" || before === undefined) return error;
  return { ...error, message: `${error.message}; before that it failed: ${before.message}` };
}

function withSignal(call: Call, own: AbortController): Call {
  const { signal } = call;
  return {
    ...call,
    signal: signal === undefined ? own.signal : AbortSignal.any([signal, own.signal]),
  };
}
