/**
 * The training's requests for rewards, one for each batch, in the lane of training or in that of
 * validation. A request begins at once, or, if so arranged, after the requests before it.
 */

import {
  RewardFailuresError,
  RewardLoopManager,
  RewardRequest,
  rewardVersionsOf,
} from "@rayling/reward-loop";
import type { EarlierRows, RewardLoopOptions } from "@rayling/reward-loop";
import { isRecord } from "@rayling/reward-manager-registry/values";
import type { RewardArrangement } from "../settings/program-options.ts";
import { rewardSampleOf } from "../samples/training-sample.ts";
import type { TrainingSample } from "../samples/training-sample.ts";

export type RewardLane = "training" | "validation";

/** The functions that score, and what becomes of scores that others gave. */
export interface PresentFunctions {
  /** Versions of the functions, also of one that takes over at a cap. */
  readonly versions: readonly string[];
  /** `resume.stale` of the loop; undefined where it does not go on with its log. */
  readonly stale: "refuse" | "rescore" | "keep" | undefined;
  /** `onFailure.fallback`, where it is known: a loop that somebody else opened does not say it. */
  readonly fallback: { readonly value: number | string | undefined } | undefined;
}

/**
 * Validation belongs to no step: its failures are metrics, and are no share of a batch that could
 * fail.
 */
const noShare: EarlierRows = { rows: Infinity, failures: {} };

export class RewardRequests implements AsyncDisposable {
  readonly loop: RewardLoopManager;
  /**
   * How many samples are scored at a time: the loop's, or fewer where its limits let fewer through.
   */
  readonly slots: number;
  /** The functions as they were when the training was opened. */
  readonly functions: PresentFunctions;
  readonly #arrangement: RewardArrangement;
  readonly #ownsLoop: boolean;
  /** When everything that stands in line is done. */
  #line: Promise<void> = Promise.resolve();
  #inFlight = new Set<RewardRequest>();
  /** Requests of which rows may be scored still, those that have failed, too. */
  readonly #unsettled = new Set<RewardRequest>();
  readonly #overLimit = new WeakSet<RewardRequest>();

  private constructor(
    loop: RewardLoopManager,
    options: RewardLoopOptions | undefined,
    arrangement: RewardArrangement,
    versions: readonly string[],
  ) {
    this.loop = loop;
    this.functions = { versions, ...(options === undefined ? unknownFate : fateOf(options)) };
    this.slots = Math.min(loop.slots, options === undefined ? Infinity : limitOf(options));
    this.#ownsLoop = options !== undefined;
    this.#arrangement = arrangement;
  }

  /** Rejects as `RewardLoopManager.create`. */
  static async open(
    reward: RewardLoopManager | RewardLoopOptions,
    arrangement: RewardArrangement,
  ): Promise<RewardRequests> {
    if (reward instanceof RewardLoopManager) {
      return new RewardRequests(reward, undefined, arrangement, [reward.version]);
    }
    const loop = await RewardLoopManager.create(reward);
    // The present version of the loop lacks that of a judge at a cap.
    const { versions } = await rewardVersionsOf(reward);
    return new RewardRequests(loop, reward, arrangement, versions);
  }

