/**
 * What does the reward loop add to the waiting of its score functions? A step of the published runs at 1:1000 (5,120 calls, 256 at once, 0 to 40 ms each), against the shortest time that
 * is possible, against libraries that bound promises, and against verl's own loop where a Python has it; a heavy tail, with hedges and without; a function that costs nothing; what a sample holds while very many are asked at
 * once; and how much of an endpoint is used whose room nobody has told.
 *
 * The latency of a sample hangs on its number alone, so all of them wait for the same. The shortest time is that of the same samples, in order, each on the slot that is free first; the bound that the
 * loop is to keep is N x mean / slots + tail. A loop lives as long as a training: its first step, in which its threads compile what they run, is told beside a later one.
 */
import { setTimeout as delay } from "node:timers/promises";
import { RewardLoopManager } from "@rayling/reward-loop";
import type { RewardLoopOptions } from "@rayling/reward-loop";
import Bottleneck from "bottleneck";
import pLimit from "p-limit";
import PQueue from "p-queue";
import type { Progress, Report, Table } from "./measure/report.ts";
import { bytesInUse } from "./measure/memory.ts";
import { lightMs, limited } from "./subjects/judged.ts";
import { VerlLoop } from "./verl/loop.ts";

export interface RewardsPlan {
  readonly samples: number;
  readonly slots: number;
  /** For the function that costs nothing. */
  readonly free: number;
  /** Asked at once, and not answered. */
  readonly held: number;
  /** Asked of an endpoint whose room has to be found out. */
  readonly found: number;
  readonly rounds: number;
  /** An interpreter that has ray, torch and verl: verl's own loop takes part. */
  readonly python?: string;
}

interface Run {
  readonly name: string;
  readonly ms: number;
}

const workers = 2;
const firstStep = "reward loop, its first step";
const laterStep = "reward loop, a later step";
const laterSteps = 5;
const module = new URL("subjects/judged.ts", import.meta.url).href;

/** Call it inside a session. */
export async function measureRewards(plan: RewardsPlan, say: Progress): Promise<Report> {
  const { samples, slots } = plan;
  const shortest = shortestMs(samples, slots);
  const bound = boundMs(samples, slots);
  const runs: Run[] = [];
  await using verl = plan.python === undefined ? undefined : await VerlLoop.start(plan.python);
  for (let round = 0; round < plan.rounds; round++) {
    for (const [name, run] of Object.entries(bounded(plan))) {
      say(`${name}, round ${round + 1}`);
      runs.push({ name, ms: await timed(run) });
    }
    say(`reward loop, round ${round + 1}`);
    const { first, later } = await loopMs("light", plan);
    runs.push({ name: firstStep, ms: first }, { name: laterStep, ms: later });
    for (const arrangement of verl?.arrangements(slots) ?? []) {
      say(`${arrangement.name}, round ${round + 1}`);
      runs.push(...(await arrangement.run(lightOf(samples, samples), lightOf(samples))));
    }
  }
  await verl?.close();
  say("heavy tail");
  const { later: heavy } = await loopMs("heavy", plan);
  const { later: hedged } = await loopMs("heavy", plan, { hedge: { quantile: 0.8, budget: 0.3 } });
  say("beside a function that blocks");
  const beside = await besideMs(plan);
  say("a function that costs nothing");
  const free = await freeRate("nothing", plan);
  const freeSync = await freeRate("nothingSync", plan);
  say(`${grouped(plan.held)} samples at once`);
  const held = await heldBytes(plan);
  say("an endpoint whose room nobody has told");
  const found = await foundOut(plan);
  const loop = medianOf(runs, laterStep);
  const makespan: Table = {
    title: `${grouped(samples)} calls of 0 to 40 ms, ${slots} at once`,
    rows: [
      ["", "ms", "x N x mean / slots + tail", "x light tail"],
      ["shortest possible", shortest.toFixed(0), (shortest / bound).toFixed(3), ""],
      ...[...new Set(runs.map(({ name }) => name))].map((name) => {
        const ms = medianOf(runs, name);
        return [name, ms.toFixed(0), (ms / bound).toFixed(3), ""];
      }),
      [
        `${laterStep}, heavy tail (lognormal, sigma 1)`,
        heavy.toFixed(0),
        "",
        (heavy / loop).toFixed(3),
      ],
      [
        "the same with hedges, after what 80 % take",
        hedged.toFixed(0),
        "",
        (hedged / loop).toFixed(3),
      ],
    ],
  };
  const overhead: Table = {
    title: "A score function that costs nothing",
    rows: [
      ["", "samples/s", "us CPU each"],
      ["reward loop", grouped(free.perSecond), free.cpuUs.toFixed(0)],
      ["the same, synchronous", grouped(freeSync.perSecond), freeSync.cpuUs.toFixed(0)],
    ],
  };
  const blocked: Table = {
    title: "An async score function of 10 ms, one sample at a time, seen by who asked",
    rows: [
      ["", "p50 ms", "p99 ms"],
      ["alone", beside.alone.p50.toFixed(2), beside.alone.p99.toFixed(2)],
      [
        "beside a loop whose function blocks for 200 ms",
        beside.blocked.p50.toFixed(2),
        beside.blocked.p99.toFixed(2),
      ],
    ],
  };
  const many: Table = {
    title: `${grouped(plan.held)} samples asked at once, none answered yet`,
    rows: [
      ["", "bytes each"],
      ["the driver's thread, after a collection", held.driver.toFixed(0)],
      ["the whole process (driver, workers, executors), resident", held.process.toFixed(0)],
    ],
  };
  const adaptive: Table = {
    title: `An endpoint that takes ${limited.capacity} calls of ${limited.ms} ms and does not say so`,
    rows: [
      ["", ""],
      ["of its capacity used, from the 20th round trip on", `${(found.used * 100).toFixed(1)} %`],
      ["calls refused", `${(found.refused * 100).toFixed(2)} %`],
    ],
  };
  return {
    tables: [makespan, overhead, blocked, many, adaptive],
    measured: {
      "rewards: makespan x bound": loop / bound,
      "rewards: hedged heavy tail x light": hedged / loop,
      "rewards: samples/s": free.perSecond,
      "rewards: us CPU each": free.cpuUs,
      "rewards: us CPU each, synchronous": freeSync.cpuUs,
      "rewards: bytes each": held.process,
      "rewards: capacity used": found.used,
      "rewards: refused": found.refused,
    },
    details: {
      plan,
      verl: verl?.versions,
      shortest,
      bound,
      runs,
      heavy,
      hedged,
      free,
      beside,
      held,
      found,
    },
  };
}

