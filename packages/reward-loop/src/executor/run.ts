/** A sample, or other work for the user's functions, in the executor's thread, and its reply. */

import type {
  RewardResult,
  RewardSample,
  ScoreCall,
  ScoreInput,
} from "@rayling/reward-manager-registry";
import type { AnnouncedLimits } from "@rayling/reward-manager-registry/values";
import type { EarlierFailure, ScoreFailure, TokenUsage } from "../outcome.ts";

/** The result of one run. */
export type ScoreReply = {
  readonly latencyMs: number;
  readonly overlaps: boolean;
  /** The limits that its endpoint announced, where a client reported them. */
  readonly announced?: AnnouncedLimits;
  readonly readsContext?: true;
  /** Requests beyond the first, as far as its limiter has let them through. */
  readonly further?: number;
  /** The usage of its answers, where a client reported it. */
  readonly used?: TokenUsage;
  /** Its last failed request, where it has failed itself. */
  readonly failed?: EarlierFailure;
} & (({ readonly ok: true } & RewardResult) | { readonly ok: false; readonly error: ScoreFailure });

/** Hears of the end of its runs. Shared by all whose replies go the same way. */
export interface RunEnds {
  settled(run: Run, result: RewardResult): void;
  failed(run: Run, error: unknown): void;
  /** Called on its account, once. */
  answer(run: Run, reply: ScoreReply): void;
}

/** Reports of the clients of a run's function, and the reading of its context. */
interface Seen {
  /** The limits that its endpoint announced last. */
  announced?: AnnouncedLimits;
  /** Its function has read where and when it is called. */
  readsContext?: true;
  /** Requests beyond the first, as far as its limiter has let them through. */
  further?: number;
  /** The usage of the answers so far, as far as their client reports it. */
  used?: TokenUsage;
  /** The last request of it that failed, as far as its client reports it. */
  failed?: EarlierFailure;
}

/**
 * It stands ready until it begins, and is at work until its reply is made. It is also the call of
 * its manager: one object, because as many wait as samples are asked at once.
 */
export class Run implements ScoreCall {
  readonly id: number;
  readonly slot: number;
  /** The sample that is to be scored; `noSample` for other work. */
  readonly sample: RewardSample;
  readonly ends: RunEnds;
  given: ScoreInput | undefined = undefined;
  /** It was begun by the queue of samples, and takes room there. */
  isAtWork: boolean = false;
  /** How many of the user's functions are at work on it: a manager calls a score function. */
  depth: number = 0;
  /** Created when its signal is first read. */
  abort: AbortController | undefined = undefined;
  /** Its result is no longer needed, or its function has ended: its signal is aborted. */
  isAborted: boolean = false;
  /** Undefined for most. */
  #seen: Seen | undefined = undefined;

  constructor(id: number, slot: number, sample: RewardSample, ends: RunEnds) {
    this.id = id;
    this.slot = slot;
    this.sample = sample;
    this.ends = ends;
  }

  get seen(): Readonly<Seen> {
    return this.#seen ?? nothing;
  }

  saw(seen: Seen): void {
    this.#seen = { ...this.#seen, ...seen };
  }

  settled(result: RewardResult): void {
    this.ends.settled(this, result);
  }

  failed(error: unknown): void {
    this.ends.failed(this, error);
  }
}

const nothing: Seen = {};

/** In the place of the sample of other work. */
export const noSample: RewardSample = { dataSource: "", response: "", groundTruth: null };
