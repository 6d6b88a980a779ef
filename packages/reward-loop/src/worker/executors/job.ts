/**
 * One sample (or other work for the user's functions) on its way through a worker: settled exactly
 * once, even if its executors die.
 */

import type { RewardSample } from "@rayling/reward-manager-registry";
import { codeOf } from "@rayling/reward-manager-registry/values";
import type { AnnouncedLimits } from "@rayling/reward-manager-registry/values";
import type { ScoreReply } from "../../executor/run.ts";
import type { ScoreWork } from "../../executor/score-work.ts";
import { givenUpFailure, untriedFailure } from "../../outcome.ts";
import { failureOf } from "../../faults/thrown.ts";
import type {
  EarlierFailure,
  InvalidOutcome,
  SampleOutcome,
  ScoreFailure,
  ValidOutcome,
  Writable,
} from "../../outcome.ts";
import type { TokenUsage } from "../../outcome.ts";
import type { SignalOfCall } from "../../faults/call-signal.ts";
import type { Slots } from "../slots.ts";

export interface SubmitOptions {
  /** A slot of these is taken before it begins, and given back when it is settled. */
  readonly slots?: Slots | undefined;
  /** Aborted when the result is no longer needed. */
  readonly signal?: SignalOfCall | undefined;
  /** The call that the job makes, if somebody wants to hear of it. */
  readonly call?: JobCall | undefined;
  /** All concurrent calls of a sample, in one shared object. */
  readonly pair?: CallPair | undefined;
}

/**
 * The calls of a hedge, which go to different executors, if there are several. No list: V8 makes
 * room for 17 jobs in one that grows, and most first calls get no second one.
 */
export interface CallPair {
  first: Job | undefined;
  second: Job | undefined;
}

/** Hears what becomes of its job. */
export interface JobCall {
  /** Its job, set when it is made. */
  job?: Job | undefined;
  /** It has its outcome. Called before its ends. */
  answered(outcome: SampleOutcome, seen?: OfEndpoint): void;
  /** Whether `beforeAgain` is asked; otherwise it begins anew at once. */
  readonly asksAgain: boolean;
  /**
   * Called when it was begun and lost its executor; it begins anew when this resolves. If it
   * rejects, so does the sample, or it is given up where the signal is aborted.
   */
  beforeAgain(): Promise<void>;
  /** No code of it runs any more: a function that was given up may go on after its outcome. */
  over(): void;
}

/** The sender of jobs: one of the two is called for each job, once. */
export interface JobEnds {
  /**
   * @param outcome belongs to the receiver, who may complete it
   *
   * @param id the sender's number for the job
   */
  settled(outcome: Writable<SampleOutcome>, id: number): void;
  /** Nothing can be run any more. */
  rejected(error: unknown, id: number): void;
}

/** The pool that a job is in. */
export interface JobOwner {
  /** Gives the job to an executor, as soon as one has room. */
  place(job: Job): void;
  /** The job has its outcome, and is about to be settled. */
  hasOutcome(): void;
}

/** The runs of the executor that has a job. */
interface JobRuns {
  /** Returns how long the job has been at work; undefined while it is not. */
  jobAgeMs(job: Job): number | undefined;
}

/** The traces that executors have left on a job. */
export interface JobPast {
  /** Starts of the score function that are over. */
  readonly attempts: number;
  /** The version of the reward function where it runs or ran last, if that is not the loop's. */
  readonly version: string | undefined;
  /** It ran in an executor that has ended, and has to await `beforeAgain` before it runs again. */
  readonly isToAsk: boolean;
  /** It blocked a new executor, and gets a second start for that. */
  readonly isSecondStart: boolean;
  /** It was given up, without a signal. */
  readonly isGivenUp: boolean;
  /**
   * Where it may run: "shared" with others; "alone" after a loss without a known culprit; "fresh"
   * (alone, in a thread that has run nothing else) if a thread was lost again.
   */
  readonly place: "shared" | "alone" | "fresh";
}

const noPast: JobPast = {
  attempts: 0,
  version: undefined,
  isToAsk: false,
  isSecondStart: false,
  isGivenUp: false,
  place: "shared",
};

export class Job {
  /** The sender's number for it; 0: it has none. */
  readonly id: number;
  /** The sample that is to be scored, unless it is other work. */
  sample: RewardSample | undefined = undefined;
  work: ScoreWork | undefined = undefined;
  /** One object for all jobs whose first executor has them: many wait at once. */
  past: JobPast = noPast;
  /** How long it stood ready where it ran last. */
  readyMs: number = 0;
  /** The executor that has it. */
  executor: object | undefined = undefined;
  /** The runs that it was last one of, and its number there. */
  runs: JobRuns | undefined = undefined;
  runId: number = 0;
  readonly #ends: JobEnds;
  readonly #options: SubmitOptions;
  readonly #owner: JobOwner;
  /** How long it waited for its slot; until then less the time at which it began to. */
  #waitedMs: number = 0;

  constructor(id: number, ends: JobEnds, options: SubmitOptions, owner: JobOwner) {
    this.id = id;
    this.#ends = ends;
    this.#options = options;
    this.#owner = owner;
    const { pair, call } = options;
    if (call !== undefined) call.job = this;
    if (pair === undefined) return;
    if (pair.first === undefined) pair.first = this;
    else pair.second = this;
  }

  note(change: Partial<JobPast>): void {
    this.past = { ...this.past, ...change };
  }

  /** Aborted when the result is no longer needed. */
  get signal(): SignalOfCall | undefined {
    return this.#options.signal;
  }

