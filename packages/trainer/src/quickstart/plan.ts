/**
 * How many steps fit the time, and how slow the judge may be, from the time that a step computes.
 * Pure.
 */

import type { ScheduleName } from "../settings/program-options.ts";
import { sumOf } from "../values/sums.ts";
import { settings } from "./settings.ts";

/** Measurements and wishes before the training. */
export interface MeasuredQuickstart {
  /** Milliseconds of a step without waiting. */
  readonly computeMs: number;
  readonly schedules: readonly ScheduleName[];
  /** Milliseconds that are left. */
  readonly leftMs: number;
  /** Given ones are kept. */
  readonly steps?: number | undefined;
  readonly latencyMs?: number | undefined;
}

export interface QuickstartPlan {
  /** Steps under each schedule. */
  readonly steps: number;
  /** Milliseconds of the judge's slowest answer. */
  readonly latencyMs: number;
  /** Expected seconds of the training. */
  readonly seconds: number;
}

/**
 * The judge waits for less before there are fewer than the least steps; with the least of both it
 * takes what it takes.
 */
export function quickstartPlan(measured: MeasuredQuickstart): QuickstartPlan {
  const { computeMs, schedules, leftMs } = measured;
  const { factor, seconds: own } = settings.margin;
  const { least, most } = settings.steps;
  const roundMs = (waitMs: number): number =>
    factor * sumOf(schedules.map((schedule) => stepMs(schedule, computeMs, waitMs)));
  const trainingMs = Math.max(0, leftMs - 1000 * own);
  const wantedMs = measured.latencyMs === undefined ? undefined : waitOf(measured.latencyMs);
  let waitMs = wantedMs ?? computeMs * settings.waitPerCompute;
  if (wantedMs === undefined) {
    const leastMs = computeMs * settings.leastWaitPerCompute;
    const count = measured.steps ?? least;
    while (waitMs > leastMs && count * roundMs(waitMs) > trainingMs) {
      waitMs = Math.max(leastMs, waitMs * 0.95);
    }
  }
  const budgetMs = Math.min(trainingMs, 1000 * settings.seconds.training);
  const fitting = Math.floor(budgetMs / roundMs(waitMs));
  const steps = measured.steps ?? Math.min(most, Math.max(least, fitting));
  return {
    steps,
    latencyMs: measured.latencyMs ?? waitMs / answersInTurn,
    seconds: (steps * roundMs(waitMs)) / 1000 + own,
  };
}

/**
 * The slots' share of all answers, which take half of the slowest on average, and the last ones,
 * when some slots have nothing left to do.
 */
const answersInTurn = (settings.trainBatchSize * settings.n) / settings.slots / 2 + 0.6;

function waitOf(latencyMs: number): number {
  return latencyMs * answersInTurn;
}

/** Schedules that generate ahead compute while they wait. */
function stepMs(schedule: ScheduleName, computeMs: number, waitMs: number): number {
  const isSerial = schedule === "sync" || schedule === "mini-batch-pipeline";
  return isSerial ? computeMs + waitMs : Math.max(1.15 * computeMs, waitMs);
}