  /** Rewards that are not there yet, of all requests. */
  get inFlight(): number {
    return [...this.#inFlight].reduce((sum, request) => sum + request.left, 0);
  }

  /** Whether more of its rows are invalid than may be (`onFailure.failAbove`). */
  isOverLimit(request: RewardRequest): boolean {
    return this.#overLimit.has(request);
  }

  /** A request, and what begins to score one of its rows. @param uids one for each row */
  open(uids: readonly string[], groupSize: number, lane: RewardLane): RewardTicket {
    const earlier = lane === "validation" ? noShare : undefined;
    const ticket = this.#ticket({ uids, groupSize, lane, earlier });
    ticket.begin();
    return ticket;
  }

  /**
   * A request for rows of a checkpoint, which takes its place among the others when its missing
   * rows are submitted.
   *
   * @param earlier rows of the same batch that a run before has trained on or dropped
   */
  restore(uids: readonly string[], groupSize: number, earlier: EarlierRows): RewardTicket {
    return this.#ticket({ uids, groupSize, lane: "training", earlier });
  }

  #ticket(rows: RewardRows): RewardTicket {
    const { lane } = rows;
    const { validationInLine, validationLoop } = this.#arrangement;
    const ownLoop = lane === "validation" && !validationInLine ? validationLoop : undefined;
    const request = new RewardRequest(ownLoop ?? this.loop, rows);
    this.#unsettled.add(request);
    request.whenSettled().then(
      () => this.#unsettled.delete(request),
      (error: unknown) => {
        if (error instanceof RewardFailuresError) this.#overLimit.add(request);
      },
    );
    return new RewardTicket(request, lane, () => this.#enter(request, lane));
  }

  /** Returns when the rows of the request may begin; undefined: at once. */
  #enter(request: RewardRequest, lane: RewardLane): Promise<void> | undefined {
    const { batchBarrier, validationInLine } = this.#arrangement;
    this.#inFlight.add(request);
    // A failure rejects its own request; the requests after it go on.
    const over = request.whenSettled().catch(() => undefined);
    void over.then(() => this.#inFlight.delete(request));
    const waitsInLine = lane === "training" ? batchBarrier : validationInLine;
    if (!waitsInLine) return undefined;
    const turn = this.#line;
    this.#line = turn.then(() => over);
    return turn;
  }

  /** The training is over: nobody takes what is still on the way. */
  giveUp(): void {
    for (const request of this.#unsettled) request.giveUp();
    this.#unsettled.clear();
  }

  async close(): Promise<void> {
    if (this.#ownsLoop) await this.loop.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

interface RewardRows {
  /** One for each row. */
  readonly uids: readonly string[];
  readonly groupSize: number;
  readonly lane: RewardLane;
  readonly earlier: EarlierRows | undefined;
}

type Fate = Omit<PresentFunctions, "versions">;

const unknownFate: Fate = { stale: undefined, fallback: undefined };

function fateOf({ resume = false, onFailure }: RewardLoopOptions): Fate {
  const resumed = resume === true ? {} : resume;
  const stale = resumed === false ? undefined : (resumed.stale ?? "refuse");
  return { stale, fallback: { value: onFailure?.fallback } };
}

/**
 * Returns the bound of the loop's limits, or of the manager rate_limited, whose options are limits.
 */
function limitOf({ limits, manager, managerOptions }: RewardLoopOptions): number {
  const concurrency = limits?.concurrency;
  if (typeof concurrency === "number") return concurrency;
  // An adaptive limit may grow to its maximum.
  if (concurrency !== undefined) {
    return concurrency === "auto" ? Infinity : (concurrency.max ?? Infinity);
  }
  if (manager !== "rate_limited" && manager !== "limited") return Infinity;
  const most = isRecord(managerOptions) ? managerOptions["maxConcurrent"] : undefined;
  return typeof most === "number" ? most : 1;
}

export class RewardTicket {
  readonly request: RewardRequest;
  readonly #lane: RewardLane;
  readonly #enter: () => Promise<void> | undefined;
  #turn: Promise<void> | undefined;
  #hasFailed = false;

  constructor(request: RewardRequest, lane: RewardLane, enter: () => Promise<void> | undefined) {
    this.request = request;
    this.#lane = lane;
    this.#enter = enter;
  }

  /** Takes its place among the requests, once, before the first row is submitted. */
  begin(): void {
    this.#turn = this.#enter();
  }

  /** Begins, and begins to score the rows without a known score. @param samples of all rows */
  submitMissing(samples: readonly TrainingSample[]): void {
    this.begin();
    for (const [row, sample] of samples.entries()) {
      if (this.request.scoredOutcomeOf(row) === undefined) this.submit(row, sample);
    }
  }

  /**
   * Lets `submitAll` submit the rows. Where it rejects, the request fails with it: a request that
   * lacks rows for ever would hold up those behind it.
   */
  async fill(submitAll: () => Promise<void>): Promise<void> {
    try {
      await submitAll();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
  }

  /** Begins to score a sample; a rollout with a score of its own is not scored. */
  submit(row: number, sample: TrainingSample): void {
    const { rewardScore } = sample.rollout;
    const step = sample.generatedAt + (this.#lane === "training" ? 1 : 0);
    const submit = (): void => {
      // Nobody takes the rows of a request that failed while this one stood in line.
      if (this.#hasFailed) return;
      if (rewardScore === undefined) this.request.submit(row, rewardSampleOf(sample, step));
      else this.request.know(row, { valid: true, rewardScore, ...ofItsOwn });
    };
    if (this.#turn === undefined) submit();
    else this.#turn.then(submit).catch((error: unknown) => this.#fail(error));
  }

  #fail(error: unknown): void {
    this.#hasFailed = true;
    this.request.fail(error);
  }
}

const ofItsOwn = { rewardExtraInfo: {}, attempts: 0, latencyMs: 0, waitedMs: 0 } as const;
