/**
 * Sends single samples to workers: the one with the least load gets the next, none more than its
 * concurrency, lanes by their shares. No barrier, no polling.
 *
 * Invariant: every sample settles exactly once. A sample of a worker that died has no outcome and
 * goes first when it is sent again. The cost of an outcome is counted before its slot is free
 * again. No sample is sent when the cap on spending is reached, and where there is a cap each call
 * of a sample is allowed by its account.
 */

import { InvalidSampleError } from "@rayling/reward-manager-registry";
import type { RewardSample } from "@rayling/reward-manager-registry";
import { isRecord, itemAt } from "@rayling/reward-manager-registry/values";
import { RewardLoopClosedError } from "../errors.ts";
import { BriefRuns } from "../executor/brief-run-batching.ts";
import { Lanes } from "../limits/lanes.ts";
import type { SampleOutcome } from "../outcome.ts";
import type { RewardLoopSettings } from "../settings/settings.ts";
import type { Budget } from "../spend/cost-budget.ts";
import { readyPerSlot } from "../worker/slots.ts";
import type { AskedFor, ScoreEnds } from "./reward-source.ts";
import { Submissions } from "./submissions.ts";
import { notBegun, rejection } from "./submitted-sample.ts";
import type { SubmittedSample } from "./submitted-sample.ts";
import type { SupervisedWorker } from "./supervised-worker.ts";

/**
 * One in progress, one ready in its thread, two on their way to and from the worker (measured on 2
 * cores: 16 give a fifth more). More while its runs are brief.
 */
const SYNC_PER_EXECUTOR = 4;

/**
 * The most samples with a worker for each slot, most of them between two tries: an endpoint that is
 * down must not take in the whole input.
 */
const HELD_PER_SLOT = 8;

export class Dispatcher {
  #workers: readonly SupervisedWorker[];
  /** Replaced ones that still have samples. */
  #before: readonly SupervisedWorker[] = [];
  readonly #settings: RewardLoopSettings;
  readonly #budget: Budget | undefined;
  readonly #waiting: Lanes<SubmittedSample>;
  /** Samples whose worker died: they go first. */
  #again: SubmittedSample[] = [];
  readonly #listeners: Set<() => void> = new Set();
  #closed = false;
  readonly #brief: BriefRuns;
  readonly #submissions: Submissions;

