/**
 * Runs contestants against each other in one run: short rounds, all contestants in each round, the order rotated from round to round.
 *
 * So a slow minute of the machine hits everybody alike. tinybench times the iterations; this file owns only who runs when. The first round
 * is a warm-up and is thrown away. An iteration that rejects ends the run: a wrong answer is not a figure.
 */
import { Bench } from "tinybench";

export interface Contestant {
  readonly name: string;
  /** One timed iteration, complete and verified when it resolves. */
  readonly run: () => Promise<void>;
}

export interface RoundPlan {
  readonly rounds: number;
  /** At least this long, and at least `minIterations`, per contestant and round. */
  readonly roundMs: number;
  readonly minIterations: number;
}

export interface Samples {
  readonly name: string;
  /** Of all rounds, in ms per iteration, ascending. */
  readonly sortedMs: readonly number[];
  /** The median of each round, in ms, in order of time. */
  readonly roundMediansMs: readonly number[];
}

/** @param onRound is told after each round, the warm-up being round 0 */
export async function interleave(
  contestants: readonly Contestant[],
  plan: RoundPlan,
  onRound: (round: number) => void,
): Promise<Samples[]> {
  const all = contestants.map(({ name }) => ({
    name,
    samples: [] as number[],
    medians: [] as number[],
  }));
  for (let round = 0; round <= plan.rounds; round++) {
    for (let turn = 0; turn < contestants.length; turn++) {
      const index = (turn + round) % contestants.length;
      const contestant = contestants[index] as Contestant;
      const samples = await oneRound(contestant, plan);
      if (round === 0) continue;
      all[index]?.samples.push(...samples);
      all[index]?.medians.push(percentile(samples, 0.5));
    }
    onRound(round);
  }
  return all.map(({ name, samples, medians }) => ({
    name,
    sortedMs: samples.toSorted((a, b) => a - b),
    roundMediansMs: medians,
  }));
}

/** A few unmeasured iterations come first, because the contestant's thread has slept through the others' turns. */
async function oneRound({ name, run }: Contestant, plan: RoundPlan): Promise<readonly number[]> {
  const bench = new Bench({
    time: plan.roundMs,
    iterations: plan.minIterations,
    warmupTime: plan.roundMs / 10,
    warmupIterations: 1,
    retainSamples: true,
    throws: true,
  });
  bench.add(name, run, { async: true });
  const [task] = await bench.run();
  if (task?.result.state !== "completed")
    throw new Error(`${name}: the run ended ${task?.result.state ?? "nowhere"}`);
  return task.result.latency.samples ?? [];
}

/** Nearest-rank percentile of ascending samples. */
export function percentile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}
