/** Who is to blame for the end of an executor, by its run table and by the cause of its death. */

import type { DeathCause } from "@rayling/core";
import { deathFailure } from "../../outcome.ts";
import type { ScoreFailure } from "../../outcome.ts";
import { originOf } from "./death-origin.ts";
import type { SentRun, SentRuns } from "./sent-runs.ts";

export interface Blame {
  /** The pending run that ended or blocked its executor: this is its outcome. */
  readonly culprit?: {
    readonly run: SentRun;
    readonly failure: ScoreFailure;
    readonly ageMs: number;
  };
  /** Whether a sample is known to be guilty, pending or not. */
  readonly isKnown: boolean;
  /** Selects started runs that are to be tried one by one. */
  readonly isSuspect: (run: SentRun) => boolean;
}

const innocent = (): boolean => false;

/** The executor was ended for a reason that is no run's fault. */
export const blamesNobody: Blame = { isKnown: false, isSuspect: innocent };

/** A run that has its outcome already is guilty: the pending ones are innocent. */
export const blamesEarlierRun: Blame = { isKnown: true, isSuspect: innocent };

/** The code that did it is unknown. */
export const blamesEveryone: Blame = { isKnown: false, isSuspect: () => true };

export function blames(run: SentRun, failure: ScoreFailure, ageMs: number): Blame {
  return { culprit: { run, failure, ageMs }, isKnown: true, isSuspect: innocent };
}

/** A process may be ended from outside: its run is guilty only if it ends a process alone. */
export function blameForDeath(cause: DeathCause, runs: SentRuns): Blame {
  const origin = originOf(cause);
  if (origin === "outside") return blamesNobody;
  if (runs.overdue.has(runs.runningId)) return blamesEarlierRun;
  const running = runs.pending.get(runs.runningId) ?? onlyRunOf(runs);
  if (running === undefined) return blamesEveryone;
  if (origin === "unclear" && running.job.past.place !== "fresh") {
    return { isKnown: false, isSuspect: ({ id }) => id === running.id };
  }
  return blames(running, deathFailure(cause), runs.startedAgoMs(running) ?? 0);
}

/** Returns the pending run of an executor that has never had another one. */
export function onlyRunOf(runs: SentRuns): SentRun | undefined {
  const [only] = runs.pending.values();
  return runs.count === 1 ? only : undefined;
}