  constructor(
    workers: readonly SupervisedWorker[],
    settings: RewardLoopSettings,
    budget: Budget | undefined,
  ) {
    this.#workers = workers;
    this.#settings = settings;
    this.#budget = budget;
    this.#brief = new BriefRuns(settings.policy.totalTimeoutMs !== undefined);
    this.#submissions = new Submissions({
      budget,
      ran: (latencyMs) => this.#brief.ended(latencyMs),
      lost: (submitted) => {
        const { signal } = submitted;
        if (this.#closed) submitted.reject(new RewardLoopClosedError());
        else if (signal?.aborted === true) submitted.reject(signal.reason);
        else this.#again.push(submitted);
      },
    });
    this.#waiting = new Lanes(settings.policy.limits?.settings.shares);
    this.#listenTo(workers);
  }

  /**
   * Sends waiting samples to these workers from now on. The old ones finish the samples that they
   * have.
   */
  replaceWorkers(workers: readonly SupervisedWorker[]): void {
    this.#before = [...this.#before, ...this.#workers].filter(({ load }) => load.held > 0);
    this.#workers = workers;
    this.#listenTo(workers);
    this.#pump();
    this.#tell();
  }

  /**
   * Whether a sample would be sent at once, or rejected, or has to stand in line so that its lane
   * gets its share: lanes share what becomes free among those that wait then. Streams alone take
   * what is free, and have nothing in line.
   */
  hasRoomFor(lane: string): boolean {
    if (this.#closed || this.#isLost) return true;
    if (this.#next() === undefined && this.#leastLoaded() !== undefined) return true;
    const isShared = this.#listeners.size > 1 || this.#waiting.size > this.#waiting.sizeOf(lane);
    return isShared && !this.isCongestedFor(lane);
  }

  /** Whether as many of the lane wait as may be at work: all slots may become free at once. */
  isCongestedFor(lane: string): boolean {
    const slots = this.#workers.reduce((sum, worker) => sum + this.#slotsOf(worker), 0);
    return this.#again.length + this.#waiting.sizeOf(lane) >= slots;
  }

  /** Called whenever there may be room. Returns what ends it. */
  onRoom(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Resolves to its outcome. Where it is kept, its slot is free when it has been, and none stands
   * ready behind it.
   */
  submit(
    sample: RewardSample,
    lane: string,
    asked: AskedFor | undefined,
    ends: ScoreEnds | undefined,
  ): Promise<SampleOutcome> {
    if (this.#closed) return rejection(new RewardLoopClosedError(), ends);
    if (asked?.signal?.aborted === true) return rejection(asked.signal.reason, ends);
    const submitted = this.#submissions.submit(sample, lane, asked, ends);
    const promise = this.#submissions.takePromise();
    if (isRecord(sample)) this.#begin(submitted);
    else submitted.refused(noSample(sample), itemAt(this.#workers, 0).version);
    return promise;
  }

  #begin(submitted: SubmittedSample): void {
    const { lane } = submitted;
    const worker = this.#isIdle ? this.#leastLoaded() : undefined;
    if (worker === undefined) {
      this.#waiting.push(lane, submitted);
      this.#pump();
    } else {
      this.#waiting.served(lane);
      worker.score(submitted);
    }
  }

  /** Whether no sample waits for anything: the next one may be sent at once. */
  get #isIdle(): boolean {
    return this.#waiting.isEmpty && this.#again.length === 0 && this.#budget?.isEmpty !== true;
  }

  /** See RewardSource. */
  giveUp(signal: AbortSignal): void {
    const isOfIt = (submitted: SubmittedSample): boolean => submitted.signal === signal;
    const waiting = [...this.#again.filter(isOfIt), ...this.#waiting.takeOut(isOfIt)];
    this.#again = this.#again.filter((submitted) => !isOfIt(submitted));
    for (const worker of [...this.#workers, ...this.#before]) worker.giveUp(signal);
    for (const submitted of waiting) submitted.reject(signal.reason);
    if (waiting.length > 0) this.#tell();
  }

  close(): void {
    this.#closed = true;
    this.#rejectAll(new RewardLoopClosedError());
    this.#tell();
  }

  #listenTo(workers: readonly SupervisedWorker[]): void {
    for (const worker of workers) {
      worker.onChange(() => {
        this.#pump();
        this.#tell();
      });
    }
  }

  #pump(): void {
    for (;;) {
      const submitted = this.#next();
      if (submitted === undefined) return;
      const isUnpaid = this.#budget?.isEmpty === true;
      const worker = this.#leastLoaded() ?? this.#leastLoaded(this.#ready);
      if (worker === undefined && !isUnpaid) break;
      if (this.#again.length > 0) this.#again.shift();
      else this.#waiting.shift();
      if (isUnpaid) submitted.resolve(this.#unpaid());
      else if (worker !== undefined) {
        submitted.waited();
        worker.score(submitted);
      }
    }
    if (this.#isLost) {
      void this.#workers[0]?.failure.then((error) => this.#rejectAll(error));
    }
  }

  get #isLost(): boolean {
    return this.#workers.every(({ state }) => state === "lost");
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  #next(): SubmittedSample | undefined {
    return this.#again[0] ?? this.#waiting.peek()?.item;
  }

  #unpaid(): SampleOutcome {
    const spent = this.#budget?.spent ?? 0;
    const message = `it was not scored: ${spent.toPrecision(6)} is spent, which is all that may be`;
    const error = { code: "SPEND_CAP", name: "SpendCapError", message } as const;
    const { version } = itemAt(this.#workers, 0);
    return { valid: false, error, ...notBegun, cost: 0, version };
  }

  /**
   * Behind a synchronous function samples would only queue up, out of reach of idle workers: what
   * is sent ahead takes next to no time.
   */
  #slotsOf({ traits: { overlaps } }: SupervisedWorker): number {
    const { concurrency, executors } = this.#settings;
    if (overlaps) return concurrency;
    return Math.min(concurrency, this.#brief.inFlight(SYNC_PER_EXECUTOR) * executors);
  }

  /**
   * The number of samples that may stand ready at each worker, for slots that become free while
   * others are on their way: fewer towards the end, when another worker may be idle. None with a
   * cap on spending, and none where one sample runs at a time, because it would wait there for
   * long.
   */
  get #ready(): number {
    const { concurrency } = this.#settings;
    const isKept = this.#next()?.kept !== undefined;
    const isSure =
      !isKept && this.#budget === undefined && this.#workers.every(({ traits }) => traits.overlaps);
    if (!isSure) return 0;
    const share = this.#waiting.size / (2 * this.#workers.length);
    return Math.floor(Math.min(readyPerSlot * concurrency, share));
  }

  /** @param ready beyond its slots */
  #leastLoaded(ready: number = 0): SupervisedWorker | undefined {
    let least: SupervisedWorker | undefined;
    for (const worker of this.#workers) {
      const slots = this.#slotsOf(worker);
      const isFree =
        worker.state === "alive" &&
        worker.load.atWork < slots + ready &&
        worker.load.held < HELD_PER_SLOT * slots;
      if (isFree && (least === undefined || worker.load.atWork < least.load.atWork)) least = worker;
    }
    return least;
  }

  #rejectAll(error: unknown): void {
    const waiting = [...this.#again, ...this.#waiting.drain()];
    this.#again = [];
    for (const submitted of waiting) submitted.reject(error);
  }
}

/** Code without types gives anything: nothing of it is sent. */
function noSample(given: unknown): InvalidSampleError {
  const type = Array.isArray(given) ? "a list" : typeof given;
  return new InvalidSampleError("type", "that of an object", given === null ? "null" : type);
}