function bounded({
  samples,
  slots,
}: RewardsPlan): Readonly<Record<string, () => Promise<unknown>>> {
  const indices = [...Array(samples).keys()];
  const judge = (index: number): Promise<void> => delay(lightMs(index));
  return {
    "p-limit": () => {
      const limit = pLimit(slots);
      return Promise.all(indices.map((index) => limit(() => judge(index))));
    },
    "p-queue": () => {
      const queue = new PQueue({ concurrency: slots });
      return Promise.all(indices.map((index) => queue.add(() => judge(index))));
    },
    bottleneck: () => {
      const limiter = new Bottleneck({ maxConcurrent: slots });
      return Promise.all(indices.map((index) => limiter.schedule(() => judge(index))));
    },
  };
}

/** Of a training's steps the first, and the median of a few later ones, when what runs is warm. */
async function loopMs(
  name: "light" | "heavy",
  { samples, slots }: RewardsPlan,
  options: RewardLoopOptions = {},
): Promise<{ readonly first: number; readonly later: number }> {
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: slots / workers,
    reward: `${module}:${name}`,
    ...options,
  });
  const step = (from: number): Promise<number> =>
    timed(() => Promise.all(samplesOf(samples, from).map((sample) => loop.computeScore(sample))));
  const first = await step(samples);
  const later: number[] = [];
  for (let round = 0; round < laterSteps; round++) later.push(await step(0));
  return { first, later: later.toSorted((a, b) => a - b)[laterSteps >> 1] as number };
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
}

/** A synchronous function in a loop of its own, never without work, and an async one in another. */
async function besideMs({
  free,
}: RewardsPlan): Promise<{ readonly alone: Latency; readonly blocked: Latency }> {
  const count = Math.max(20, Math.round(free / 250));
  const common = { workers: 1, executors: 1 };
  await using brief = await RewardLoopManager.create({ ...common, reward: `${module}:brief` });
  await using blocking = await RewardLoopManager.create({
    ...common,
    reward: `${module}:blocking`,
  });
  const [sample] = samplesOf(1);
  if (sample === undefined) throw new Error("one sample is there");
  const measure = async (): Promise<Latency> => {
    const latencies: number[] = [];
    for (let index = 0; index < count; index++) {
      latencies.push(await timed(() => brief.computeScore(sample)));
    }
    const sorted = latencies.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.ceil(share * count) - 1] ?? Number.NaN;
    return { p50: at(0.5), p99: at(0.99) };
  };
  await measure();
  const alone = await measure();
  const over = new AbortController();
  const busy = (async () => {
    while (!over.signal.aborted) await blocking.computeScore(sample);
  })();
  const blocked = await measure();
  over.abort();
  await busy;
  return { alone, blocked };
}

