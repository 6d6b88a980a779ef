/**
 * A sample from its submission to its outcome: it waits for a worker, is with one, or comes back
 * because its worker died. Knows no worker: it is told what happens to it.
 *
 * Invariant: it settles exactly once, and the cost of its outcome is counted before.
 */

import { NotEncodableError } from "@rayling/core";
import { InvalidSampleError } from "@rayling/reward-manager-registry";
import type { RewardSample } from "@rayling/reward-manager-registry";
import type { SampleOutcome, Writable } from "../outcome.ts";
import type { AskedFor, ScoreEnds } from "./reward-source.ts";
import type { Budget, Use } from "../spend/cost-budget.ts";
import { SampleAccount } from "../spend/sample-account.ts";

/** A sample's dispatcher. */
export interface SampleOwner {
  /** The budget that pays for it. */
  readonly budget: Budget | undefined;
  /** It has no outcome, because its worker died. */
  readonly lost: (submitted: SubmittedSample) => void;
  /** It has its outcome from a worker. */
  readonly ran: (latencyMs: number) => void;
}

/** All that samples of one lane have in common: one object for them, because many wait at once. */
export interface SampleTerms {
  /** The lane whose share of workers and endpoint they take. */
  readonly lane: string;
  /** Undefined: nobody but the caller of its promise hears of a sample. */
  readonly ends: ScoreEnds | undefined;
  readonly owner: SampleOwner;
}

/** Resolves the promise of an outcome. */
export type Resolve = (outcome: SampleOutcome | Promise<SampleOutcome>) => void;

/** It has no private method: V8 gives each object of such a class 8 bytes more. */
export class SubmittedSample {
  readonly sample: RewardSample;
  readonly #terms: SampleTerms;
  readonly #asked: AskedFor | undefined;
  /** Undefined: it has settled. */
  #resolve: Resolve | undefined;
  readonly #account: SampleAccount | undefined;
  /** A whole number: V8 makes an object of 16 bytes of another one. */
  readonly #sinceMs: number = Math.round(performance.now());
  /** Undefined: it was sent at once. */
  #inLineMs: number | undefined = undefined;

  constructor(
    sample: RewardSample,
    terms: SampleTerms,
    asked: AskedFor | undefined,
    resolve: Resolve,
  ) {
    const { budget } = terms.owner;
    this.sample = sample;
    this.#terms = terms;
    this.#asked = asked;
    this.#resolve = resolve;
    this.#account = budget && new SampleAccount(budget);
  }

  get lane(): string {
    return this.#terms.lane;
  }

  /** Resolves when its outcome is stored: until then it takes room. Undefined: it is not stored. */
  get kept(): Promise<void> | undefined {
    return this.#asked?.kept;
  }

  /** Aborted when nobody needs its outcome any more. Undefined: somebody always does. */
  get signal(): AbortSignal | undefined {
    return this.#asked?.signal;
  }

  /** It stood in line, and is being sent. Time with a worker that died counts as waiting. */
  waited(): void {
    this.#inLineMs = Math.max(0, performance.now() - this.#sinceMs);
  }

  /**
   * @param outcome as it has arrived: it is completed in place
   *
   * @param version of the worker's reward function
   */
  answered(outcome: Writable<SampleOutcome>, version: string): void {
    outcome.waitedMs += this.#inLineMs ?? 0;
    outcome.version ??= version;
    if (outcome.valid || outcome.latencyMs > 0) this.#terms.owner.ran(outcome.latencyMs);
    if (this.#account !== undefined) outcome.cost = this.#account.settle(outcome);
    const { signal } = this;
    // A score that was there first is paid for, and counts.
    if (signal?.aborted === true && !outcome.valid) this.reject(signal.reason);
    else this.resolve(outcome);
  }

  /** Resolves to whether a call of it may begin. */
  async maySpend(): Promise<boolean> {
    return this.#account === undefined || (await this.#account.mayBegin());
  }

  /** A call of it is over. */
  spent(use: Use): void {
    this.#account?.ended(use);
  }

  /** Its worker died, or can score nothing any more: it has no outcome. */
  lost(): void {
    this.#account?.lost();
    this.#terms.owner.lost(this);
  }

  /**
   * @param error NotEncodableError where it cannot travel, InvalidSampleError where it is none, or
   * why nothing can be scored any more
   *
   * @param version of the worker's reward function
   */
  refused(error: unknown, version: string): void {
    this.#account?.lost();
    const isOfSample = error instanceof NotEncodableError || error instanceof InvalidSampleError;
    if (isOfSample) this.resolve({ ...unsendable(error), version });
    else this.reject(error);
  }

  /** Settles a sample that is with no worker. Nobody hears of it where it has settled. */
  resolve(outcome: SampleOutcome): void {
    const settle = this.#resolve;
    if (settle === undefined) return;
    this.#resolve = undefined;
    const { ends } = this.#terms;
    let settled = outcome;
    try {
      if (ends !== undefined) settled = ends.settled(outcome);
    } catch (error) {
      // Who counts outcomes cannot count this one; the others of its message have theirs.
      return settle(Promise.reject(error));
    }
    settle(settled);
  }

  /** As `resolve`. */
  reject(reason: unknown): void {
    const settle = this.#resolve;
    this.#resolve = undefined;
    settle?.(rejection(reason, this.#terms.ends));
  }
}

/** Returns a rejected promise, of which these ends have heard. */
export async function rejection(reason: unknown, ends: ScoreEnds | undefined): Promise<never> {
  ends?.rejected(reason);
  throw reason;
}

/** A sample that cannot travel is invalid by itself; the others go on. */
function unsendable({ name, message }: Error): SampleOutcome {
  return {
    valid: false,
    error: { code: "INVALID_SAMPLE", name, message },
    ...notBegun,
  };
}

/** Measurements of a sample that was not begun. */
export const notBegun = { latencyMs: 0, attempts: 0, waitedMs: 0 } as const;
