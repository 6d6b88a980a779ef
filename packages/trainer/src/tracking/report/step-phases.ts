/**
 * The phases of one step over its rewards in flight. verl's timers "reward" and "adv" contain the
 * waiting for rewards. A phase that began before the step, as in a schedule that is one step ahead,
 * begins before 0.
 */

import type { StepLines } from "../files/current-timeline.ts";
import type { MetricsLine } from "../files/run-lines.ts";
import { inFlightOver } from "./in-flight.ts";
import type { InFlight } from "./in-flight.ts";

/** A phase, from and to in ms since the start of its step. */
export type PhaseSpan = readonly [name: string, fromMs: number, toMs: number];

/** Phases of one track; those that lie within others come behind them. */
export interface PhaseTrack {
  readonly track: string;
  readonly phases: readonly PhaseSpan[];
}

/** One step over time. */
export interface StepPhases {
  readonly step: number;
  /** When the trainer began it, in ms since 1970. */
  readonly startMs: number;
  /** The trainer's track first. */
  readonly tracks: readonly PhaseTrack[];
  /** Null without samples. */
  readonly inFlight: InFlight | null;
  /** How long it took, in seconds; null where it is unknown. */
  readonly seconds: number | null;
  /** How long it only waited for rewards, in seconds; null where it is unknown. */
  readonly exposedWaitSeconds: number | null;
  /** Share of the rewards' time that was not waited for; null where it is unknown. */
  readonly overlap: number | null;
  /** Mean age of the weights that generated its samples, in steps; null where it is unknown. */
  readonly staleness: number | null;
}

export function stepPhases(
  step: number,
  { phases, samples }: StepLines,
  metrics: MetricsLine["data"] = {},
): StepPhases {
  const byTrack = Map.groupBy(phases, ({ track }) => track ?? "trainer");
  const trainer = byTrack.get("trainer") ?? [];
  const others = [...byTrack].filter(([track]) => track !== "trainer");
  const startMs = least((trainer.length === 0 ? phases : trainer).map((one) => one.startMs));
  const known = (name: string): number | null => finite(metrics[name]);
  return {
    step,
    startMs,
    tracks: [["trainer", trainer] as const, ...others].map(([track, own]) => ({
      track,
      phases: own
        .map(({ name, startMs: from, endMs: to }): PhaseSpan => {
          return [name, rounded(from - startMs), rounded(to - startMs)];
        })
        .toSorted((a, b) => b[2] - b[1] - (a[2] - a[1])),
    })),
    inFlight: inFlightOver(samples, startMs),
    seconds: known("timing_s/step"),
    exposedWaitSeconds: known("reward/exposed_wait_s"),
    overlap: known("overlap_ratio"),
    staleness: known("training/off_policy/trajectory_staleness/mean"),
  };
}

function finite(value: number | null = null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}

/** To a tenth of a millisecond. */
function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}

function least(values: readonly number[]): number {
  return values.reduce((low, value) => Math.min(low, value), Infinity);
}