  /** Nobody needs its result any more. */
  get isNeedless(): boolean {
    return this.signal?.aborted === true || this.past.isGivenUp;
  }

  /** Resolves when it may begin once more. Undefined: at once. */
  get beforeAgain(): (() => Promise<void>) | undefined {
    const { call } = this.#options;
    return call?.asksAgain === true ? () => call.beforeAgain() : undefined;
  }

  /**
   * All calls of its sample, which are to be in different executors: one that blocks its thread
   * must not hold the other. Undefined: it is the only one.
   */
  get pair(): Readonly<CallPair> | undefined {
    return this.#options.pair;
  }

  /** Its other call is late: it does not stand behind others that are ready. */
  get isSecond(): boolean {
    return this.pair?.second === this;
  }

  /** How long it has been at work; undefined while it is not. */
  ageMs(): number | undefined {
    return this.runs?.jobAgeMs(this);
  }

  /** It waits for a slot. */
  waits(): void {
    this.#waitedMs = -performance.now();
  }

  /** It waits for its slot, and may be one of those that are given up. */
  givenUp(ids: ReadonlySet<number>): void {
    if (this.sample !== undefined && ids.has(this.id)) this.note({ isGivenUp: true });
  }

  /** It has its slot, if it takes one. */
  begin(): void {
    if (this.#waitedMs < 0) this.#waitedMs += performance.now();
    this.#owner.place(this);
  }

  /** Reports its outcome. A run that was given up may go on after it. */
  settle(outcome: Writable<SampleOutcome>, seen: OfEndpoint = {}): void {
    const { slots, call } = this.#options;
    this.#owner.hasOutcome();
    call?.answered(outcome, seen);
    outcome.waitedMs += this.#waitedMs;
    this.#ends.settled(outcome, this.id);
    slots?.leave();
  }

  reject(error: unknown): void {
    const { slots } = this.#options;
    this.#ends.rejected(error, this.id);
    // In a turn of its own: the next one may be rejected as soon as it begins, and so on.
    if (slots !== undefined) queueMicrotask(() => slots.leave());
  }

  /** Called once after `settle` or `reject`, when no code of it runs any more. */
  over(): void {
    this.#options.call?.over();
  }
}

/** Whether another call of its sample is in that executor. */
export function isBeside({ pair }: Job, executor: object): boolean {
  return pair?.first?.executor === executor || pair?.second?.executor === executor;
}

/** Settles a job that is no longer needed and has not begun. */
export function giveUp(job: Job): void {
  settleGivenUp(job);
  job.over();
}

/** Settles a job that is no longer needed and may still be about to begin. */
export function settleGivenUp(job: Job): void {
  job.settle(invalid(job, givenUpFailure, { latencyMs: 0, attempts: job.past.attempts }));
}

/** Settles a suspect for which no executor can be started. */
export function settleUntried(job: Job, error: unknown): void {
  const { attempts } = job.past;
  job.settle(invalid(job, untriedFailure(error), { latencyMs: 0, attempts }));
  job.over();
}

export function settleInvalid(
  job: Job,
  error: ScoreFailure,
  latencyMs: number,
  { used, announced, further, failed }: Seen = {},
): void {
  const seen = { announced, further, failed };
  const outcome = invalid(job, error, { latencyMs, attempts: job.past.attempts + 1 });
  job.settle(used === undefined ? outcome : { ...outcome, used }, seen);
}

function invalid(
  { readyMs, past: { version } }: Job,
  error: ScoreFailure,
  attempted: Pick<InvalidOutcome, "latencyMs" | "attempts">,
): Writable<InvalidOutcome> {
  const outcome = { valid: false, error, ...attempted, waitedMs: readyMs } as const;
  return version === undefined ? { ...outcome } : { ...outcome, version };
}

/** The client's reports that its limiter hears of. */
export interface OfEndpoint {
  readonly announced?: AnnouncedLimits | undefined;
  /** Requests beyond the first. */
  readonly further?: number | undefined;
  /** The last failed request. */
  readonly failed?: EarlierFailure | undefined;
}

/** The client's reports about the endpoint. */
interface Seen extends OfEndpoint {
  readonly used?: TokenUsage | undefined;
}

/**
 * Settles a job by the result of its executor's call: a reply, or a rejection.
 *
 * @param used the usage, where the reply cannot have it
 */
export function settleByReply(job: Job, reply: unknown, used?: TokenUsage): void {
  // A rejection comes from the runtime, usually because the function's result cannot travel.
  if (!isReply(reply)) {
    const failure = failureOf(reply);
    const isUnsendable = codeOf(reply) === "NOT_ENCODABLE";
    const reported = isUnsendable ? ({ ...failure, code: "NOT_ENCODABLE" } as const) : failure;
    return settleInvalid(job, reported, 0, used === undefined ? {} : { used });
  }
  const { latencyMs } = reply;
  if (!reply.ok) return settleInvalid(job, reply.error, latencyMs, reply);
  const { rewardScore, rewardExtraInfo, readsContext } = reply;
  const { readyMs: waitedMs, past } = job;
  // Filled field by field: each sample of a run passes here.
  const outcome: Writable<ValidOutcome> = {
    valid: true,
    rewardScore,
    rewardExtraInfo,
    latencyMs,
    attempts: past.attempts + 1,
    waitedMs,
  };
  if (past.version !== undefined) outcome.version = past.version;
  if (readsContext === true) outcome.readsContext = true;
  if (reply.used !== undefined) outcome.used = reply.used;
  job.settle(outcome, reply);
}

export function isReply(reply: unknown): reply is ScoreReply {
  return typeof reply === "object" && reply !== null && !(reply instanceof Error) && "ok" in reply;
}
