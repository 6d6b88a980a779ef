/**
 * One sample (or other work for the user's functions) on its way through a worker: settled exactly
 * once, even if its executors die.
 */

import { codeOf } from "@rayling/reward-manager-registry/values";
import type { AnnouncedLimits } from "../../faults/rate-limit-headers.ts";
import type { ScoreReply } from "../../executor/run.ts";
import type { ScoreWork } from "../../executor/score-work.ts";
import { givenUpFailure } from "../../outcome.ts";
import { failureOf } from "../../faults/thrown.ts";
import type { AttemptOutcome, ScoreFailure } from "../../outcome.ts";
import type { TokenUsage } from "../../outcome.ts";

export interface Job {
  readonly work: ScoreWork;
  /** Starts of the score function that are over. */
  attempts: number;
  /** The version of the reward function where it runs or ran last, if that is not the loop's. */
  version: string | undefined;
  /** It ran in an executor that has ended, and has to await `beforeAgain` before it runs again. */
  isToAsk: boolean;
  /** It blocked a new executor, and gets a second start for that. */
  isSecondStart: boolean;
  /** How long it has been at work; undefined while it is not. */
  ageMs: () => number | undefined;
  /** How long it stood ready where it ran last. */
  readyMs: number;
  /** Resolves when it may begin once more. Undefined: at once. */
  readonly beforeAgain: (() => Promise<void>) | undefined;
  /**
   * Where it may run: "shared" with others; "alone" after a loss without a known culprit; "fresh"
   * (alone, in a thread that has run nothing else) if a thread was lost again.
   */
  place: "shared" | "alone" | "fresh";
  /** The executor's lane that has it. */
  lane: object | undefined;
  /**
   * All calls of its sample, which are to be in different executors: one that blocks its thread
   * must not hold the other. Undefined: it is the only one.
   */
  readonly pair: readonly Job[] | undefined;
  /** Its other call is late: it does not stand behind others that are ready. */
  readonly isSecond: boolean;
  /** Reports its outcome. A run that was given up may go on after it. */
  readonly settle: (outcome: AttemptOutcome, announced?: AnnouncedLimits) => void;
  /** Called once after `settle` or `reject`, when no code of it runs any more. */
  readonly over: () => void;
  /** Aborted when the result is no longer needed. */
  readonly signal: AbortSignal | undefined;
  readonly reject: (error: unknown) => void;
}

/** Whether another call of its sample is in that lane. */
export function isBeside({ pair = [] }: Job, lane: object): boolean {
  return pair.some((job) => job.lane === lane);
}

/** Settles a job that is no longer needed and has not begun. */
export function giveUp(job: Job): void {
  settleGivenUp(job);
  job.over();
}

/** Settles a job that is no longer needed and may still be about to begin. */
export function settleGivenUp(job: Job): void {
  job.settle({ valid: false, error: givenUpFailure, latencyMs: 0, ...measuredBy(job) });
}

export function settleInvalid(
  job: Job,
  error: ScoreFailure,
  latencyMs: number,
  { announced, used }: Seen = {},
): void {
  job.attempts += 1;
  job.settle(
    { valid: false, error, latencyMs, ...measuredBy(job), ...(used === undefined ? {} : { used }) },
    announced,
  );
}

/** The client's reports about the endpoint. */
interface Seen {
  readonly announced?: AnnouncedLimits | undefined;
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
  const { latencyMs, announced } = reply;
  if (!reply.ok) return settleInvalid(job, reply.error, latencyMs, reply);
  const { rewardScore, rewardExtraInfo, readsContext } = reply;
  job.attempts += 1;
  const { attempts } = job;
  const outcome: ValidOutcome = { valid: true, rewardScore, rewardExtraInfo, latencyMs, attempts };
  addMeasured(outcome, job);
  if (readsContext === true) outcome.readsContext = true;
  if (reply.used !== undefined) outcome.used = reply.used;
  job.settle(outcome, announced);
}

/** Filled field by field: each sample of a run passes here. */
type ValidOutcome = Writable<Extract<AttemptOutcome, { readonly valid: true }>>;
type Writable<Fields> = { -readonly [Name in keyof Fields]: Fields[Name] };

type Measured = Pick<AttemptOutcome, "attempts" | "readyMs" | "version">;

function measuredBy(job: Job): Measured {
  const measured = { attempts: job.attempts };
  addMeasured(measured, job);
  return measured;
}

function addMeasured(outcome: Writable<Measured>, { readyMs, version }: Job): void {
  if (version !== undefined) outcome.version = version;
  if (readyMs !== 0) outcome.readyMs = readyMs;
}

/** A reply with a result. */
export type FinalReply = Exclude<ScoreReply, { readonly ok: undefined }>;

export function isReply(reply: unknown): reply is FinalReply {
  return typeof reply === "object" && reply !== null && !(reply instanceof Error) && "ok" in reply;
}
