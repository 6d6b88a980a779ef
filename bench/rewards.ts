/**
 * Question: what does the reward loop add to the waiting of its score functions? A step of the
 * published runs at 1:1000 (5,120 calls, 256 at once, 0 to 40 ms each), against the shortest time
 * that is possible, against libraries that bound promises, and against verl's own loop where a
 * Python has it; a heavy tail, with hedges and without; a function that costs nothing, in verl's
 * loop, too; a judge over HTTP; what a sample holds while very many are asked at once; and how much of an endpoint is used whose room
 * nobody has told.
 *
 * The latency of a sample hangs on its number alone, so all of them wait for the same. The shortest
 * time is that of the same samples, in order, each on the slot that is free first; the bound that
 * the loop is to keep is N x mean / slots + tail. A loop lives as long as a training: its first
 * step and those after it, in which its threads compile what they run, are told beside a later one.
 */
import { freshFromSource } from "./measure/fresh.ts";
import { field } from "./measure/printed.ts";
import type { Progress, Report } from "./measure/report.ts";
import { askedJudge } from "./rewards/judged.ts";
import * as measures from "./rewards/measures.ts";
import type { RewardsPlan } from "./rewards/measures.ts";
import {
  type Figures,
  firstStep,
  type FreeBatch,
  freeBatch,
  laterStep,
  medianOf,
  nextSteps,
  type NamedRate,
  type Run,
  tablesOf,
  xVerl,
} from "./rewards/tables.ts";
import { VerlLoop } from "./verl/loop.ts";

const heldSamples = new URL("./rewards/held-samples.ts", import.meta.url);

export type { RewardsPlan } from "./rewards/measures.ts";

/** Call it inside a session. */
export async function measureRewards(plan: RewardsPlan, say: Progress): Promise<Report> {
  const steps = await measureSteps(plan, say);
  const figures: Figures = { ...steps, ...(await measureLoop(plan, say)) };
  const { runs, freeBatches, bound, hedged, free, freeSync, held, found } = figures;
  const loop = medianOf(runs, laterStep);
  return {
    tables: tablesOf(plan, figures),
    measured: {
      "rewards: makespan x bound": loop / bound,
      "rewards: hedged heavy tail x light": hedged / loop,
      "rewards: samples/s": free.perSecond,
      "rewards: us CPU each": free.cpuUs,
      "rewards: us CPU each, synchronous": freeSync.cpuUs,
      "rewards: bytes each": held.process,
      "rewards: capacity used": found.used,
      "rewards: refused": found.refused,
      ...xVerl(freeBatches),
    },
    details: { plan, ...figures },
  };
}

type Steps = Pick<Figures, "runs" | "freeBatches" | "verl" | "shortest" | "bound">;

/** Runs one step by everybody who can run it, in turns. */
async function measureSteps(plan: RewardsPlan, say: Progress): Promise<Steps> {
  const { samples, slots } = plan;
  const runs: Run[] = [];
  await using verl = plan.python === undefined ? undefined : await VerlLoop.start(plan.python);
  const [first, later] = [measures.lightOf(samples, samples), measures.lightOf(samples)];
  for (let round = 0; round < plan.rounds; round++) {
    for (const [name, run] of Object.entries(measures.bounded(plan))) {
      say(`${name}, round ${round + 1}`);
      runs.push({ name, ms: await measures.timed(run) });
    }
    say(`reward loop, round ${round + 1}`);
    const own = await measures.loopMs("light", plan);
    runs.push(
      { name: firstStep, ms: own.first },
      { name: nextSteps, ms: own.next },
      { name: laterStep, ms: own.later },
    );
    for (const arrangement of verl?.arrangements(slots) ?? []) {
      say(`${arrangement.name}, round ${round + 1}`);
      const [firstMs, laterMs] = await arrangement.run([first, later]);
      runs.push(
        { name: `${arrangement.name}, its first step`, ms: firstMs ?? Number.NaN },
        { name: `${arrangement.name}, a later step`, ms: laterMs ?? Number.NaN },
      );
    }
  }
  const freeBatches = verl === undefined ? [] : await measureFreeBatches(plan, verl, say);
  const [shortest, bound] = [measures.shortestMs(samples, slots), measures.boundMs(samples, slots)];
  return { runs, freeBatches, verl: verl?.versions, shortest, bound };
}

/**
 * Sends batches whose samples cost nothing through verl's loop, and equal ones through ours. Each
 * gets as many batches, and its best one counts.
 */
async function measureFreeBatches(
  plan: RewardsPlan,
  verl: VerlLoop,
  say: Progress,
): Promise<FreeBatch[]> {
  const { samples, slots } = plan;
  // Enough for V8 to have compiled: a batch is but some tens of milliseconds.
  const rounds = 5 * plan.rounds;
  say(`${samples} samples that cost nothing`);
  const own = await measures.freeRate("nothing", { ...plan, free: samples, rounds });
  const batches: FreeBatch[] = [{ name: freeBatch, perSecond: own.perSecond }];
  const steps = Array.from({ length: rounds + measures.warmUps }, () =>
    Array<number>(samples).fill(0),
  );
  for (const arrangement of verl.arrangements(slots)) {
    const { name } = arrangement;
    say(`${name}: ${samples} samples that cost nothing`);
    const ms = (await arrangement.run(steps)).slice(measures.warmUps);
    batches.push({ name, perSecond: (samples * 1000) / Math.min(...ms) });
  }
  return batches;
}

/** The loop by itself, one question after the other. */
async function measureLoop(plan: RewardsPlan, say: Progress): Promise<Omit<Figures, keyof Steps>> {
  say("heavy tail");
  const { later: heavy } = await measures.loopMs("heavy", plan);
  const hedge = { quantile: 0.8, budget: 0.3 };
  const { later: hedged } = await measures.loopMs("heavy", plan, { hedge });
  say("beside a function that blocks");
  const beside = await measures.besideMs(plan);
  say("a function that costs nothing");
  const free = await measures.freeRate("nothing", plan);
  const freeSync = await measures.freeRate("nothingSync", plan);
  const freeWith: NamedRate[] = [];
  for (const [name, options] of Object.entries(measures.policies)) {
    say(`a function that costs nothing, with ${name}`);
    const less = { free: plan.free / 4, rounds: plan.rounds };
    freeWith.push({ name, ...(await measures.freeRate("nothing", less, options)) });
  }
  say("a judge over HTTP");
  const judged = await askedJudge(plan);
  say(`${plan.held} samples at once`);
  // In a process of its own: memory that another measurement has left would hide some.
  const printed = await freshFromSource(heldSamples, String(plan.held));
  const held = {
    driver: Number(field(printed, "driver")),
    process: Number(field(printed, "process")),
  };
  say("an endpoint whose room nobody has told");
  const found = await measures.foundOut(plan);
  return { heavy, hedged, beside, free, freeSync, freeWith, judged, held, found };
}