/** The best of a few rounds, after the first ones have warmed up what runs. */
async function freeRate(
  name: "nothing" | "nothingSync",
  { free, rounds }: RewardsPlan,
): Promise<{ perSecond: number; cpuUs: number }> {
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: 256,
    reward: `${module}:${name}`,
  });
  let best = { perSecond: 0, cpuUs: Infinity };
  for (let round = 0; round < rounds + 2; round++) {
    const before = process.cpuUsage();
    const startMs = performance.now();
    for await (const { outcome } of loop.scoreStream(samplesOf(free))) {
      if (!outcome.valid) throw new Error(outcome.error.message);
    }
    const perSecond = (free * 1000) / (performance.now() - startMs);
    const { user, system } = process.cpuUsage(before);
    if (perSecond > best.perSecond) best = { perSecond, cpuUs: (user + system) / free };
  }
  return best;
}

/** What a sample adds while it waits for its score, with all that the loop keeps of it. */
async function heldBytes({
  held,
}: RewardsPlan): Promise<{ readonly driver: number; readonly process: number }> {
  const counter = new SharedArrayBuffer(8);
  const count = new Int32Array(counter);
  await using loop = await RewardLoopManager.create({
    workers,
    executors: 1,
    concurrency: Math.ceil(held / workers),
    reward: { path: module, name: "held", rewardKwargs: { counter } },
  });
  const samples = samplesOf(held);
  const [driverBefore, processBefore] = [await bytesInUse(), process.memoryUsage.rss()];
  const outcomes = samples.map((sample) => loop.computeScore(sample));
  for (let now = 0; now < held; now = Atomics.load(count, 0)) {
    await Atomics.waitAsync(count, 0, now).value;
  }
  const each = {
    driver: ((await bytesInUse()) - driverBefore) / held,
    process: (process.memoryUsage.rss() - processBefore) / held,
  };
  Atomics.store(count, 1, 1);
  Atomics.notify(count, 1);
  for (const { valid } of await Promise.all(outcomes)) {
    if (!valid) throw new Error("a sample that was held is invalid");
  }
  return each;
}

/** How much of an endpoint is used from the 20th round trip on, and how many calls of all it refused. */
async function foundOut({
  found,
}: RewardsPlan): Promise<{ readonly used: number; readonly refused: number }> {
  await using loop = await RewardLoopManager.create({
    workers: 1,
    executors: 1,
    concurrency: 4 * limited.capacity,
    reward: `${module}:tooMany`,
    limits: { concurrency: "auto" },
    retry: { attempts: 1000, budget: Infinity },
  });
  const outcomes = await Promise.all(samplesOf(found).map((sample) => loop.computeScore(sample)));
  const infos = outcomes.map((one) => {
    if (!one.valid) throw new Error(one.error.message);
    return one.rewardExtraInfo as { readonly atMs: number; readonly refused: number };
  });
  const doneAt = infos.map(({ atMs }) => atMs).toSorted((a, b) => a - b);
  const from = (doneAt[0] ?? 0) + 19 * limited.ms;
  // At the end there is too little left to use it up.
  const to = (doneAt.at(-1) ?? 0) - 2 * limited.ms;
  const done = doneAt.filter((at) => at > from && at <= to).length;
  const room = (limited.capacity * (to - from)) / limited.ms;
  const refused = Math.max(...infos.map((one) => one.refused));
  return { used: done / room, refused: refused / (found + refused) };
}

interface Sample {
  readonly dataSource: string;
  readonly response: string;
  readonly groundTruth: string;
}

function samplesOf(count: number, from = 0): Sample[] {
  return Array.from({ length: count }, (_, index) => ({
    dataSource: "bench",
    response: String(from + index),
    groundTruth: "",
  }));
}

function shortestMs(samples: number, slots: number): number {
  const freeAt = Array<number>(slots).fill(0);
  for (let index = 0; index < samples; index++) {
    const slot = freeAt.indexOf(Math.min(...freeAt));
    freeAt[slot] = (freeAt[slot] ?? 0) + lightMs(index);
  }
  return Math.max(...freeAt);
}

function boundMs(samples: number, slots: number): number {
  const each = lightOf(samples);
  return each.reduce((sum, ms) => sum + ms, 0) / slots + Math.max(...each);
}

function lightOf(count: number, from = 0): number[] {
  return Array.from({ length: count }, (_, index) => lightMs(from + index));
}

async function timed(run: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await run();
  return performance.now() - startMs;
}

function medianOf(runs: readonly Run[], wanted: string): number {
  const sorted = runs
    .filter(({ name }) => name === wanted)
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

function grouped(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}
