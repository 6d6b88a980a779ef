/** A sample, or other work for the user's functions, in the executor's thread, and its reply. */

import type { RewardResult, RewardSample } from "@rayling/reward-manager-registry";
import type { AnnouncedLimits } from "../faults/rate-limit-headers.ts";
import type { ScoreFailure, TokenUsage } from "../outcome.ts";
import type { ScoreWork } from "./score-work.ts";

/** The result of one run. */
export type ScoreReply = {
  readonly latencyMs: number;
  readonly overlaps: boolean;
  /** The limits that its endpoint announced, where a client reported them. */
  readonly announced?: AnnouncedLimits;
  readonly readsContext?: true;
  /** The usage of its answers, where a client reported it. */
  readonly used?: TokenUsage;
} & (({ readonly ok: true } & RewardResult) | { readonly ok: false; readonly error: ScoreFailure });

/** It stands ready until it begins, and is at work until its reply is made. */
export interface Run {
  readonly id: number;
  readonly slot: number;
  /** The sample that is to be scored, unless it is other work. */
  readonly sample: RewardSample | undefined;
  readonly work: ScoreWork | undefined;
  /** Called on its account, once. */
  readonly answer: (reply: ScoreReply, run: Run) => void;
  /** It was begun by the queue of samples, and takes room there. */
  isAtWork: boolean;
  /** How many of the user's functions are at work on it: a manager calls a score function. */
  depth: number;
  startedAt: number | undefined;
  /** Created when its signal is first read. */
  abort: AbortController | undefined;
  isAborted: boolean;
  /** The limits that its endpoint announced last. */
  announced: AnnouncedLimits | undefined;
  /** Whether its function has read where and when it is called. */
  readsContext: boolean;
  /** The usage of the answers so far, as far as their client reports it. */
  used: TokenUsage | undefined;
}

/** Returns a run that has not begun. */
export function newRun({
  id,
  slot,
  sample,
  work,
  answer,
}: Pick<Run, "id" | "slot" | "answer"> & Partial<Pick<Run, "sample" | "work">>): Run {
  return {
    id,
    slot,
    sample,
    work,
    answer,
    isAtWork: false,
    depth: 0,
    startedAt: undefined,
    abort: undefined,
    isAborted: false,
    announced: undefined,
    readsContext: false,
    used: undefined,
  };
}
