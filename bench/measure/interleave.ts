/**
 * Runs contestants against each other in one run: short rounds, all contestants in each round, the
 * order rotated from round to round.
 *
 * So a slow minute of the machine hits everybody alike. tinybench times the iterations; this file
 * owns only who runs when. The first round is a warm-up and is thrown away. An iteration that
 * rejects ends the run: a wrong answer is not a figure.
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

export interface Round {
  readonly medianMs: number;
  readonly meanMs: number;
  /** CPU time of the whole process, all threads, per iteration. */
  readonly cpuMs: number;
}

export interface Samples {
  readonly name: string;
  /** Times of all rounds, in ms per iteration, ascending. */
  readonly sortedMs: readonly number[];
  /** In order of time. */
  readonly rounds: readonly Round[];
}

/** @param onRound is told after each round, the warm-up being round 0 */
export async function interleave(
  contestants: readonly Contestant[],
  plan: RoundPlan,
  onRound: (round: number) => void,
): Promise<Samples[]> {
  const all = contestants.map((contestant): Entry => ({ contestant, samplesMs: [], rounds: [] }));
  for (let round = 0; round <= plan.rounds; round++) {
    const first = round % all.length;
    for (const { contestant, samplesMs, rounds } of [...all.slice(first), ...all.slice(0, first)]) {
      const result = await oneRound(contestant, plan);
      if (round === 0) continue;
      for (const sample of result.samplesMs) samplesMs.push(sample);
      rounds.push(result.round);
    }
    onRound(round);
  }
  return all.map(({ contestant, samplesMs, rounds }) => ({
    name: contestant.name,
    sortedMs: samplesMs.toSorted((a, b) => a - b),
    rounds,
  }));
}

interface Entry {
  readonly contestant: Contestant;
  readonly samplesMs: number[];
  readonly rounds: Round[];
}

interface RoundResult {
  readonly samplesMs: readonly number[];
  readonly round: Round;
}

/**
 * A few iterations come first and are not timed, because the contestant's thread has slept through
 * the others' turns.
 */
async function oneRound({ name, run }: Contestant, plan: RoundPlan): Promise<RoundResult> {
  const bench = new Bench({
    time: plan.roundMs,
    iterations: plan.minIterations,
    warmupTime: plan.roundMs / 10,
    warmupIterations: 1,
    retainSamples: true,
    throws: true,
  });
  let runs = 0;
  const counted = (): Promise<void> => {
    runs += 1;
    return run();
  };
  bench.add(name, counted, { async: true });
  const before = process.cpuUsage();
  const [task] = await bench.run();
  const used = process.cpuUsage(before);
  if (task?.result.state !== "completed") {
    throw new Error(`${name}: the run ended ${task?.result.state ?? "nowhere"}`);
  }
  const { samples = [], p50, mean } = task.result.latency;
  return {
    samplesMs: samples,
    round: { medianMs: p50, meanMs: mean, cpuMs: (used.user + used.system) / 1000 / runs },
  };
}

/** Nearest-rank percentile of ascending samples. */
export function percentile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * fraction))] ?? Number.NaN;
}
