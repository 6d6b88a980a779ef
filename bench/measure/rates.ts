/**
 * How many units per second, as Ray's microbenchmark counts: a warm-up that is thrown away, then
 * rounds, mean and standard deviation of the rounds.
 *
 * The clock is looked at about ten times a second, and between two looks the event loop turns at
 * least once. ray/rows.py counts the same way.
 */
import { setImmediate as turn } from "node:timers/promises";

export interface RatePlan {
  readonly warmUpMs: number;
  readonly rounds: number;
  /** At least this long each. */
  readonly roundMs: number;
}

/** One call of `run` does `units` units; it is awaited when it answers with a promise. */
export interface Workload {
  readonly units: number;
  readonly run: () => unknown;
}

export interface Rate {
  readonly mean: number;
  readonly sd: number;
  /** Units per second of each round, in order of time. */
  readonly rounds: readonly number[];
}

export async function measureRate({ units, run }: Workload, plan: RatePlan): Promise<Rate> {
  const warmUp = await repeat(run, 1, plan.warmUpMs);
  const step = Math.floor(warmUp.runs / (plan.warmUpMs / 100)) + 1;
  const rounds: number[] = [];
  for (let round = 0; round < plan.rounds; round++) {
    const { runs, ms } = await repeat(run, step, plan.roundMs);
    rounds.push((units * runs * 1000) / ms);
  }
  return rateOf(rounds);
}

export function rateOf(rounds: readonly number[]): Rate {
  const mean = rounds.reduce((sum, rate) => sum + rate, 0) / rounds.length;
  const variance = rounds.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / rounds.length;
  return { mean, sd: Math.sqrt(variance), rounds };
}

async function repeat(
  run: () => unknown,
  step: number,
  atLeastMs: number,
): Promise<{ readonly runs: number; readonly ms: number }> {
  const started = performance.now();
  let runs = 0;
  let ms = 0;
  while (ms < atLeastMs) {
    for (let index = 0; index < step; index++) {
      const result = run();
      if (result instanceof Promise) await result;
    }
    runs += step;
    await turn();
    ms = performance.now() - started;
  }
  return { runs, ms };
}
